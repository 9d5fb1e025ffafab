#include "gates/need-trial.h"

#include <stdlib.h>

#define RARE (10 * NS_PER_MS) /* launches so far apart all count */

#define PLACES (1u << NEED_PLACES)
#define PACKED (1u << NEED_PACKED)
#define APART  (1u << NEED_APART)
#define WHOLE  (1u << NEED_WHOLE)

const struct need_terms need_terms_short = {
	PLACES | PACKED | APART | WHOLE, 1.02, 50 * NS_PER_MS, 1, 10, 1};
const struct need_terms need_terms_long = {APART | WHOLE, 1.1, 150 * NS_PER_MS, 7, 10, 1};
const struct need_terms need_terms_work = {PLACES | APART | WHOLE, 1.05, 250 * NS_PER_MS, 1, 4, 2};

/* The cheapest one that is not below @way. */
static enum need_way way_from(const struct need_terms *terms, enum need_way way)
{
	return (enum need_way)__builtin_ctz(terms->ways >> way << way | WHOLE);
}

void need_trial_begin(struct need_trial *trial, const struct need_terms *terms)
{
	*trial = (struct need_trial){.way = way_from(terms, NEED_PLACES), .terms = terms};
}

static int by_time(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* The mean without both tails. */
static uint64_t typical(uint64_t *times, unsigned n, unsigned tail)
{
	unsigned cut = n / tail;
	double sum = 0;

	qsort(times, n, sizeof(*times), by_time);
	for (unsigned i = cut; i < n - cut; i++)
		sum += (double)times[i];
	return (uint64_t)(sum / (n - 2 * cut));
}

static enum need_way chosen(const struct need_trial *trial)
{
	enum need_way way = way_from(trial->terms, NEED_PLACES);
	uint64_t fastest = UINT64_MAX;

	for (int i = 0; i < NEED_WAYS; i++) {
		if (trial->typical[i])
			fastest = smaller(fastest, trial->typical[i]);
	}
	while (way != NEED_WHOLE &&
	       (double)trial->typical[way] > trial->terms->fast * (double)fastest)
		way = way_from(trial->terms, way + 1);
	return way;
}

static bool is_enough(const struct need_trial *trial, uint64_t now)
{
	return trial->seen == NEED_TRIAL_SAMPLES_MAX ||
	       (trial->seen >= NEED_TRIAL_SAMPLES && now - trial->since >= trial->terms->span);
}

static bool is_passed_over(struct need_trial *trial, uint64_t now)
{
	return trial->seen && ++trial->passed < trial->terms->stride && now - trial->last < RARE;
}

/* @way is known in this round. True: so are all in all rounds. */
static bool go_on(struct need_trial *trial, enum need_way way)
{
	if (way != NEED_WHOLE)
		trial->way = way_from(trial->terms, way + 1);
	else if (++trial->round < trial->terms->rounds)
		trial->way = way_from(trial->terms, NEED_PLACES);
	else
		trial->way = chosen(trial);
	return trial->round == trial->terms->rounds;
}

static void note(uint64_t *best, uint64_t ns)
{
	*best = *best ? smaller(*best, ns) : ns;
}

bool need_trial_learn(struct need_trial *trial, enum need_way way, uint64_t ns, uint64_t now)
{
	if (way != trial->way || is_passed_over(trial, now))
		return false;
	trial->passed = 0;
	if (!trial->seen)
		trial->since = now;
	trial->last = now;
	trial->times[trial->seen++] = ns;
	if (!is_enough(trial, now))
		return false;
	note(&trial->typical[way], typical(trial->times, trial->seen, trial->terms->tail));
	trial->seen = 0;
	return go_on(trial, way);
}
