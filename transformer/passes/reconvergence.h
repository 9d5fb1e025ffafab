/* Generates code that brings the lanes of a warp together, finished ones included (warp-exit.c). */
#pragma once

#include "passes/pass.h"

/* Registers of each thread. */
struct reconvergence {
	struct reg *lanes; /* mask of the lanes that the warp has */
	struct reg *words; /* address of the warp's words: unfinished lanes; whether they meet for a
			      barrier; if `gathers`, the mask that each lane waits for, or 0 */
	bool gathers;      /* only lanes that an instruction names come together (warp-gather.c);
			      finished lanes join nobody */
};

/* Bytes of a warp's words, also if lanes gather. */
#define RECONVERGENCE_WORDS   8u
#define RECONVERGENCE_GATHERS (RECONVERGENCE_WORDS + 32 * 4)

/* Brings all lanes of the warp together, under the guard of @like. Returns a register with the mask
 * of the unfinished lanes, all of which are here. */
struct reg *reconverge(struct cursor *at, struct rewrite *rewrite, const struct instruction *like);
/* The same in front of a barrier, which finished lanes have to join. Writes nothing if lanes
 * gather.
 */
void reconverge_at_barrier(struct cursor *at, struct rewrite *rewrite,
			   const struct instruction *like);
/* For finished lanes: join the others wherever they meet until the whole warp has finished.
 * @at_barrier writes the code that joins a barrier of the block; NULL: never needed. If lanes
 * gather and it is needed, the caller waits for all threads of the block instead. */
typedef void barrier_writer(struct cursor *at, struct rewrite *rewrite);
void reconverge_done(struct cursor *at, struct rewrite *rewrite, barrier_writer *at_barrier);

/* Sets the word of this lane at the start of a block (warp-gather.c). */
void start_gathering(struct cursor *at, struct rewrite *rewrite);
