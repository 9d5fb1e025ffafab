/* Finds the best of a few configurations by trying them while the kernels work (FlexSched, section
 * 4.4 and 5.4.1). Each is measured by how fast each kernel gets on, relative to its speed alone.
 * The sum of these is the weighted speed-up: 1 is what kernels get that take turns.
 *
 * FlexSched climbs from one end of the list until it gets worse. Measured curves have steps, so
 * such a climb ends early. This search begins in the middle, and uses that a kernel with more
 * workers is rarely slower: between two configurations that were tried no kernel is faster than at
 * the better of both, and none is faster than alone. So the sum over the kernels bounds all that
 * lies in a gap. The gap with the highest bound is divided next, until no bound exceeds what was
 * found.
 *
 * The best of a few short measurements is high by chance. So those that may be the best are used in
 * turn and measured on, until it is known which one is. Pure. */
#pragma once

#include "policy/coexec/space.h"

/* A configuration in which a kernel has a lower rate is not chosen. */
#define COEXEC_LEAST 0.05

/* While a configuration is in use, what it gives is measured on. The first COEXEC_RELAX
 * measurements do not count: launches still spread over the SMs. What was measured n times may give
 * COEXEC_DOUBT / n more than the mean. After every COEXEC_USE measurements the one that may give
 * most is used. After COEXEC_TRIALS the one with the highest mean stays, until another one's is
 * COEXEC_LATER higher. */
#define COEXEC_RELAX   1u
#define COEXEC_USE     3u
#define COEXEC_DOUBT   0.04
#define COEXEC_TRIALS  16u
#define COEXEC_LATER   0.06
#define COEXEC_SAMPLES 8 /* a mean is that of about so many measurements */

struct coexec_search {
	unsigned n, gains; /* of the space */
	unsigned n_kernels;
	double worth;
	unsigned at;    /* the configuration to be measured next */
	unsigned tries; /* so far, of this search */
	bool done;
	unsigned best;
	double highest; /* speed-up of the best; 0: none was measured */
	/* Internal. */
	bool measured[COEXEC_WORKERS];
	double speed_ups[COEXEC_WORKERS]; /* the mean of what each gave; 0: a kernel starved */
	unsigned samples[COEXEC_WORKERS];
	unsigned used, trials; /* measurements in use: of the best since it is, and of all */
	double rates[COEXEC_WORKERS][COEXEC_MOST];
};

/* @space: at least one configuration. @worth: the least speed-up that is of use. Configurations
 * that cannot reach it are not tried. */
void coexec_search_begin(struct coexec_search *search, const struct coexec_space *space,
			 unsigned n_kernels, double worth);
/* Configuration @i gave these rates in an earlier search. */
void coexec_search_recall(struct coexec_search *search, unsigned i, const double *rates);
/* The configuration `at` gave these rates. */
void coexec_search_feed(struct coexec_search *search, const double *rates);
/* The search is done, and the best configuration, which is in use, gave @speed_up. True: another
 * one is the best from now on. */
bool coexec_search_correct(struct coexec_search *search, double speed_up);
