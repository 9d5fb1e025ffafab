#include "gates/need-compare.h"

#include <stdlib.h>

#define CAP         4.0 /* times what is usual: no time counts for more */
#define TAIL        10  /* one time in so many at either end is not usual */
#define SURE        3.0 /* errors, after many turns; */
#define FEW         3.0 /* that and as much more with so many turns */
#define SURE_CLEAR  4.0 /* within a turn */
#define SOON        2u  /* turns after which a way may be slower by so much: */
#define FAR         0.1
#define LEAST       0.002 /* error of a turn */
#define CLEAR_TIMES 3u    /* before it can be clear that a way is slower, */
#define CLEAR       3.5   /* and so many usual times must be lost */
#define SOME        3u    /* times that say something */

void need_compare_begin(struct need_compare *compare)
{
	*compare = (struct need_compare){0};
}

void need_compare_drop_turn(struct need_compare *compare)
{
	compare->whole.n = compare->tried.n = compare->seen = 0;
	compare->slower = compare->usual = 0;
}

void need_times_add(struct need_times *times, uint64_t ns)
{
	if (times->n < NEED_TURN_TIMES_MAX)
		times->ns[times->n++] = (uint32_t)smaller(ns, UINT32_MAX);
}

static int by_time(const void *a, const void *b)
{
	const uint32_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* The mean without both tails. */
static double typical(const struct need_times *times)
{
	struct need_times sorted = *times;
	unsigned cut = sorted.n / TAIL;
	double sum = 0;

	qsort(sorted.ns, sorted.n, sizeof(sorted.ns[0]), by_time);
	for (unsigned i = cut; i < sorted.n - cut; i++)
		sum += sorted.ns[i];
	return sorted.n ? sum / (sorted.n - 2 * cut) : 0;
}

/* The mean, and the square of its error. */
struct mean {
	double value, error;
};

/* Of times of which none counts for more than @most. */
static struct mean mean_of(const struct need_times *times, double most)
{
	double sum = 0, squares = 0, n = times->n;

	for (unsigned i = 0; i < times->n; i++) {
		double ns = times->ns[i] < most ? times->ns[i] : most;
		sum += ns;
		squares += ns * ns;
	}
	if (n < 2)
		return (struct mean){sum, 0};
	return (struct mean){sum / n, (squares / n - sum / n * (sum / n)) / (n - 1)};
}

static double most_of(const struct need_compare *compare)
{
	return CAP * typical(&compare->whole);
}

double need_compare_usual(struct need_compare *compare)
{
	double most = most_of(compare);
	struct mean whole = mean_of(&compare->whole, most);

	compare->most = most;
	compare->usual = whole.value;
	compare->variance = whole.error * compare->whole.n;
	return whole.value;
}

/* @value is above so many errors, of which @error is the square. */
static bool exceeds(double value, double errors, double error)
{
	return value > 0 && value * value > errors * errors * error;
}

bool need_compare_is_clear(struct need_compare *compare, uint64_t ns)
{
	double usual = compare->usual, most = compare->most;

	if (usual <= 0)
		return false;
	compare->slower += ((double)ns < most ? (double)ns : most) / usual - NEED_MARGIN;
	/* The sum of n times has n times the variance of one. */
	double error = ++compare->seen * compare->variance / (usual * usual);
	return compare->seen >= CLEAR_TIMES && exceeds(compare->slower - CLEAR, SURE_CLEAR, error);
}

/* Of what is NEED_MARGIN times as long. */
static double margin(void)
{
	return 2 * (NEED_MARGIN - 1) / (NEED_MARGIN + 1);
}

/* The square of the mean's error, by what the results differ by. */
static double differ_by(const struct need_compare *compare, double mean)
{
	const double *sums = compare->squared; /* of weights squared, times 1, result, its square */
	double n = compare->turns;

	return n > 1 ? (sums[2] - 2 * mean * sums[1] + mean * mean * sums[0]) * n / (n - 1) : 0;
}

static enum need_verdict verdict(const struct need_compare *compare)
{
	double weight = compare->weight, mean = compare->sum / weight, n = compare->turns;
	double least = LEAST * LEAST / n, sure = SURE * (1 + FEW / n);
	double between = differ_by(compare, mean), within = compare->within;
	double error = (between > within ? between : within) / (weight * weight);

	error = error > least ? error : least;
	if (compare->turns >= (mean > FAR ? SOON : NEED_TURNS) &&
	    exceeds(mean - margin(), sure, error))
		return NEED_SLOWER;
	if (compare->turns >= NEED_TURNS && exceeds(margin() - mean, sure, error))
		return NEED_AS_FAST;
	return compare->turns == NEED_TURNS_MAX ? NEED_SLOWER : NEED_NOT_KNOWN;
}

/* A turn weighs as much as it has times in the way: one that ended early, because of some long
 * times, would count for too much otherwise. */
static void add_turn(struct need_compare *compare, double weight, struct mean whole,
		     struct mean tried)
{
	double result = 2 * (tried.value - whole.value) / (tried.value + whole.value);
	double squared = weight * weight;

	compare->turns++;
	compare->weight += weight;
	compare->sum += weight * result;
	for (int i = 0; i < 3; i++, squared *= result)
		compare->squared[i] += squared;
	compare->within += weight * weight *
			   (whole.error / (whole.value * whole.value) +
			    tried.error / (tried.value * tried.value));
}

/* Of all times in the way, where it was clear before some counted. */
static struct mean seen_mean(const struct need_compare *compare, struct mean whole)
{
	double n = compare->seen;

	return (struct mean){whole.value * (compare->slower / n + NEED_MARGIN),
			     whole.error * compare->whole.n / n};
}

enum need_verdict need_compare_end_turn(struct need_compare *compare)
{
	double most = most_of(compare);
	struct mean whole = mean_of(&compare->whole, most);
	bool some = compare->tried.n >= SOME, known = compare->whole.n >= SOME;

	if (!known || (!some && compare->seen < SOME)) {
		need_compare_drop_turn(compare);
		return NEED_NOT_KNOWN;
	}
	add_turn(compare, some ? compare->tried.n : SOME, whole,
		 some ? mean_of(&compare->tried, most) : seen_mean(compare, whole));
	need_compare_drop_turn(compare);
	return verdict(compare);
}
