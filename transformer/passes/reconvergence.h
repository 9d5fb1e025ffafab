/* Lanes of a warp that wait for each other after some have left the kernel (pass-warp-exit.c). */
#pragma once

#include "passes/pass.h"

/* Words of each warp in shared memory, and registers of each thread. */
struct reconvergence {
	struct reg *lanes; /* that the warp has, as a mask */
	struct reg
		*words; /* address: lanes that have not left; is it for a barrier that they come? */
};

/* All lanes of the warp come together. The register has those that have not left, and all of those
 * are here. Executed where @like would be, in front of it. */
struct reg *reconverge(struct cursor *at, struct rewrite *rewrite, const struct instruction *like);
/* The same for a barrier, at which those who have left are to be, too. */
void reconverge_at_barrier(struct cursor *at, struct rewrite *rewrite,
			   const struct instruction *like);
/* Those who leave: come wherever the others come, until all of the warp are done. */
typedef void barrier_writer(struct cursor *at, struct rewrite *rewrite);
void reconverge_done(struct cursor *at, struct rewrite *rewrite, barrier_writer *at_barrier);
