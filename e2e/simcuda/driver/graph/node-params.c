/* What a node is told to be (node.c), the other way round: its parameters and attributes. An answer
 * points into the node and is valid until the next such call. */
#include "simcuda/driver/graph.h"

#include <stdlib.h>
#include <string.h>

/* The node, if it is of the kind that the call is for. @argument: the call's other one. */
static CUresult get(struct node **out, CUgraphNode handle, enum work_kind kind,
		    const void *argument)
{
	struct node *n = handle_get(HANDLE_NODE, handle);

	if (!n || n->work.kind != kind || !argument)
		return CUDA_ERROR_INVALID_VALUE;
	*out = n;
	return CUDA_SUCCESS;
}

static CUcontext context_handle(const struct work *work)
{
	return context_lives(work->ctx) ? work->ctx->handle : NULL;
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v2 *out)
{
	API_ENTER();
	const struct ptx_launch *launch;
	const struct function *f;
	struct node *n;
	size_t n_params;
	void **params;

	RETURN_IF(get(&n, handle, WORK_KERNEL, out));
	f = n->work.kernel.function;
	launch = &n->work.kernel.launch;
	n_params = ptx_kernel_param_count(f->kernel);
	params = realloc(n->shown, (n_params + 1) * sizeof(void *));
	if (!params)
		return CUDA_ERROR_OUT_OF_MEMORY;
	n->shown = params;
	for (size_t i = 0; i < n_params; i++)
		params[i] = n->work.kernel.params + ptx_kernel_param(f->kernel, i).offset;
	*out = (CUDA_KERNEL_NODE_PARAMS_v2){
		.func = f->handle,
		.gridDimX = launch->grid.x,
		.gridDimY = launch->grid.y,
		.gridDimZ = launch->grid.z,
		.blockDimX = launch->block.x,
		.blockDimY = launch->block.y,
		.blockDimZ = launch->block.z,
		.sharedMemBytes = launch->dynamic_shared,
		.kernelParams = params,
		.kern = f->of,
		.ctx = context_handle(&n->work),
	};
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1 *out)
{
	CUDA_KERNEL_NODE_PARAMS_v2 wide;

	RETURN_IF(cuGraphKernelNodeGetParams_v2(handle, out ? &wide : NULL));
	memcpy(out, &wide, sizeof(*out));
	return CUDA_SUCCESS;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D *out)
{
	API_ENTER();
	struct node *n;

	RETURN_IF(get(&n, handle, WORK_COPY, out));
	*out = (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = (CUdeviceptr)n->work.copy.from.base,
		.srcPitch = n->work.copy.from.pitch,
		.srcHeight = n->work.copy.from.height,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = (CUdeviceptr)n->work.copy.to.base,
		.dstPitch = n->work.copy.to.pitch,
		.dstHeight = n->work.copy.to.height,
		.WidthInBytes = n->work.copy.width,
		.Height = n->work.copy.rows,
		.Depth = n->work.copy.slices,
	};
	return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *out)
{
	API_ENTER();
	struct node *n;

	RETURN_IF(get(&n, handle, WORK_SET, out));
	*out = (CUDA_MEMSET_NODE_PARAMS){
		.dst = (CUdeviceptr)n->work.set.base,
		.pitch = n->work.set.pitch,
		.value = n->work.set.value,
		.elementSize = n->work.set.element,
		.width = n->work.set.width,
		.height = n->work.set.rows,
	};
	return CUDA_SUCCESS;
}

CUresult cuGraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS *out)
{
	API_ENTER();
	struct node *n;

	RETURN_IF(get(&n, handle, WORK_HOST, out));
	*out = (CUDA_HOST_NODE_PARAMS){n->work.host.function, n->work.host.data};
	return CUDA_SUCCESS;
}

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode handle, CUDA_BATCH_MEM_OP_NODE_PARAMS *out)
{
	API_ENTER();
	struct node *n;

	RETURN_IF(get(&n, handle, WORK_MEMOPS, out));
	*out = (CUDA_BATCH_MEM_OP_NODE_PARAMS){
		.ctx = context_handle(&n->work),
		.count = n->work.memops.count,
		.paramArray = n->work.memops.ops,
	};
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID attribute,
				       const CUkernelNodeAttrValue *value)
{
	API_ENTER();
	struct node *n;

	RETURN_IF(get(&n, handle, WORK_KERNEL, value));
	if (attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
		n->work.kernel.cooperative = value->cooperative != 0;
	else if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		n->work.kernel.priority = value->priority;
	else if (attribute != CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW)
		return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID attribute,
				       CUkernelNodeAttrValue *value)
{
	API_ENTER();
	struct node *n;

	RETURN_IF(get(&n, handle, WORK_KERNEL, value));
	memset(value, 0, sizeof(*value));
	if (attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
		value->cooperative = n->work.kernel.cooperative;
	else if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		value->priority = n->work.kernel.priority;
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from)
{
	API_ENTER();
	struct node *a, *b;

	RETURN_IF(get(&a, to, WORK_KERNEL, to));
	RETURN_IF(get(&b, from, WORK_KERNEL, from));
	a->work.kernel.cooperative = b->work.kernel.cooperative;
	a->work.kernel.priority = b->work.kernel.priority;
	return CUDA_SUCCESS;
}
