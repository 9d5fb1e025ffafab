/* Finds the best of a few configurations by trying them while the kernels work (FlexSched, section
 * 4.4 and 5.4.1). Each is measured by how fast each kernel gets on, relative to its speed alone.
 * The sum of these is the weighted speed-up: 1 is what kernels get that take turns.
 *
 * FlexSched climbs from one end of the list. Measured curves are best near the middle, and worth
 * nothing at the ends, so this search begins in the middle. It tries both sides, and climbs on
 * where it got better. A small step down does not end a climb, and where one kernel gets next to
 * nothing the sum hardly changes, so it also goes on while the mean of the kernels' own changes is
 * more than 1 (FlexSched's equation 3). Pure. */
#pragma once

#include "policy/coexec-space.h"

#define COEXEC_DIP   0.05 /* one step down by less does not end a climb: it may be a dip */
#define COEXEC_NOISE 0.02 /* of a measured speed-up */
#define COEXEC_LEAST                                                                 \
	0.05 /* a rate below that is no progress: such a configuration is not chosen \
	      */

struct coexec_search {
	unsigned n, n_kernels;
	double worth;
	unsigned at;    /* to be measured next */
	unsigned tries; /* so far */
	bool done;
	unsigned best;
	double highest; /* speed-up of the best; 0: none was measured */
	/* Internal. */
	bool measured[COEXEC_WORKERS];
	int step;    /* of the climb; 0: at the begin */
	bool turned; /* the other side has its turn */
	unsigned from, slack;
	double speed_up[COEXEC_WORKERS], rates[COEXEC_WORKERS][COEXEC_MOST];
};

/* @n: configurations, at least 1. @worth: a speed-up of less is of no use: below it no step down is
 * forgiven. */
void coexec_search_begin(struct coexec_search *search, unsigned n, unsigned n_kernels,
			 double worth);
/* The configuration `at` gave these rates. */
void coexec_search_feed(struct coexec_search *search, const double *rates);
