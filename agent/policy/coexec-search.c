#include "policy/coexec-search.h"

#include "weir/base.h"

#define SLACK 1u       /* steps down in a climb, in a row */
#define LEAST 0.000001 /* a rate that is measured as 0 */

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
		double rate = rates[i] > LEAST ? rates[i] : LEAST;
		progress &= rate >= COEXEC_LEAST;
		search->rates[search->at][i] = rate;
		sum += rate;
	}
	search->speed_up[search->at] = sum;
	search->measured[search->at] = true;
	search->tries++;
	if (progress && sum > search->highest) {
		search->highest = sum;
		search->best = search->at;
	}
}

/* Mean of what each kernel gains from one configuration to another. */
static double gain(const struct coexec_search *search, unsigned from, unsigned to)
{
	double sum = 0;

	for (unsigned i = 0; i < search->n_kernels; i++)
		sum += search->rates[to][i] / search->rates[from][i];
	return sum / search->n_kernels;
}

static bool goes_on(struct coexec_search *search)
{
	double before = search->speed_up[search->from], now = search->speed_up[search->at];

	if (now > before) {
		search->slack = SLACK;
		return true;
	}
	/* Nothing but a starving kernel changes: that may go on for long. */
	if (now >= before * (1 - COEXEC_NOISE) &&
	    gain(search, search->from, search->at) > 1 + COEXEC_NOISE)
		return true;
	if (now < before * (1 - COEXEC_DIP) || !search->slack || search->highest < search->worth)
		return false;
	search->slack--;
	return true;
}

/* The step after `from`. False: there is none that was not measured. */
static bool go(struct coexec_search *search)
{
	bool ends = search->step < 0 ? search->from == 0 : search->from + 1 == search->n;
	unsigned next = search->from + (unsigned)search->step;

	if (ends || search->measured[next])
		return false;
	search->at = next;
	return true;
}

/* From the middle. */
static bool climb(struct coexec_search *search, int step)
{
	search->from = (search->n - 1) / 2;
	search->step = step;
	search->slack = SLACK;
	return go(search);
}

/* The first side led nowhere: the middle is as good as the best, or nothing is. */
static bool turn(struct coexec_search *search)
{
	bool nowhere =
		search->highest <= search->speed_up[(search->n - 1) / 2] * (1 + COEXEC_NOISE);

	if (search->turned || !nowhere)
		return false;
	search->turned = true;
	return climb(search, -search->step);
}

/* Towards the kernel that gets less gets more. */
static int better_side(const struct coexec_search *search)
{
	const double *rates = search->rates[search->at];

	return rates[0] < rates[search->n_kernels - 1] ? 1 : -1;
}

void coexec_search_feed(struct coexec_search *search, const double *rates)
{
	note(search, rates);
	if (search->step == 0) {
		int side = better_side(search);
		search->done = !climb(search, side) && !climb(search, -side);
		return;
	}
	if (goes_on(search)) {
		search->from = search->at;
		if (go(search))
			return;
	}
	search->done = !turn(search);
}
