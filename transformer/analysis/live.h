/* Live registers. Only registers that live across a block boundary have a bit, which keeps the sets
 * small. */
#pragma once

#include "analysis/cfg.h"
#include "syntax/ir.h"

#define LIVE_LOCAL (~0u)

struct live {
	struct function *function;
	unsigned *index;   /* by reg->id: its bit, or LIVE_LOCAL */
	struct reg **regs; /* by bit */
	unsigned count;
	unsigned words; /* 64-bit words of a set */
};

/* Fills live_in and live_out of each reachable block. Stops with -E2BIG if the sets would be larger
 * than the function's size allows. */
void live_build(struct function *function, const struct cfg *cfg, struct live *live);

bool live_at_start(const struct live *live, const struct block *block, const struct reg *reg);
