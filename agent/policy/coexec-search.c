#include "policy/coexec-search.h"

#include "weir/base.h"

void coexec_search_begin(struct coexec_search *search, unsigned n, unsigned n_kernels, double worth)
{
	*search = (struct coexec_search){.n = (unsigned)smaller(n, COEXEC_WORKERS),
					 .n_kernels = (unsigned)smaller(n_kernels, COEXEC_MOST),
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
	search->tries++;
	if (progress && sum > search->highest) {
		search->highest = sum;
		search->best = search->at;
	}
}

/* No speed-up between two configurations that were measured is likely to exceed it. 0: there a
 * kernel makes no progress. */
static double bound(const struct coexec_search *search, unsigned from, unsigned to)
{
	double sum = 0;

	for (unsigned i = 0; i < search->n_kernels; i++) {
		double a = search->rates[from][i], b = search->rates[to][i];
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
	bool found = false;

	for (unsigned from = 0, to = 1; to < search->n; to++) {
		if (!search->measured[to])
			continue;
		double most = to - from > 1 ? bound(search, from, to) : 0;
		if (most > least) {
			least = most;
			search->at = (from + to) / 2;
			found = true;
		}
		from = to;
	}
	return found;
}

void coexec_search_feed(struct coexec_search *search, const double *rates)
{
	note(search, rates);
	if (!search->measured[0])
		search->at = 0;
	else if (!search->measured[search->n - 1])
		search->at = search->n - 1;
	else
		search->done = !divide(search);
}
