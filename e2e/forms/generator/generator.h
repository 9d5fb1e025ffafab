/* What a program is made of: statements, which are written to the text.
 *
 * A program is a tree of statements over eight values of each thread. Two facts decide which
 * statement may follow. `together`: all remaining threads of the block are here, so a barrier is
 * allowed. `some_left`: some threads may have exited, so no statement may name absent threads.
 *
 * Shared memory holds a word for each thread, written before any thread may exit, and sums. */
#pragma once

#include "forms/random.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define VALUES 8

/* Which threads may exit early. */
enum leaving { LEAVE_NOBODY, LEAVE_ALL, LEAVE_ANYBODY };

struct generator {
	FILE *text;
	uint64_t random;
	unsigned threads, labels, masks;
	unsigned room; /* number of further statements */
	bool some_left;
	bool copies;   /* an asynchronous copy is under way */
	bool may_copy; /* the target has such copies */
	enum leaving leaving;
	unsigned end, next; /* labels of the innermost loop */
	bool in_loop, loops_together;
	unsigned swap; /* barrier numbers: 0 to 2 for all threads, 3 to 5 for some; or with 3 added,
			  modulo 6 */
};

static inline unsigned pick(struct generator *g, unsigned n)
{
	return random_below(&g->random, n);
}

static inline unsigned value(struct generator *g)
{
	return pick(g, VALUES);
}

/* What a thread does whether others are here or not (alone.c). */
void alone_compute(struct generator *g);
void alone_load(struct generator *g);
void alone_look_up(struct generator *g);
void alone_other_sizes(struct generator *g);
void alone_guarded(struct generator *g);
void alone_name_lanes(struct generator *g);
void alone_count(struct generator *g);
void alone_local(struct generator *g);
void alone_call(struct generator *g);
void alone_table(struct generator *g);

/* What the threads of a block or a warp do with each other (together.c): all that remain are here.
 * @last: of a block, it needs no final barrier. */
void together_exchange(struct generator *g, bool last);
void together_sum(struct generator *g);
void together_reduce(struct generator *g);
void together_in_warp(struct generator *g);
void together_some(struct generator *g);
void together_fade(struct generator *g);
