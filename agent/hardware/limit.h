/* A compute limit: a container may use so many per cent of a GPU's time, whether others want the
 * GPU or not. Pure.
 *
 * Time is divided into periods of 100 ms, as the kernel does for limits of processors. In each
 * period the container may use its part; when that is used up, it is over the limit until the next
 * period begins. What it used too much is taken off the next periods, so a stop that comes late
 * costs no precision. What it did not use is lost.
 *
 * While it has the GPU alone, the container uses each moment in which it has work and is not
 * stopped. While it shares the GPU with others, the hardware gives it a part only. Then what its
 * clients report is charged (`executed` of the status page), but no less than the part that its
 * slices give it, and no more than all of the time. Reports come late and in lumps, and count a
 * kernel's time at the clock at which it was learned, so these bounds hold for sums over a second.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LIMIT_PERIOD_NS 100000000ull
#define LIMIT_DEBT_MAX  1000000000ll /* ns: what is more is forgotten */
#define LIMIT_LOOK_NS   2000000ull   /* between two looks while the container has work */
#define LIMIT_LATE_NS   100000ull    /* no look is sooner than this */
#define LIMIT_SUM_NS    1000000000ull

#define LIMIT_EXPECTED "a whole number from 1 to 100"

/* Zero: no limit. */
struct limit {
	uint32_t percent; /* 1..99; 0: none */
	bool over;        /* it must not run now */
	uint64_t begun;   /* the period */
	int64_t left;     /* ns that it may use in this period; negative: it used too much */
	/* ns, since `since`. */
	struct {
		uint64_t since, most, least, reported, charged;
	} sums;
	/* Counters, in ns. */
	uint64_t used, throttled;
};

/* Since the last call. */
struct limit_use {
	uint64_t most;     /* ns in which it had work and was not stopped */
	uint64_t least;    /* ns that it used whatever it reports */
	uint64_t reported; /* ns of GPU time, by its clients */
	uint64_t waited;   /* ns in which it had work, over the limit */
};

/* @percent: 0 or 100: no limit. A new limit begins with a new period. */
void limit_set(struct limit *limit, uint32_t percent, uint64_t now);
/* Charges for @use, and begins a new period if it is time: `over` is right afterwards. */
void limit_charge(struct limit *limit, const struct limit_use *use, uint64_t now);
/* When to call it next. @works: the container has work. UINT64_MAX: when there is work. */
uint64_t limit_next(const struct limit *limit, bool works, uint64_t now);
