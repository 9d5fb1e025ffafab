/* Between libweir-loop.a (weir/loop.h) and libweir.so. The former looks the functions up in its
 * process by name and runs without them, so old and new ones meet: a function keeps its meaning,
 * and structures grow at their end.
 *
 * A loop's kernel looks at the words for which a gate of its stream waits. When one is set, it
 * leaves, and is launched again behind a gate. */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct CUstream_st;

#define WEIR_LOOP_WAITS 4 /* files, the network, timers, functions of the host */

/* The loop writes, libweir adds up all loops of a client for the status page. */
struct weir_loop_state {
	uint32_t size; /* of this structure */
	_Atomic uint32_t on_gpu;
	_Atomic uint32_t waiting[WEIR_LOOP_WAITS]; /* callbacks that wait for these */
	_Atomic uint64_t evictions;
	_Atomic uint64_t blocked;      /* times that it left because all blocks waited */
	_Atomic uint64_t blocked_time; /* ns */
	_Atomic uint64_t ran;          /* ns on the GPU */
};
/* Loops of the first version do not say how long they ran. */
#define WEIR_LOOP_STATE_FIRST offsetof(struct weir_loop_state, ran)
static_assert(WEIR_LOOP_STATE_FIRST == 48, "the first version");

/* Addresses for the GPU; 0: there is none. */
struct weir_loop_words {
	uint64_t demand;      /* of 64 bits: leave if one of */
	uint64_t demand_mask; /* these is set */
	uint64_t hold;        /* of 32 bits: leave if it is not 0 */
};

/* A loop that launches into @stream, of the current context. @state: until weir_loops_end().
 * -EAGAIN: the context cannot be governed. -ENOBUFS: it has too many loops. In both cases the
 * functions below may be called all the same. */
typedef int weir_loops_begin_function(struct CUstream_st *stream,
				      const struct weir_loop_state *state);
/* The state is not read any more when this returns. */
typedef void weir_loops_end_function(struct CUstream_st *stream,
				     const struct weir_loop_state *state);

/* Before each launch: puts a gate into the stream if one may be closed, and says what the kernel
 * must look at. -EAGAIN: not governed, no words. */
typedef int weir_loops_gate_function(struct CUstream_st *stream, struct weir_loop_words *out);
/* What it would say now, without a gate. Any thread; no driver call. */
typedef int weir_loops_words_function(struct CUstream_st *stream, struct weir_loop_words *out);
/* The kernel has left, and nothing follows it soon: its demand ends. */
typedef void weir_loops_left_function(struct CUstream_st *stream);

/* In libweir.so. */
weir_loops_begin_function weir_loops_begin;
weir_loops_end_function weir_loops_end;
weir_loops_gate_function weir_loops_gate;
weir_loops_words_function weir_loops_words;
weir_loops_left_function weir_loops_left;
