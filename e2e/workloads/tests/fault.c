/* Preloaded into a workload: drops kernel launch number $FAULT_LAUNCH and reports success. A
 * workload that does not notice checks nothing. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <cuda.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
			       unsigned grid_z, unsigned block_x, unsigned block_y,
			       unsigned block_z, unsigned shared, CUstream stream,
			       void **parameters, void **extra)
{
	static atomic_long launches;
	const char *lost = getenv("FAULT_LAUNCH");
	__typeof__(cuLaunchKernel) *real =
		(__typeof__(cuLaunchKernel) *)dlsym(RTLD_NEXT, "cuLaunchKernel");

	if (lost && ++launches == atol(lost))
		return CUDA_SUCCESS;
	return real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
		    parameters, extra);
}
