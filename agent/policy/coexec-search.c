#include "policy/coexec-search.h"

#include "weir/base.h"

#define SLACK 1u       /* steps down in a climb, in a row */
#define LEAST 0.000001 /* a rate that is measured as 0 */

void coexec_search_begin(struct coexec_search *search, unsigned n, unsigned n_kernels)
{
	*search = (struct coexec_search){.n = (unsigned)smaller(n, COEXEC_WORKERS),
					 .n_kernels = (unsigned)smaller(n_kernels, COEXEC_MOST)};
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
	if (now < before * (1 - COEXEC_DIP) || !search->slack)
		return false;
	search->slack--;
	return true;
}

/* The step after `from`; done if there is none that was not measured. */
static void go(struct coexec_search *search)
{
	bool ends = search->step < 0 ? search->from == 0 : search->from + 1 == search->n;
	unsigned next = search->from + (unsigned)search->step;

	search->done = ends || search->measured[next];
	if (!search->done)
		search->at = next;
}

static void climb(struct coexec_search *search, bool from_last)
{
	search->from = from_last ? search->n - 1 : 0;
	search->step = from_last ? -1 : 1;
	search->slack = SLACK;
	go(search);
}

/* The first climb found nothing beyond where it began, and the other end is not far below. */
static bool led_nowhere(const struct coexec_search *search)
{
	unsigned last = search->n - 1, other = search->step < 0 ? 0 : last;

	return search->best == last - other &&
	       search->speed_up[other] >= COEXEC_LOW * search->highest;
}

void coexec_search_feed(struct coexec_search *search, const double *rates)
{
	unsigned last = search->n - 1;

	note(search, rates);
	if (search->tries == 1 && last > 0) {
		search->at = last;
	} else if (search->tries <= 2) {
		climb(search, search->speed_up[last] > search->speed_up[0]);
	} else if (goes_on(search)) {
		search->from = search->at;
		go(search);
	} else if (!search->second && led_nowhere(search)) {
		search->second = true;
		climb(search, search->step > 0);
	} else {
		search->done = true;
	}
}
