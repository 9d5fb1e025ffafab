/* Instructions that wait for lanes of the warp, and which lanes they name. */
#pragma once

#include "syntax/ir.h"

enum mask_kind {
	MASK_NONE,    /* waits for nobody, or for all that there are by definition (mma) */
	MASK_LIVE,    /* for lanes that were there a moment ago: activemask, ballot, match */
	MASK_ALL,     /* for all 32 */
	MASK_UNKNOWN, /* for some */
};

/* What the registers of @function hold, by id. NULL: no memory. */
uint8_t *warp_masks(struct function *function);

/* @masks as above. The mask is the last operand. */
enum mask_kind warp_mask_of(const struct instruction *instruction, const uint8_t *masks);
/* Has it a mask at all? */
bool warp_has_mask(const struct instruction *instruction);
