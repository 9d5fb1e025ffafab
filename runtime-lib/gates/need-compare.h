/* Compares a way in which lower levels make room (need-trial.h) with the whole GPU, in turns: in
 * each turn some work is measured with the whole GPU, and some in the way. What counts is the mean
 * of the times, none of which counts for more than four times what is usual with the whole GPU. So
 * it counts that one request in ten waits, but one that stops for a second does not decide.
 *
 * A turn's result is the difference of both means, as a part of the mean of these two. The way is
 * as fast if the mean of the results is below the margin by at least three times its error. That is
 * the larger one of what the results differ by and of what the times within a turn do: times of one
 * turn may be alike because of what lower levels run just then. Pure. */
#pragma once

#include "weir/base.h"

#include <stdbool.h>
#include <stdint.h>

#define NEED_MARGIN         1.03 /* so many times as long is as fast */
#define NEED_TURNS          4u   /* at least, until a way is as fast */
#define NEED_TURNS_MAX      400u /* then it is not known to be as fast */
#define NEED_TURN_TIMES     16u  /* of each half that count, at least */
#define NEED_TURN_TIMES_MAX 64u

struct need_times {
	uint32_t ns[NEED_TURN_TIMES_MAX]; /* 4.3 s stand for all longer ones */
	unsigned n;
};

enum need_verdict {
	NEED_NOT_KNOWN,
	NEED_AS_FAST,
	NEED_SLOWER,
};

struct need_compare {
	/* Of this turn. */
	struct need_times whole, tried;
	double usual, variance, most; /* ns with the whole GPU; that no time counts for more than */
	unsigned seen;                /* times in the way, those that do not count, too; */
	double slower; /* the sum of what they are above the margin, in usual times */
	/* Of all turns. */
	unsigned turns;
	double weight, sum; /* sums of their weights, and of the results by these; */
	double squared[3];  /* of the weights' squares times 1, the result, and its square; */
	double within;      /* of these times the variances by what the times of a turn differ by */
};

void need_compare_begin(struct need_compare *compare);
/* Forgets what this turn has measured. */
void need_compare_drop_turn(struct need_compare *compare);
/* Times beyond NEED_TURN_TIMES_MAX do not count. */
void need_times_add(struct need_times *times, uint64_t ns);
/* ns with the whole GPU in this turn; 0: nothing was measured. */
double need_compare_usual(struct need_compare *compare);
/* A time in the way, after that. True: it is clearly slower already, so there is no reason to go
 * on. */
bool need_compare_is_clear(struct need_compare *compare, uint64_t ns);
/* Both halves of the turn are over. */
enum need_verdict need_compare_end_turn(struct need_compare *compare);
