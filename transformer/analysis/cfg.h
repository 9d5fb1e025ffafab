/* Edges, reverse post-order, dominators and loops of a function.
 *
 * cfg_build computes all of them from the instructions; whoever changes control flow calls it
 * again. Unreachable blocks have order CFG_UNREACHED and no dominator.
 */
#pragma once

#include "syntax/ir.h"

#define CFG_UNREACHED (~0u)

/* A natural loop: the target of a back edge that dominates the edge's source, and all that reaches
 * the source without passing the head. Two back edges to one head are one loop. */
struct loop {
	struct block *head;
	struct loop *parent;
	unsigned depth; /* 1: outermost */
	bool has_barrier, has_call;
	unsigned instruction_count; /* inner loops included */
	struct loop *next;          /* of the function: heads in reverse post-order */
};

struct cfg {
	struct block **order; /* reachable blocks in reverse post-order */
	unsigned count;
	bool irreducible; /* a cycle that is no natural loop */
};

/* 0, -ENOMEM, or -E2BIG: the graph is too tangled for the time that its size allows. */
int cfg_build(struct function *function, struct cfg *cfg);

/* Reflexive. Both reachable. */
bool cfg_dominates(const struct block *above, const struct block *below);
bool loop_contains(const struct loop *loop, const struct block *block);
