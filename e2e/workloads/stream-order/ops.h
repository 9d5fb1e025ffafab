/* Everything that the torture program does to its lanes, as a table: one row an operation. */
#pragma once

#include "workloads/stream-order/lane.h"

#define LANES 8u

struct run {
	struct kit kit;
	struct lane lanes[LANES];
	uint64_t step; /* operations so far */
};

struct operation {
	const char *name;
	uint32_t weight;
	/* @lane: chosen at random among all, or those of one kind. */
	void (*issue)(struct run *run, struct lane *lane);
	bool created_stream; /* not on default streams */
	bool non_blocking;   /* only on non-blocking streams */
};

extern const struct operation operations[];
extern const size_t operations_count;

/* Of the same run, not @lane. */
struct lane *other_lane(struct run *run, const struct lane *lane);
/* Waits for everything and checks every lane. */
void run_check(struct run *run);

/* Graphs, in stream-order-graph.c. */
void operation_graph_captured(struct run *run, struct lane *lane);
void operation_graph_forked(struct run *run, struct lane *lane);
void operation_graph_by_hand(struct run *run, struct lane *lane);

/* Held while a stream is captured, and around calls that must not meet a capture: those that wait
 * for a whole context. */
void capture_lock(void);
void capture_unlock(void);
