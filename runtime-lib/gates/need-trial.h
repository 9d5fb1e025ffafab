/* Compares the ways in which lower levels can make room for a kernel of few blocks. Each way is
 * tried for some launches in a row, the cheapest for lower levels first. What counts is the median
 * time from the moment in which the kernel's stream was ready until its end, so a wait until others
 * have left is part of it. The cheapest way that is about as fast as the fastest is chosen. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Cheapest for lower levels first. */
enum need_way {
	NEED_PLACES, /* of blocks that end */
	NEED_APART,  /* SMs without others' blocks */
	NEED_WHOLE,  /* the whole GPU */
};
#define NEED_WAYS 3

#define NEED_TRIAL_SAMPLES 24u  /* that count */
#define NEED_TRIAL_FAST    1.05 /* times as long as in the fastest way is as fast */

struct need_trial {
	enum need_way first, way; /* way: it is tried now, or was chosen */
	unsigned seen;            /* its launches */
	uint64_t times[NEED_TRIAL_SAMPLES];
	uint64_t medians[NEED_WAYS]; /* ns; 0: not known */
};

/* @first: the cheapest way that comes into question. */
void need_trial_begin(struct need_trial *trial, enum need_way first);
/* A launch in @way took @ns. True: the trial is over. */
bool need_trial_learn(struct need_trial *trial, enum need_way way, uint64_t ns);
