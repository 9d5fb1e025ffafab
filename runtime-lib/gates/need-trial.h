/* Compares the ways in which lower levels can make room for a kernel of few blocks. Each way is
 * tried for some launches in a row, the cheapest for lower levels first. What counts is the time
 * from the moment in which the kernel's stream was ready until its end, so a wait until others have
 * left is part of it: the mean without the tenth of the launches that were the fastest and that of
 * the slowest (of whole work: a quarter). A median would hide that each fifth launch waits. Ways of
 * whole work are tried in two rounds, and the better one of each counts: a host may be slow for as
 * long as a way is tried. The cheapest way that is as fast as the fastest is chosen. Pure. */
#pragma once

#include "weir/base.h"

#include <stdbool.h>
#include <stdint.h>

/* Cheapest for lower levels first. */
enum need_way {
	NEED_PLACES, /* of blocks that end; for work of many blocks: a third of the SMs */
	/* SMs without others' blocks, so few that they stay free until the next launch: it does not
	 * wait, but several blocks share an SM. */
	NEED_PACKED,
	NEED_APART, /* an SM for each block; for work of many blocks: half of all */
	NEED_WHOLE, /* the whole GPU */
};
#define NEED_WAYS 4

/* Launches of a way that count: so many at least and at most. */
#define NEED_TRIAL_SAMPLES     24u
#define NEED_TRIAL_SAMPLES_MAX 160u

/* What lower levels gain by a cheaper way depends on how long the work above is. */
struct need_terms {
	unsigned ways; /* bit w: enum need_way w comes into question; the whole GPU always does */
	double fast;   /* so many times as long as in the fastest way is as fast */
	/* ns from the first launch of a way to its last, as launches that fall into the same kernel
	 * or the same step of a lower level say the same. One in `stride` counts, if they are many:
	 * not one in 2 or 5, as the first of a request waits for lower levels, and requests often
	 * have 10 or 20. */
	uint64_t span;
	unsigned stride;
	/* Of the launches that count, the mean is without one in so many on either side. The host
	 * makes whole requests late, several in a row. */
	unsigned tail;
	unsigned rounds;
};
extern const struct need_terms need_terms_short; /* kernels that may do with places */
extern const struct need_terms need_terms_long;  /* kernels that need SMs of their own */
extern const struct need_terms need_terms_work;  /* work of many blocks, from idle to idle */

struct need_trial {
	const struct need_terms *terms;
	enum need_way way;    /* it is tried now, or was chosen */
	uint64_t since, last; /* ns: its first and latest launch that counts were read */
	unsigned passed;      /* its launches since that */
	unsigned seen;        /* its launches that count */
	uint64_t times[NEED_TRIAL_SAMPLES_MAX];
	unsigned round;              /* rounds that are over */
	uint64_t typical[NEED_WAYS]; /* ns, of the better round; 0: not known */
};

void need_trial_begin(struct need_trial *trial, const struct need_terms *terms);
/* A launch in @way took @ns, which was read at @now. True: the trial is over. */
bool need_trial_learn(struct need_trial *trial, enum need_way way, uint64_t ns, uint64_t now);
