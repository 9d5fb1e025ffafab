/* What clients report on their status pages, added up per container and GPU. Pure.
 *
 * A client can write anything to its page at any time. So a counter here grows by as much as the
 * client's counter, if that is possible, and else not at all. It never falls and never wraps. It is
 * only shown, and decides nothing. */
#pragma once

#include <stdint.h>

#include "weir/protocol.h"

// clang-format off
/* A counter, and its field of the page. */
#define ACCOUNT_FIELDS(F)                                                                          \
	F(LAUNCHES, launches) F(GPU_TIME, gpu_time /* ns */)                                       \
	F(GATES, gates) F(GATES_CLOSED, gates_closed)                                              \
	F(WAITS, waits) F(WAIT_TIME, wait_time /* ns */)                                           \
	F(EVICTIONS, evictions) F(STARTS, starts) F(STARTS_LATE, starts_late)                      \
	F(PREDICTIONS, predictions) F(PREDICTION_ERROR, prediction_error /* millionths */)         \
	F(DEMAND_TIME, demand_time /* ns */)                                                       \
	F(SPECULATIVE, speculative) F(SPECULATIVE_MISSES, speculative_misses)                      \
	F(SPECULATIVE_TIME, speculative_time /* ns */)                                             \
	F(BLOCKS_SAVED, blocks_saved) F(BLOCKS_DRAINED, blocks_drained) F(BYTES_SAVED, bytes_saved) \
	F(PARTIAL_LEAVES, partial_leaves)                                                          \
	F(LOOPS_BLOCKED, loops_blocked) F(LOOPS_BLOCKED_TIME, loops_blocked_time /* ns */)
// clang-format on

enum account_counter {
#define F(name, field) ACCOUNT_##name,
	ACCOUNT_FIELDS(F)
#undef F
		ACCOUNT_FORM_LAUNCHES, /* one for each form, from here */
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
	uint32_t tuning;                                /* kernels being tuned */
	uint32_t level;                                 /* WEIR_LEVELS: not reported */
	uint32_t loops, loops_on_gpu, loops_waiting[4]; /* as on the page */
};

/* No counter grows by more than this between two readings: 78 hours in nanoseconds. */
#define ACCOUNT_STEP_MAX (1ull << 48)

/* Saturates. */
void account_add(struct account *sum, const struct account *more);
/* Adds the growth of the counters on @page to the reader's own account and to @sum. */
void account_read(struct account_reader *reader, const struct weir_status_page *page,
		  struct account *sum);
