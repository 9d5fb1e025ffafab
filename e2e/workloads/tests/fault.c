/* Preloaded into a workload: drops kernel launch number $FAULT_LAUNCH and reports success, and
 * makes number $FAULT_LATE half a second late. A workload that does not notice checks nothing. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include <cuda.h>

#define EXPORT __attribute__((visibility("default")))

static bool is_named(const char *variable, long launch)
{
	const char *number = getenv(variable);

	return number && launch == atol(number);
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
			       unsigned grid_z, unsigned block_x, unsigned block_y,
			       unsigned block_z, unsigned shared, CUstream stream,
			       void **parameters, void **extra)
{
	static atomic_long launches;
	__typeof__(cuLaunchKernel) *real =
		(__typeof__(cuLaunchKernel) *)dlsym(RTLD_NEXT, "cuLaunchKernel");

	long launch = ++launches;
	if (is_named("FAULT_LAUNCH", launch))
		return CUDA_SUCCESS;
	if (is_named("FAULT_LATE", launch))
		usleep(500000);
	return real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
		    parameters, extra);
}
