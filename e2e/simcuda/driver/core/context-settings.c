/* What a context tells, and what can be set: flags, limits, priorities, caches. */
#include "simcuda/driver/exec.h"

#include <string.h>

API_TELLS(cuCtxGetDevice, (OUT(CUdevice)), context, ctx, context_any(&ctx),
	  (CUdevice)ctx->device->index)
API_TELLS(cuCtxGetDevice_v2, (OUT(CUdevice), CUcontext handle), context, ctx,
	  context_given(&ctx, handle), (CUdevice)ctx->device->index)
API_TELLS(cuCtxGetId, (CUcontext handle, OUT(unsigned long long)), context, ctx,
	  context_given(&ctx, handle), ctx->id)
API_TELLS(cuCtxGetApiVersion, (CUcontext handle, OUT(unsigned int)), context, ctx,
	  context_given(&ctx, handle), 3020)
API_TELLS(cuCtxGetFlags, (OUT(unsigned int)), context, ctx, context_any(&ctx), ctx->flags)

CUresult cuCtxSetFlags(unsigned int flags)
{
	API_CONTEXT(ctx);

	if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	ctx->flags = flags;
	return CUDA_SUCCESS;
}

static const size_t default_limits[LIMIT_COUNT] = {
	[CU_LIMIT_STACK_SIZE] = 1024,
	[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
	[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
	[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
	[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
	[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
};

/* Bytes of the GPU that the limits allow beyond the defaults. A stack is each thread's. */
static uint64_t limits_bytes(const size_t *limits)
{
	static const CUlimit buffers[] = {CU_LIMIT_STACK_SIZE, CU_LIMIT_PRINTF_FIFO_SIZE,
					  CU_LIMIT_MALLOC_HEAP_SIZE};
	uint64_t sum = 0, each, threads = (uint64_t)MAX_THREADS * sim.machine.config.sms;

	for (size_t i = 0; i < countof(buffers); i++) {
		each = limits[buffers[i]];
		each = each > default_limits[buffers[i]] ? each - default_limits[buffers[i]] : 0;
		if (__builtin_mul_overflow(each, i ? 1 : threads, &each) ||
		    __builtin_add_overflow(sum, each, &sum))
			return UINT64_MAX;
	}
	return sum;
}

void limits_init(size_t limits[LIMIT_COUNT])
{
	memcpy(limits, default_limits, sizeof(default_limits));
}

CUresult cuCtxGetLimit(size_t *out, CUlimit limit)
{
	API_CONTEXT(ctx);

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*out = ctx->limits[limit];
	return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	API_CONTEXT(ctx);
	size_t limits[LIMIT_COUNT];
	uint64_t bytes;

	if (limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	memcpy(limits, ctx->limits, sizeof(limits));
	limits[limit] = value;
	bytes = limits_bytes(limits);
	if (bytes > ctx->limits_charge &&
	    machine_charge(&sim.machine, ctx->device->gpu, bytes - ctx->limits_charge))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (bytes < ctx->limits_charge)
		machine_refund(&sim.machine, ctx->device->gpu, ctx->limits_charge - bytes);
	ctx->limits_charge = bytes;
	ctx->limits[limit] = value;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	API_CONTEXT(ctx);

	(void)ctx;
	if (least)
		*least = LEAST_PRIORITY;
	if (greatest)
		*greatest = GREATEST_PRIORITY;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *out)
{
	API_CONTEXT(ctx);

	(void)ctx;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = CU_FUNC_CACHE_PREFER_NONE;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	API_CONTEXT(ctx);

	(void)ctx;
	return config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache(void)
{
	API_CONTEXT(ctx);

	(void)ctx;
	return CUDA_SUCCESS;
}
