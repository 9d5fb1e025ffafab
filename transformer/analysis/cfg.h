/* Edges, reverse post-order, dominators and loops of a function.
 *
 * cfg_build() computes them from the instructions. Call it again after changing control flow.
 * Unreachable blocks have order CFG_UNREACHED and no dominator. */
#pragma once

#include "syntax/ir.h"

#define CFG_UNREACHED (~0u)

/* A natural loop: the target of a back edge that dominates the edge's source, and every block that
 * reaches the source without passing the head. Back edges to one head form one loop. */
struct loop {
	struct block *head;
	struct loop *parent;
	unsigned depth; /* 1: outermost */
	bool has_barrier, has_call;
	unsigned instruction_count; /* inner loops included */
	struct loop *next;          /* of the function, in reverse post-order of the heads */
};

struct cfg {
	struct block **order; /* reachable blocks in reverse post-order */
	unsigned count;
	bool irreducible; /* has a cycle that is no natural loop */
};

/* Stops with -E2BIG if the graph needs more steps than its size allows. */
void cfg_build(struct function *function, struct cfg *cfg);

/* Stops with -E2BIG. */
_Noreturn void cfg_too_complex(const struct function *function);

/* A block dominates itself. Both must be reachable. */
bool cfg_dominates(const struct block *above, const struct block *below);
bool loop_contains(const struct loop *loop, const struct block *block);
