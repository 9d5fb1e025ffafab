/* Attributes of functions, and occupancy. */
#include "simcuda/driver/exec.h"
#include "simcuda/driver/library.h"

static int max_threads(const struct ptx_kernel *kernel)
{
	uint32_t n = ptx_kernel_max_threads(kernel);

	return n && n < MAX_THREADS ? (int)n : (int)MAX_THREADS;
}

CUresult kernel_attribute(int *out, CUfunction_attribute attribute, const struct ptx_kernel *kernel,
			  int max_dynamic_shared, int carveout)
{
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*out = max_threads(kernel);
		break;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		*out = (int)ptx_kernel_static_shared(kernel);
		break;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		*out = (int)ptx_kernel_local_bytes(kernel);
		break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*out = (int)ptx_kernel_registers(kernel);
		if (*out > 255)
			*out = 255; /* declared ones are virtual */
		break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*out = 90;
		break;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*out = max_dynamic_shared;
		break;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		*out = carveout;
		break;
	default:
		if (attribute >= CU_FUNC_ATTRIBUTE_MAX)
			return CUDA_ERROR_INVALID_VALUE;
		*out = 0;
	}
	return CUDA_SUCCESS;
}

CUresult kernel_set_attribute(CUfunction_attribute attribute, int value,
			      const struct ptx_kernel *kernel, int *max_dynamic_shared,
			      int *carveout)
{
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		if (value < 0 ||
		    (uint32_t)value + ptx_kernel_static_shared(kernel) > MAX_SHARED - 1024)
			return CUDA_ERROR_INVALID_VALUE;
		*max_dynamic_shared = value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		if (value < -1 || value > 100)
			return CUDA_ERROR_INVALID_VALUE;
		*carveout = value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult function_get(struct function **out, CUfunction handle, struct context *ctx)
{
	if (handle_get(HANDLE_KERNEL, handle))
		return library_function(out, (CUkernel)handle, ctx);
	*out = handle_get(HANDLE_FUNCTION, handle);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* A function, or a kernel as a function of the current context. */
static CUresult get(struct function **out, CUfunction handle)
{
	struct context *ctx;

	*out = handle_get(HANDLE_FUNCTION, handle);
	if (*out)
		return CUDA_SUCCESS;
	RETURN_IF(context_current(&ctx));
	return function_get(out, handle, ctx);
}

CUresult cuFuncGetAttribute(int *out, CUfunction_attribute attribute, CUfunction handle)
{
	API_ENTER();
	struct function *f;

	RETURN_IF(get(&f, handle));
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	return kernel_attribute(out, attribute, f->kernel, f->max_dynamic_shared, f->carveout);
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value)
{
	API_ENTER();
	struct function *f;

	RETURN_IF(get(&f, handle));
	return kernel_set_attribute(attribute, value, f->kernel, &f->max_dynamic_shared,
				    &f->carveout);
}

CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config)
{
	API_ENTER();
	struct function *f;

	RETURN_IF(get(&f, handle));
	return config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config)
{
	API_ENTER();
	struct function *f;

	RETURN_IF(get(&f, handle));
	return config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE
								  : CUDA_SUCCESS;
}

API_TELLS(cuFuncGetModule, (OUT(CUmodule), CUfunction handle), function, f, get(&f, handle),
	  f->module->handle)
API_TELLS(cuFuncGetName, (OUT(const char *), CUfunction handle), function, f, get(&f, handle),
	  ptx_kernel_name(f->kernel))

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *size)
{
	API_ENTER();
	struct function *f;
	struct ptx_param param;

	RETURN_IF(get(&f, handle));
	if (!offset || index >= ptx_kernel_param_count(f->kernel))
		return CUDA_ERROR_INVALID_VALUE;
	param = ptx_kernel_param(f->kernel, index);
	*offset = param.offset;
	if (size)
		*size = param.size;
	return CUDA_SUCCESS;
}

API_TELLS(cuFuncIsLoaded, (OUT(CUfunctionLoadingState), CUfunction handle), function, f,
	  get(&f, handle), CU_FUNCTION_LOADING_STATE_LOADED)

CUresult cuFuncLoad(CUfunction handle)
{
	API_ENTER();
	struct function *f;

	return get(&f, handle);
}

/* An SM runs so many blocks at a time, if a block fits at all. */
static int blocks_per_sm(const struct function *f, int threads, size_t dynamic)
{
	if (threads <= 0 || threads > max_threads(f->kernel))
		return 0;
	if (f->max_dynamic_shared < 0 || dynamic > (size_t)f->max_dynamic_shared)
		return 0;
	return (int)sim.machine.config.sm_blocks;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, CUfunction handle,
							      int threads, size_t dynamic,
							      unsigned int flags)
{
	API_ENTER();
	struct function *f;

	RETURN_IF(get(&f, handle));
	if (!out || threads <= 0 || flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	*out = blocks_per_sm(f, threads, dynamic);
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, CUfunction handle, int threads,
						     size_t dynamic)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, handle, threads, dynamic,
								    0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction handle,
						   CUoccupancyB2DSize dynamic_of, size_t dynamic,
						   int limit, unsigned int flags)
{
	API_ENTER();
	struct function *f;
	int best;

	RETURN_IF(get(&f, handle));
	if (!grid || !block || flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	best = max_threads(f->kernel);
	if (limit > 0 && limit < best)
		best = limit;
	while (best > 32 && !blocks_per_sm(f, best, dynamic_of ? dynamic_of(best) : dynamic))
		best -= 32;
	*block = best;
	*grid = (int)machine_slots(&sim.machine.config);
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction handle,
					  CUoccupancyB2DSize dynamic_of, size_t dynamic, int limit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, handle, dynamic_of, dynamic,
							 limit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *out, CUfunction handle, int blocks,
						 int threads)
{
	API_ENTER();
	struct function *f;

	RETURN_IF(get(&f, handle));
	if (!out || blocks <= 0 || threads <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	*out = blocks == 1 ? MAX_SHARED - 1024 - ptx_kernel_static_shared(f->kernel) : 0;
	return CUDA_SUCCESS;
}
