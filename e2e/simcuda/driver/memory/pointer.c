/* Attributes of addresses. */
#include "simcuda/driver/exec.h"

#include <string.h>

static bool of_host(const struct range *r)
{
	return r->kind == RANGE_HOST || r->kind == RANGE_REGISTERED;
}

/* Writes @attribute of an address in @r to @out. @r of size 0: an unknown address, for which most
 * attributes are zero. */
static CUresult answer(void *out, CUpointer_attribute attribute, const struct range *r,
		       CUdeviceptr address)
{
	unsigned number = 0;
	bool flag = false;

	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)out = r->ctx ? r->ctx->handle : NULL;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		number = !r->size ? 0 : of_host(r) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		*(unsigned *)out = number;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)out = r->size ? address : 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*(void **)out = r->size && (of_host(r) || r->kind == RANGE_MANAGED)
					? (void *)address
					: NULL;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)out = r->id;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)out = !r->size ? -2 : (int)(r->ctx ? r->ctx->device->index : r->device);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)out = r->base;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)out = r->size;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)out = r->size ? pool_handle(r->pool) : NULL;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		number = !r->size       ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE
			 : r->read_only ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ
					: CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
		*(unsigned *)out = number;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(unsigned long long *)out = 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		flag = r->kind == RANGE_MANAGED;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		flag = r->size != 0;
		break;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	*(bool *)out = flag;
	return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
	API_ENTER();
	struct range range;

	if (!out || !range_find(address, &range))
		return CUDA_ERROR_INVALID_VALUE;
	return answer(out, attribute, &range, address);
}

CUresult cuPointerGetAttributes(unsigned int n, CUpointer_attribute *attributes, void **out,
				CUdeviceptr address)
{
	API_ENTER();
	struct range range;

	if (n && (!attributes || !out))
		return CUDA_ERROR_INVALID_VALUE;
	if (!range_find(address, &range))
		memset(&range, 0, sizeof(range));
	for (unsigned i = 0; i < n; i++)
		RETURN_IF(out[i] ? answer(out[i], attributes[i], &range, address)
				 : CUDA_ERROR_INVALID_VALUE);
	return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
			       CUdeviceptr address)
{
	API_ENTER();
	struct range range;

	if (!value || !range_find(address, &range))
		return CUDA_ERROR_INVALID_VALUE;
	/* Nothing to do: all copies synchronise as such a range wants. */
	return attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ? CUDA_SUCCESS
							     : CUDA_ERROR_INVALID_VALUE;
}
