/* How clients are charged for GPU time. Pure: no clock, no pages, no objects of the agent.
 *
 * Two sources tell what a client used, and both are wrong. The agent's clock knows which was
 * the current client of its run queue, but not that another client's kernels had not left yet. A
 * client's report (`executed` on its status page) knows whose kernels ran, but comes late, is a sum
 * of predictions, and may be a lie. So the current client is charged by the clock at once, and each
 * report then corrects that.
 *
 * Time that is predicted is first put in terms of the clock: ran = reported * clock_ratio. For each
 * report, with `by_clock` charged since the report before:
 *
 *   ran > by_clock: the rest is paid from the client's credit, then charged as `extra`. No more
 *                   than the time since the last report is believed. What is charged extra was
 *                   charged by the clock to another client of the level as well, so it goes into
 *                   the level's refund pool.
 *   ran < by_clock: the rest is refunded, as far as the level's pool has it. What the pool does not
 *                   have becomes the client's credit: kernels that it has begun and not reported.
 *
 * Invariant, of each client on a level with others, until a limit below cuts something off:
 *
 *   sum(by clock) + sum(extra) - sum(refund) = sum(ran) + credit + by clock since the last report
 *
 * so each nanosecond that a client reports is charged to it once: by the clock, as extra, or from
 * its credit. And of each level, without exception:
 *
 *   sum(refund) <= sum(extra)
 *
 * so a client that reports less than it ran gets back no more than others admit to have run, and
 * all clients of a level together are charged for at least the time that passed.
 * tests/test-charge.c states both. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* ns. What exceeds these is forgotten. */
#define CHARGE_CREDIT_MAX 20000000ull  /* of a client */
#define CHARGE_POOL_MAX   100000000ull /* of a level */

/* A client's part. Zero when the client comes. */
struct charge_state {
	uint64_t reported; /* ns, in all, as of the last report */
	uint64_t reported_at;
	uint64_t by_clock; /* ns charged since then */
	uint64_t credit;   /* ns charged, neither reported nor refunded yet */
	struct {
		uint64_t reported, by_clock; /* ns of the same times */
		uint64_t at;                 /* when older ones began to count half */
	} clock_ratio;
};

/* What the client's status page says at a look. */
struct charge_report {
	uint64_t executed; /* ns, in all; 0: nothing yet */
	uint64_t kernel;   /* ns of a kernel that it has begun, as predicted */
	bool measured;     /* `executed` is time that was measured, as event loops' is: it is the
			      clock's already */
	uint64_t now;
};

/* The client's run, as of the last time that the clock charged. */
struct charge_run {
	bool shared;            /* other clients are on its level: else nothing is extra */
	bool current;           /* of its run queue */
	bool contended;         /* others wait, so it ends after `allowed` */
	uint64_t started;       /* when */
	uint64_t used, allowed; /* ns */
};

struct charges {
	uint64_t ran;    /* ns reported since the last time, in terms of the clock */
	uint64_t extra;  /* ns to charge beside the clock */
	uint64_t refund; /* ns to take back */
};

/* The client was current for @passed ns, and is charged for them. */
static inline void charge_by_clock(struct charge_state *state, uint64_t passed)
{
	state->by_clock += passed;
}

/* Nobody is charged for what the client reports in @report. */
static inline void charge_nothing(struct charge_state *state, const struct charge_report *report)
{
	state->reported = report->executed;
	state->reported_at = report->now;
	state->by_clock = 0;
}

/* Charges for what @report says. @pool: the level's refunds, in ns. */
struct charges charge_report(struct charge_state *state, uint64_t *pool,
			     const struct charge_report *report, const struct charge_run *run);
