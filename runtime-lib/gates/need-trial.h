/* Compares the ways in which lower levels can make room for a kernel of few blocks. Each way is
 * tried for some launches in a row, the cheapest for lower levels first. What counts is the time
 * from the moment in which the kernel's stream was ready until its end, so a wait until others have
 * left is part of it: the mean without the tenth of the launches that were the fastest and that of
 * the slowest. A median would hide that each fifth launch waits. The cheapest way that is as fast
 * as the fastest is chosen. Pure. */
#pragma once

#include "weir/base.h"

#include <stdbool.h>
#include <stdint.h>

/* Cheapest for lower levels first. */
enum need_way {
	NEED_PLACES, /* of blocks that end */
	NEED_APART,  /* SMs without others' blocks */
	NEED_WHOLE,  /* the whole GPU */
};
#define NEED_WAYS 3

/* Launches of a way that count: so many, and then more for this time, as launches that fall into
 * the same kernel of a lower level say the same. */
#define NEED_TRIAL_SAMPLES     24u
#define NEED_TRIAL_SAMPLES_MAX 160u
#define NEED_TRIAL_SPAN        (50 * NS_PER_MS)
#define NEED_TRIAL_FAST        1.02

struct need_trial {
	enum need_way first, way; /* way: it is tried now, or was chosen */
	double fast;              /* times as long as in the fastest way is as fast */
	uint64_t since;           /* ns: its first launch was read */
	unsigned seen;            /* its launches */
	uint64_t times[NEED_TRIAL_SAMPLES_MAX];
	uint64_t typical[NEED_WAYS]; /* ns; 0: not known */
};

/* @first: the cheapest way that comes into question. @fast: so many times as long as in the fastest
 * way is as fast; NEED_TRIAL_FAST for kernels. */
void need_trial_begin(struct need_trial *trial, enum need_way first, double fast);
/* A launch in @way took @ns, which was read at @now. True: the trial is over. */
bool need_trial_learn(struct need_trial *trial, enum need_way way, uint64_t ns, uint64_t now);
