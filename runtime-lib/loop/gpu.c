#include "loop/gpu.h"

#include "loop/carveout.h"

#include <errno.h>
#include <stdio.h>

static int fail(struct gpu *gpu, const char *what, CUresult result)
{
	const char *name = NULL;

	if (cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
		name = "unknown error";
	snprintf(gpu->error, sizeof(gpu->error), "%s: %s (%d)", what, name, (int)result);
	return -EIO;
}

static int refuse(struct gpu *gpu, const char *why)
{
	snprintf(gpu->error, sizeof(gpu->error), "%s", why);
	return -EINVAL;
}

static const CUfunction_attribute preferred = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;

/* Where the driver does not say, nothing changes. */
static void divide_cache(const struct gpu *gpu, CUdevice device, uint32_t fit, uint32_t sms)
{
	int now, fixed, reserved, sm;

	if (cuFuncGetAttribute(&now, preferred, gpu->kernel) != CUDA_SUCCESS ||
	    cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, gpu->kernel) !=
		    CUDA_SUCCESS ||
	    cuDeviceGetAttribute(&reserved, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
				 device) != CUDA_SUCCESS ||
	    cuDeviceGetAttribute(&sm, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
				 device) != CUDA_SUCCESS)
		return;
	const struct carveout carveout = {
		.blocks = gpu->blocks,
		.fit = fit,
		.sms = sms,
		.block = (uint64_t)fixed + (uint64_t)reserved + gpu->shared,
		.sm = (uint64_t)sm,
	};
	int wanted = carveout_of(&carveout, now);
	if (wanted != now)
		cuFuncSetAttribute(gpu->kernel, preferred, wanted);
}

/* Blocks that fit on an SM. The driver may count only those that fit beside the cache which an
 * earlier loop of the kernel has left. */
static CUresult count_fitting(const struct gpu *gpu, int *blocks)
{
	int now = CARVEOUT_USUAL;

	cuFuncGetAttribute(&now, preferred, gpu->kernel);
	if (now != CARVEOUT_USUAL)
		cuFuncSetAttribute(gpu->kernel, preferred, CU_SHAREDMEM_CARVEOUT_MAX_SHARED);
	CUresult result = cuOccupancyMaxActiveBlocksPerMultiprocessor(
		blocks, gpu->kernel, (int)gpu->threads, gpu->shared);
	if (now != CARVEOUT_USUAL)
		cuFuncSetAttribute(gpu->kernel, preferred, now);
	return result;
}

/* All blocks must be on the GPU at a time: a block that waits does not end. */
static int fit(struct gpu *gpu, uint32_t blocks)
{
	CUdevice device;
	int per_sm = 0, sms = 0;
	CUresult result = cuCtxGetDevice(&device);

	if (result == CUDA_SUCCESS)
		result = cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
					      device);
	if (result == CUDA_SUCCESS)
		result = count_fitting(gpu, &per_sm);
	if (result != CUDA_SUCCESS)
		return fail(gpu, "the kernel's occupancy", result);
	uint32_t most = (uint32_t)per_sm * (uint32_t)sms;
	if (!most || blocks > most)
		return refuse(gpu, "more blocks than fit on the GPU at a time");
	gpu->blocks = blocks ? blocks : most;
	divide_cache(gpu, device, most, (uint32_t)sms);
	return 0;
}

int gpu_init(struct gpu *gpu, CUfunction kernel, uint32_t blocks, uint32_t threads, uint32_t shared)
{
	*gpu = (struct gpu){.kernel = kernel, .threads = threads, .shared = shared};
	CUstream *streams[] = {&gpu->stream, &gpu->in, &gpu->out};
	CUresult result = cuCtxGetCurrent(&gpu->context);
	int r;

	if (result != CUDA_SUCCESS || !gpu->context)
		return refuse(gpu, "there is no current context");
	if ((r = fit(gpu, blocks)))
		return r;
	for (size_t i = 0; i < 3; i++) {
		result = cuStreamCreate(streams[i], CU_STREAM_NON_BLOCKING);
		if (result != CUDA_SUCCESS)
			return fail(gpu, "cuStreamCreate", result);
	}
	return 0;
}

int gpu_make_state(struct gpu *gpu)
{
	size_t sizes[] = {sizeof(struct weir_loop_device),
			  gpu->blocks * sizeof(struct weir_loop_block)};
	CUdeviceptr *memory[] = {&gpu->device, &gpu->state};

	for (size_t i = 0; i < 2; i++) {
		CUresult result = cuMemAlloc(memory[i], sizes[i]);
		if (result == CUDA_SUCCESS)
			result = cuMemsetD8Async(*memory[i], 0, sizes[i], gpu->stream);
		if (result != CUDA_SUCCESS)
			return fail(gpu, "memory for the loop's state", result);
	}
	return 0;
}

void gpu_deinit(struct gpu *gpu)
{
	CUstream streams[] = {gpu->stream, gpu->in, gpu->out};

	for (size_t i = 0; i < 3; i++) {
		if (!streams[i])
			continue;
		cuStreamSynchronize(streams[i]);
		cuStreamDestroy(streams[i]);
	}
	if (gpu->device)
		cuMemFree(gpu->device);
	if (gpu->state)
		cuMemFree(gpu->state);
	*gpu = (struct gpu){0};
}

void *gpu_host_alloc(struct gpu *gpu, size_t size)
{
	void *memory = NULL;
	CUresult result =
		cuMemHostAlloc(&memory, size, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);

	if (result != CUDA_SUCCESS) {
		fail(gpu, "pinned memory", result);
		return NULL;
	}
	return memory;
}

void gpu_host_free(void *memory)
{
	if (memory)
		cuMemFreeHost(memory);
}

int gpu_launch(struct gpu *gpu, const struct weir_loop_args *args, void **params)
{
	gpu->args = *args;
	params[0] = &gpu->args;
	/* Cooperative: all blocks are on the GPU at a time, and libweir makes no form of it. */
	CUresult result = cuLaunchCooperativeKernel(gpu->kernel, gpu->blocks, 1, 1, gpu->threads, 1,
						    1, gpu->shared, gpu->stream, params);
	return result == CUDA_SUCCESS ? 0 : fail(gpu, "the launch", result);
}

static int ended(struct gpu *gpu, CUresult result)
{
	if (result == CUDA_ERROR_NOT_READY)
		return -EAGAIN;
	return result == CUDA_SUCCESS ? 0 : fail(gpu, "the kernel", result);
}

int gpu_ended(struct gpu *gpu)
{
	return ended(gpu, cuStreamQuery(gpu->stream));
}

int gpu_use(const struct gpu *gpu)
{
	return cuCtxSetCurrent(gpu->context) == CUDA_SUCCESS ? 0 : -EIO;
}

static int mark(CUresult result, CUevent event, CUstream stream)
{
	if (result == CUDA_SUCCESS)
		result = cuEventRecord(event, stream);
	return result == CUDA_SUCCESS ? 0 : -EFAULT;
}

int gpu_copy_in(struct gpu *gpu, CUdeviceptr to, const void *from, size_t size, CUevent event)
{
	return mark(cuMemcpyHtoDAsync(to, from, size, gpu->in), event, gpu->in);
}

int gpu_copy_out(struct gpu *gpu, void *to, CUdeviceptr from, size_t size, CUevent event)
{
	return mark(cuMemcpyDtoHAsync(to, from, size, gpu->out), event, gpu->out);
}

int gpu_copied(struct gpu *gpu, CUevent event)
{
	return ended(gpu, cuEventQuery(event));
}
