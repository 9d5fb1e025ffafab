/* bar and barrier: what their operands are. */
#pragma once

#include "syntax/ir.h"

#define BARRIER_COUNT 16 /* numbers that a block has */

struct barrier {
	bool is_red;
	bool is_counted; /* for a number of threads, not for all of the block */
	const struct operand *number;
	const struct operand *result, *predicate; /* of red, or NULL */
};

/* False: @instruction is no barrier of the block, or malformed. */
bool barrier_read(const struct instruction *instruction, struct barrier *out);
