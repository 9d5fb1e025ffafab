/* What clients say that they did, added up per container and GPU.
 *
 * The source is a status page, which the client can fill with anything at any time. So a counter of
 * ours grows by what theirs grew, if that is something that can have happened, and else not at all:
 * it never falls, never wraps, and is never used but to be shown. Pure. */
#pragma once

#include <stdint.h>

#include "weir/protocol.h"

/* The counters, in this order. */
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
	ACCOUNT_FORM_LAUNCHES,    /* the first of one for each form */
	ACCOUNT_FORM_EVICTIONS = ACCOUNT_FORM_LAUNCHES + WEIR_STATUS_FORMS,
	ACCOUNT_COUNTERS = ACCOUNT_FORM_EVICTIONS + WEIR_STATUS_FORMS,
};

struct account {
	uint64_t total[ACCOUNT_COUNTERS];
};

/* One client's page as it was read last, and the state it shows. */
struct account_reader {
	uint64_t last[ACCOUNT_COUNTERS];
	struct account own;
	uint64_t outstanding, remaining;
	uint32_t tuning; /* kernels, or so many at least */
	uint32_t level;  /* WEIR_LEVELS: it says none */
};

/* Nobody does more than this between two looks: 78 hours in nanoseconds. */
#define ACCOUNT_STEP_MAX (1ull << 48)

/* Adds, up to the largest number there is. */
void account_add(struct account *sum, const struct account *more);
/* Reads @page; what it grew goes to the reader's own account and to @sum, too. */
void account_read(struct account_reader *reader, const struct weir_status_page *page,
		  struct account *sum);
