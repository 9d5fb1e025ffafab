/* Instructions that wait for lanes of the warp, and the lanes that their masks name. */
#pragma once

#include "syntax/ir.h"

enum mask_kind {
	MASK_NONE,    /* waits for no lane, or has no mask (mma) */
	MASK_LIVE,    /* lanes that were active a moment ago: activemask, ballot, match. They may
		       * exit before they come; see warp-pair.h */
	MASK_ALL,     /* all 32 lanes */
	MASK_UNKNOWN, /* an unknown set of lanes */
};

/* The kind of mask in each register of @function, by id. */
uint8_t *warp_masks(struct function *function);

/* @masks: from warp_masks(). The mask is the last operand. */
enum mask_kind warp_mask_of(const struct instruction *instruction, const uint8_t *masks);
/* Whether the instruction has a mask operand. */
bool warp_has_mask(const struct instruction *instruction);
/* Whether its result names only lanes that execute it together. */
bool warp_makes_mask(const struct instruction *instruction);
