/* What clients report on their status pages, added up per container and GPU. Pure.
 *
 * A client can write anything to its page at any time. So a counter here grows by as much as the
 * client's counter, if that is possible, and else not at all. It never falls and never wraps. It is
 * only shown, and decides nothing. */
#pragma once

#include <stdint.h>

#include "weir/protocol.h"

enum account_counter {
	ACCOUNT_LAUNCHES,
	ACCOUNT_GPU_TIME, /* ns */
	ACCOUNT_GATES,
	ACCOUNT_GATES_CLOSED,
	ACCOUNT_WAITS,
	ACCOUNT_WAIT_TIME, /* ns */
	ACCOUNT_EVICTIONS,
	ACCOUNT_STARTS,
	ACCOUNT_STARTS_LATE,
	ACCOUNT_PREDICTIONS,
	ACCOUNT_PREDICTION_ERROR, /* millionths */
	ACCOUNT_DEMAND_TIME,      /* ns */
	ACCOUNT_SPECULATIVE,
	ACCOUNT_SPECULATIVE_MISSES,
	ACCOUNT_SPECULATIVE_TIME, /* ns */
	ACCOUNT_FORM_LAUNCHES,    /* one for each form, from here */
	ACCOUNT_FORM_EVICTIONS = ACCOUNT_FORM_LAUNCHES + WEIR_STATUS_FORMS,
	ACCOUNT_COUNTERS = ACCOUNT_FORM_EVICTIONS + WEIR_STATUS_FORMS,
};

struct account {
	uint64_t total[ACCOUNT_COUNTERS];
};

/* One client's page, as of the last reading. */
struct account_reader {
	uint64_t last[ACCOUNT_COUNTERS];
	struct account own;
	uint64_t outstanding, remaining;
	uint32_t tuning; /* kernels being tuned */
	uint32_t level;  /* WEIR_LEVELS: not reported */
};

/* No counter grows by more than this between two readings: 78 hours in nanoseconds. */
#define ACCOUNT_STEP_MAX (1ull << 48)

/* Saturates. */
void account_add(struct account *sum, const struct account *more);
/* Adds the growth of the counters on @page to the reader's own account and to @sum. */
void account_read(struct account_reader *reader, const struct weir_status_page *page,
		  struct account *sum);
