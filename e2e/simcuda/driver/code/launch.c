/* Launches: checking them and copying their parameters. core/blocks.c runs them. */
#include "simcuda/driver/exec.h"

#include <stdlib.h>
#include <string.h>

/* Packed in a buffer whose address and size are named in @extra. */
static CUresult from_buffer(uint8_t *out, size_t bytes, void **extra)
{
	const void *buffer = NULL;
	size_t size = 0;

	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
			size = *(size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (size > bytes + 15 || (!buffer && bytes)) /* it may be padded */
		return CUDA_ERROR_INVALID_VALUE;
	if (buffer)
		memcpy(out, buffer, size < bytes ? size : bytes);
	return CUDA_SUCCESS;
}

/* As an array of pointers. */
static CUresult from_pointers(uint8_t *out, const struct ptx_kernel *kernel, void **params)
{
	size_t n = ptx_kernel_param_count(kernel);

	for (size_t i = 0; i < n; i++) {
		struct ptx_param p = ptx_kernel_param(kernel, i);

		if (!params || !params[i])
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(out + p.offset, params[i], p.size);
	}
	return CUDA_SUCCESS;
}

static CUresult copy_params(uint8_t **out, const struct ptx_kernel *kernel, void **params,
			    void **extra)
{
	size_t bytes = ptx_kernel_param_bytes(kernel);
	uint8_t *buffer;
	CUresult r;

	if (params && extra)
		return CUDA_ERROR_INVALID_VALUE;
	buffer = calloc(1, bytes + 16);
	if (!buffer)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = extra ? from_buffer(buffer, bytes, extra) : from_pointers(buffer, kernel, params);
	if (r)
		free(buffer);
	else
		*out = buffer;
	return r;
}

static CUresult check_shape(const struct function *f, const unsigned grid[3],
			    const unsigned block[3], unsigned shared, bool cooperative)
{
	uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
	uint64_t blocks = (uint64_t)grid[0] * grid[1];

	if (!threads || !blocks || !grid[2] || grid[0] > 0x7fffffff || grid[1] > 65535 ||
	    grid[2] > 65535 || block[0] > 1024 || block[1] > 1024 || block[2] > 64)
		return CUDA_ERROR_INVALID_VALUE;
	if (threads > MAX_THREADS || (int)shared > f->max_dynamic_shared || (int)shared < 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (threads > ptx_kernel_max_threads(f->kernel))
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	if (cooperative && blocks * grid[2] > machine_given_slots(&sim.machine))
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	return CUDA_SUCCESS;
}

CUresult kernel_work(struct work *out, struct context *ctx, CUfunction function,
		     const unsigned grid[3], const unsigned block[3], unsigned shared,
		     void **params, void **extra, bool cooperative)
{
	struct ptx_error error = {0};
	struct function *f;
	uint8_t *buffer;

	RETURN_IF(function_get(&f, function, ctx));
	if (f->module->ctx != ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	if (ptx_kernel_check(f->kernel, &error)) {
		sim_say("kernel %s cannot run here: line %d: %s", ptx_kernel_name(f->kernel),
			error.line, error.message);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	RETURN_IF(check_shape(f, grid, block, shared, cooperative));
	RETURN_IF(copy_params(&buffer, f->kernel, params, extra));
	*out = (struct work){
		.kind = WORK_KERNEL,
		.ctx = ctx,
		.kernel = {.function = f,
			   .module = module_ref(f->module),
			   .launch = {.grid = {grid[0], grid[1], grid[2]},
				      .block = {block[0], block[1], block[2]},
				      .dynamic_shared = shared,
				      .params = buffer,
				      .sm_count = sim.machine.config.sms},
			   .cooperative = cooperative},
	};
	out->kernel.params = buffer;
	return CUDA_SUCCESS;
}

/* What a launch may say besides. */
struct how {
	bool cooperative, overlaps;
	bool has_priority; /* of its own; else the stream's */
	int priority;
};

static CUresult launch(CUfunction function, const unsigned grid[3], const unsigned block[3],
		       unsigned shared, CUstream stream, void **params, void **extra,
		       const struct how *how)
{
	API_ENTER();
	struct stream *s;
	struct work work;

	RETURN_IF(stream_get(&s, stream));
	RETURN_IF(kernel_work(&work, s->ctx, function, grid, block, shared, params, extra,
			      how->cooperative));
	work.kernel.overlaps = how->overlaps;
	work.kernel.priority = how->has_priority ? how->priority : s->priority;
	return stream_submit(s, &work, NULL);
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
			unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			unsigned int block_z, unsigned int shared, CUstream stream, void **params,
			void **extra)
{
	const unsigned grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};

	return launch(function, grid, block, shared, stream, params, extra, &(struct how){0});
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
				   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
				   unsigned int block_z, unsigned int shared, CUstream stream,
				   void **params)
{
	const unsigned grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};

	return launch(function, grid, block, shared, stream, params, NULL,
		      &(struct how){.cooperative = true});
}

/* Hints are ignored: a launch that is serialised more than it must be is still right. What would
 * change the meaning of the kernel is refused. */
static CUresult read_attributes(const CUlaunchConfig *config, struct how *how)
{
	for (unsigned i = 0; i < config->numAttrs; i++) {
		const CUlaunchAttribute *a = &config->attrs[i];

		switch (a->id) {
		case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
			how->cooperative = a->value.cooperative != 0;
			break;
		case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
			how->overlaps = a->value.programmaticStreamSerializationAllowed != 0;
			break;
		case CU_LAUNCH_ATTRIBUTE_PRIORITY:
			how->has_priority = true;
			how->priority = a->value.priority;
			break;
		case CU_LAUNCH_ATTRIBUTE_IGNORE:
		case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
			break;
		case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
			if (a->value.clusterDim.x > 1 || a->value.clusterDim.y > 1 ||
			    a->value.clusterDim.z > 1)
				return CUDA_ERROR_NOT_SUPPORTED;
			break;
		default:
			return CUDA_ERROR_NOT_SUPPORTED;
		}
	}
	return CUDA_SUCCESS;
}

static CUresult launch_config(const CUlaunchConfig *c, CUstream stream, CUfunction function,
			      void **params, void **extra)
{
	struct how how = {0};

	if (c->numAttrs && !c->attrs)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(read_attributes(c, &how));
	const unsigned grid[3] = {c->gridDimX, c->gridDimY, c->gridDimZ};
	const unsigned block[3] = {c->blockDimX, c->blockDimY, c->blockDimZ};

	return launch(function, grid, block, c->sharedMemBytes, stream, params, extra, &how);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
			  void **extra)
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	return launch_config(config, config->hStream, function, params, extra);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **params,
			       void **extra)
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	return launch_config(config, per_thread(config->hStream), function, params, extra);
}
