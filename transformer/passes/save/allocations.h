/* How many of a kernel's blocks allocate in the heap at a time. */
#pragma once

#include "passes/pass.h"

struct allocations {
	struct variable *quiet; /* of the block's shared memory: looks that found nobody inside, in
				   succession; NULL: the kernel does not allocate */
};

void allocations_init(struct allocations *allocations, struct function *f);
/* Clears @due unless this lane's block may call malloc(). @inside: so many lanes are in malloc() or
 * free() now, if @due. */
void allocations_admit(struct cursor *at, struct rewrite *rewrite,
		       const struct allocations *allocations, struct reg *inside, struct reg *due);
