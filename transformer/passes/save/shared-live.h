/* Which variables in shared memory hold, at some place of a kernel, what may still be read.
 *
 * A variable is live at a place if an instruction that may read it can be reached from there in the
 * same block of the grid. It is written if one that may write it lies on a way to there. Where it
 * is not live, nobody asks for its contents; where it is not written, they are undefined.
 *
 * This holds for one thread. Other threads of the block may be elsewhere, so a variable matters to
 * the block if it is live where any thread is, and written where any thread is: perhaps another.
 *
 * An access belongs to the variables whose addresses its own is computed from, by instructions that
 * work on registers alone. One that is computed from none belongs to all. A variable escapes if
 * its address goes elsewhere: to memory, to another thread, to an asynchronous copy, to an
 * instruction that loads matrices, or if the kernel calls a function. It is then live and written
 * everywhere. No access ends a variable's life, because it may leave parts of it as they are. */
#pragma once

#include "analysis/cfg.h"
#include "syntax/ir.h"

#include <stdint.h>

#define SHARED_LIVE_MAX 15u

/* One bit of a set for each variable; the last for all that are not in the list. */
struct shared_live {
	struct variable *list[SHARED_LIVE_MAX]; /* one without a size stands for all such */
	unsigned n;
	uint32_t *live, *written; /* sets by block->order, at the block's start */
};

/* Computes the sets; the list must be filled in. Behind @end another block of the grid begins. */
void shared_live_build(struct shared_live *shared, struct function *function, const struct cfg *cfg,
		       const struct block *end);

/* The variable's bit; that of the others if it is not in the list. */
uint32_t shared_live_bit(const struct shared_live *shared, const struct variable *variable);
