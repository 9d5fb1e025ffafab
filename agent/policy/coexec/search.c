#include "policy/coexec/search.h"

#include "weir/base.h"

void coexec_search_begin(struct coexec_search *search, const struct coexec_space *space,
			 unsigned n_kernels, double worth)
{
	*search = (struct coexec_search){.n = (unsigned)smaller(space->n, COEXEC_WORKERS),
					 .n_kernels = (unsigned)smaller(n_kernels, COEXEC_MOST),
					 .gains = space->gains,
					 .worth = worth};
	search->at = (search->n - 1) / 2;
}

static void note(struct coexec_search *search, const double *rates)
{
	double sum = 0;
	bool progress = true;

	for (unsigned i = 0; i < search->n_kernels; i++) {
		progress &= rates[i] >= COEXEC_LEAST;
		search->rates[search->at][i] = rates[i];
		sum += rates[i];
	}
	search->measured[search->at] = true;
	search->speed_ups[search->at] = progress ? sum : 0;
	search->samples[search->at] = 1;
	if (progress && sum > search->highest) {
		search->highest = sum;
		search->best = search->at;
	}
}

/* A kernel's rate at a configuration that was measured. Before the first one the kernel that gains
 * would have no workers, and behind the last one it would be alone. */
static double rate_at(const struct coexec_search *search, int at, unsigned kernel)
{
	if (at < 0)
		return kernel != search->gains;
	return at < (int)search->n ? search->rates[at][kernel] : kernel == search->gains;
}

/* No speed-up between @from and @to is likely to exceed it. 0: there a kernel makes no progress. */
static double bound(const struct coexec_search *search, int from, int to)
{
	double sum = 0;

	for (unsigned i = 0; i < search->n_kernels; i++) {
		double a = rate_at(search, from, i), b = rate_at(search, to, i);
		double most = a > b ? a : b;
		if (most < COEXEC_LEAST)
			return 0;
		sum += most;
	}
	return sum;
}

/* Chooses the middle of the most promising gap. False: none is worth it. */
static bool divide(struct coexec_search *search)
{
	double least = search->highest > search->worth ? search->highest : search->worth;
	int from = -1, n = (int)search->n;
	bool found = false;

	for (int to = 0; to <= n; to++) {
		if (to < n && !search->measured[to])
			continue;
		double most = to - from > 1 ? bound(search, from, to) : 0;
		if (most > least) {
			least = most;
			search->at = (unsigned)(from + to) / 2;
			found = true;
		}
		from = to;
	}
	return found;
}

void coexec_search_recall(struct coexec_search *search, unsigned i, const double *rates)
{
	search->at = i;
	note(search, rates);
	search->done = !divide(search);
}

void coexec_search_feed(struct coexec_search *search, const double *rates)
{
	search->tries++;
	coexec_search_recall(search, search->at, rates);
}

/* What configuration @i may give, or its mean, if @doubt is 0. */
static double may_give(const struct coexec_search *search, unsigned i, double doubt)
{
	if (search->speed_ups[i] <= 0)
		return 0;
	return search->speed_ups[i] + doubt / search->samples[i];
}

static unsigned highest_of(const struct coexec_search *search, double doubt)
{
	unsigned best = search->best;

	for (unsigned i = 0; i < search->n; i++)
		if (may_give(search, i, doubt) > may_give(search, best, doubt))
			best = i;
	return best;
}

static void note_in_use(struct coexec_search *search, double speed_up)
{
	unsigned now = search->best;
	double n = (double)smaller(++search->samples[now], COEXEC_SAMPLES);

	search->speed_ups[now] += (speed_up - search->speed_ups[now]) / n;
	search->highest = search->speed_ups[now];
}

/* The one to be used from now on. */
static unsigned next_of(const struct coexec_search *search)
{
	unsigned means = highest_of(search, 0);

	if (search->trials < COEXEC_TRIALS)
		return search->used % COEXEC_USE ? search->best : highest_of(search, COEXEC_DOUBT);
	if (search->trials == COEXEC_TRIALS ||
	    search->speed_ups[means] >= search->highest + COEXEC_LATER)
		return means;
	return search->best;
}

bool coexec_search_correct(struct coexec_search *search, double speed_up)
{
	unsigned next;

	if (++search->used <= COEXEC_RELAX)
		return false;
	search->trials++;
	note_in_use(search, speed_up);
	next = next_of(search);
	if (next == search->best || search->speed_ups[next] < search->worth)
		return false;
	search->best = next;
	search->highest = search->speed_ups[next];
	search->used = 0;
	return true;
}
