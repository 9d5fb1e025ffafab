/* Event loops for the programs of this folder: a failure ends the program. */
#pragma once

#include <weir/loop.h>

#include "../workload.h"

/* spin_us of loops that are timed alone: the thread waits without a pause, as in
 * cuStreamSynchronize(). It is the most that a loop takes. */
#define HOST_SPIN_US   1000000
#define HOST_SPIN_HELP "us for which loops look for work without a pause; 0: the library's"

/* A loop around @kernel, that has not run yet. */
struct weir_loop *host_loop(CUfunction kernel, const struct weir_loop_options *options);

/* Runs it; fails unless it ends by itself with code 0. @parameters: as for cuLaunchKernel(); the
 * first one is not used. Returns the seconds that it ran. The caller frees the loop. */
double host_loop_run(struct weir_loop *loop, void **parameters);
/* Says on stderr how long it was on the GPU, and frees it. */
void host_loop_end(struct weir_loop *loop);

/* A way to do the same work. It returns seconds. */
struct host_way {
	const char *name;
	double (*run)(void *program);
};

/* Ends the program with 2 if there is no such way. */
const struct host_way *host_way_find(const struct host_way *ways, size_t n, const char *name);

/* Host memory that the device sees, zeroed. @device: its address there. */
void *host_mapped(size_t bytes, CUdeviceptr *device);

/* Device memory, zeroed. */
CUdeviceptr host_zeros(size_t bytes);

/* Of a module whose loop leaves again and again by itself (NAME-leaving-ptx.c,
 * weir/loop/leaving.cuh): within how long it did so 99 times of 100, since the module was loaded,
 * rounded up. 0: it has not left. */
#define HOST_LEAVING_HELP "in another run the loop leaves again and again: how long that takes"
double host_leaving_us(CUmodule module);

/* Seconds from @since, of now_ns(). */
double host_seconds(uint64_t since);
