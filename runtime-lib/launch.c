/* The launch path: every function that starts kernels. Around the driver's own call stand
 * launch_begin() and launch_end(); neither allocates, locks, or makes a system call once the stream
 * is known. */
#include "capture.h"
#include "demand.h"
#include "gate.h"
#include "kernel.h"
#include "sample.h"
#include "stream.h"

#include <stddef.h>

struct launch {
	struct stream *stream; /* NULL: not governed, or captured */
	struct sample *sample;
};

/* What a kernel of unknown time counts for inside a graph, where it cannot be sampled. */
#define CAPTURED_UNKNOWN 20000u /* ns */

static void launch_captured(struct stream *stream, const struct standing *standing,
			    uint64_t predicted, bool gate)
{
	if (standing->wait && gate)
		gate_capture(stream, standing);
	gate_account(stream, predicted ? predicted : CAPTURED_UNKNOWN);
}

/* @solitary: false for launches that overlap the one before in their stream by programmatic
 * dependence; nothing may come between those two in a graph, nor for a sample. */
static struct launch launch_begin(CUstream handle, bool per_thread, uint64_t key, bool solitary)
{
	struct launch launch = {0};
	struct stream *stream = driver_ready() ? stream_find(handle, per_thread) : NULL;
	const struct standing *standing =
		stream ? atomic_load_explicit(&stream->client->standing, memory_order_acquire)
		       : NULL;

	if (!standing)
		return launch;
	struct kernel_time *kernel = kernel_find(key);
	uint64_t predicted = kernel_predict(kernel);
	if (capture_covers(stream)) {
		launch_captured(stream, standing, predicted, solitary);
		return launch;
	}

	launch.stream = stream;
	atomic_fetch_add(&stream->begun, 1);
	if (standing->level)
		demand_raise(stream->client, standing);
	gate_pass(stream, standing);
	gate_account(stream, predicted);
	atomic_fetch_add_explicit(&stream->predicted, predicted, memory_order_relaxed);
	if (kernel_wants_sample(kernel) && solitary)
		launch.sample = sample_begin(&stream->client->sampler, kernel, key, stream->handle);
	return launch;
}

static CUresult launch_end(struct launch *launch, CUresult result)
{
	struct stream *stream = launch->stream;

	if (!stream)
		return result;
	sample_end(&stream->client->sampler, launch->sample, stream->handle,
		   result == CUDA_SUCCESS);
	uint64_t issued = atomic_fetch_add(&stream->issued, 1) + 1;
	if (atomic_load_explicit(&stream->marker_wanted, memory_order_relaxed) && stream->marker &&
	    real(cuEventRecord)(stream->marker, stream->handle) == CUDA_SUCCESS) {
		atomic_store(&stream->marked, issued);
		if (!stream->per_thread)
			atomic_store(&stream->marker_wanted, 0);
	}
	return result;
}

/* A function of the old interface has its block size set by cuFuncSetBlockShape(), which is not
 * seen. */
static uint64_t key_of(const void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
		       unsigned by, unsigned bz)
{
	return kernel_key(function, (const unsigned[6]){gx, gy, gz, bx, by, bz});
}

static bool is_solitary(const CUlaunchConfig *config)
{
	for (unsigned i = 0; config->attrs && i < config->numAttrs; i++) {
		CUlaunchAttributeID id = config->attrs[i].id;
		if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION ||
		    id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
			return false;
	}
	return true;
}

static struct launch begin_ex(const CUlaunchConfig *config, CUfunction f, bool per_thread)
{
	if (!config)
		return (struct launch){0};
	return launch_begin(config->hStream, per_thread,
			    key_of(f, config->gridDimX, config->gridDimY, config->gridDimZ,
				   config->blockDimX, config->blockDimY, config->blockDimZ),
			    is_solitary(config));
}

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			       unsigned by, unsigned bz, unsigned shared, CUstream stream,
			       void **params, void **extra)
{
	struct launch launch = launch_begin(stream, false, key_of(f, gx, gy, gz, bx, by, bz), true);

	return launch_end(&launch, real(cuLaunchKernel)(f, gx, gy, gz, bx, by, bz, shared, stream,
							params, extra));
}

EXPORT CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
				    unsigned bx, unsigned by, unsigned bz, unsigned shared,
				    CUstream stream, void **params, void **extra)
{
	struct launch launch = launch_begin(stream, true, key_of(f, gx, gy, gz, bx, by, bz), true);

	return launch_end(&launch, real(cuLaunchKernel_ptsz)(f, gx, gy, gz, bx, by, bz, shared,
							     stream, params, extra));
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params,
				 void **extra)
{
	struct launch launch = begin_ex(config, f, false);

	return launch_end(&launch, real(cuLaunchKernelEx)(config, f, params, extra));
}

EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **params,
				      void **extra)
{
	struct launch launch = begin_ex(config, f, true);

	return launch_end(&launch, real(cuLaunchKernelEx_ptsz)(config, f, params, extra));
}

EXPORT CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
					  unsigned bx, unsigned by, unsigned bz, unsigned shared,
					  CUstream stream, void **params)
{
	struct launch launch = launch_begin(stream, false, key_of(f, gx, gy, gz, bx, by, bz), true);

	return launch_end(&launch, real(cuLaunchCooperativeKernel)(f, gx, gy, gz, bx, by, bz,
								   shared, stream, params));
}

EXPORT CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
					       unsigned bx, unsigned by, unsigned bz,
					       unsigned shared, CUstream stream, void **params)
{
	struct launch launch = launch_begin(stream, true, key_of(f, gx, gy, gz, bx, by, bz), true);

	return launch_end(&launch, real(cuLaunchCooperativeKernel_ptsz)(f, gx, gy, gz, bx, by, bz,
									shared, stream, params));
}

/* One launch on several devices: each stream is gated as for a launch of its own. */
EXPORT CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned count,
						     unsigned flags)
{
	struct launch launches[16] = {0};
	unsigned n = list ? count : 0;

	for (unsigned i = 0; i < n && i < 16; i++)
		launches[i] =
			launch_begin(list[i].hStream, false,
				     key_of(list[i].function, list[i].gridDimX, list[i].gridDimY,
					    list[i].gridDimZ, list[i].blockDimX, list[i].blockDimY,
					    list[i].blockDimZ),
				     false);
	CUresult result = real(cuLaunchCooperativeKernelMultiDevice)(list, count, flags);
	for (unsigned i = 0; i < n && i < 16; i++)
		launch_end(&launches[i], result);
	return result;
}

EXPORT CUresult cuLaunch(CUfunction f)
{
	struct launch launch = launch_begin(NULL, false, key_of(f, 1, 1, 1, 0, 0, 0), true);

	return launch_end(&launch, real(cuLaunch)(f));
}

EXPORT CUresult cuLaunchGrid(CUfunction f, int width, int height)
{
	struct launch launch = launch_begin(
		NULL, false, key_of(f, (unsigned)width, (unsigned)height, 1, 0, 0, 0), true);

	return launch_end(&launch, real(cuLaunchGrid)(f, width, height));
}

EXPORT CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream)
{
	struct launch launch = launch_begin(
		stream, false, key_of(f, (unsigned)width, (unsigned)height, 1, 0, 0, 0), true);

	return launch_end(&launch, real(cuLaunchGridAsync)(f, width, height, stream));
}

EXPORT CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream)
{
	struct launch launch = launch_begin(stream, false, key_of(graph, 0, 0, 0, 0, 0, 0), true);

	return launch_end(&launch, real(cuGraphLaunch)(graph, stream));
}

EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream)
{
	struct launch launch = launch_begin(stream, true, key_of(graph, 0, 0, 0, 0, 0, 0), true);

	return launch_end(&launch, real(cuGraphLaunch_ptsz)(graph, stream));
}
