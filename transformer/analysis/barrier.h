/* The operands of bar and barrier. */
#pragma once

#include "syntax/ir.h"

#define BARRIER_COUNT 16 /* barrier numbers of a block */

struct barrier {
	bool is_red;
	bool is_counted; /* for a given number of threads, not for the whole block */
	const struct operand *number;
	const struct operand *result, *predicate; /* of barrier.red, or NULL */
};

/* False: no block barrier, or malformed. */
bool barrier_read(const struct instruction *instruction, struct barrier *out);
