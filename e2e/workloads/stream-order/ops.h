/* Everything that the torture program does to its streams, as a table: one row an operation. */
#pragma once

#include "workloads/stream-order/checked-stream.h"

#define LANES 8u

struct run {
	struct kit kit;
	struct checked_stream streams[LANES];
	uint64_t step; /* operations so far */
};

struct operation {
	const char *name;
	uint32_t weight;
	/* @checked: chosen at random among all streams, or those of one kind. */
	void (*issue)(struct run *run, struct checked_stream *checked);
	bool created_stream; /* not on default streams */
	bool non_blocking;   /* only on non-blocking streams */
};

extern const struct operation operations[];
extern const size_t operations_count;

/* Another stream of the same run. */
struct checked_stream *other_stream(struct run *run, const struct checked_stream *checked);
/* Waits for everything and checks every stream. */
void run_check(struct run *run);

/* graph.c */
void operation_graph_captured(struct run *run, struct checked_stream *checked);
void operation_graph_forked(struct run *run, struct checked_stream *checked);
void operation_graph_by_hand(struct run *run, struct checked_stream *checked);

/* dependent.c */
CUfunction dependent_kernel(void); /* NULL: the GPU is too old */
void operation_dependent(struct run *run, struct checked_stream *checked);

/* Held while a stream is captured, and around calls that must not meet a capture: those that wait
 * for a whole context. */
void capture_lock(void);
void capture_unlock(void);
