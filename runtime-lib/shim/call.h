/* A launch of a kernel as the program asked for it. */
#pragma once

#include "shim/driver.h"

/* Which kernel, and in which shape. */
struct geometry {
	const void *function; /* CUfunction, CUkernel or CUgraphExec */
	unsigned grid[3], block[3];
	unsigned shared; /* dynamic, bytes of a block */
};

struct kernel_call {
	struct geometry geometry;
	void **params, **extra;
	const CUlaunchConfig *config; /* of cuLaunchKernelEx; else NULL */
};

/* As cuLaunchKernelEx takes it; the caller sets the stream. */
static inline CUlaunchConfig call_config(const struct kernel_call *call)
{
	const struct geometry *g = &call->geometry;

	return call->config ? *call->config
			    : (CUlaunchConfig){.gridDimX = g->grid[0],
					       .gridDimY = g->grid[1],
					       .gridDimZ = g->grid[2],
					       .blockDimX = g->block[0],
					       .blockDimY = g->block[1],
					       .blockDimZ = g->block[2],
					       .sharedMemBytes = g->shared};
}

/* The packed parameters. False: they are not packed, or in an unknown way. */
static inline bool call_packed(const struct kernel_call *call, const void **buffer, size_t *size)
{
	*buffer = NULL;
	*size = 0;
	for (void **extra = call->extra; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			*buffer = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
			*size = *(const size_t *)extra[1];
		else
			return false;
	}
	return *buffer != NULL;
}
