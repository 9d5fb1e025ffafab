/* The order in which what is known of several kernels is kept, whichever of them came first. Pure.
 */
#pragma once

#include "policy/coexec/space.h"

/* @sorted: the @n numbers, the smallest first, then 0. @order: where each of @kernels stands. */
void coexec_order(const uint64_t *kernels, unsigned n, uint64_t sorted[COEXEC_MOST],
		  unsigned order[COEXEC_MOST]);
