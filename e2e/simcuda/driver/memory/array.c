/* Arrays, only as memory that is created and destroyed. There are no textures and no copies of
 * arrays. */
#include "simcuda/driver/exec.h"

#include <stdlib.h>

struct array {
	void *handle;
	CUdeviceptr memory;
};

static unsigned element_size(CUarray_format format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4;
	default:
		return 0;
	}
}

static size_t extent(size_t n, unsigned level)
{
	return n >> level ? n >> level : 1;
}

static CUresult create(void **out, const CUDA_ARRAY3D_DESCRIPTOR *wanted, unsigned levels)
{
	API_CONTEXT(ctx);
	size_t size = 0, element = wanted ? element_size(wanted->Format) : 0;

	if (!out || !element || !wanted->Width || levels < 1 || levels > 16 ||
	    (wanted->NumChannels != 1 && wanted->NumChannels != 2 && wanted->NumChannels != 4) ||
	    wanted->Width > 1u << 17 || wanted->Height > 1u << 17 || wanted->Depth > 1u << 14)
		return CUDA_ERROR_INVALID_VALUE;
	if (wanted->Flags & ~(unsigned)(CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST))
		return CUDA_ERROR_NOT_SUPPORTED;
	for (unsigned level = 0; level < levels; level++)
		size += element * wanted->NumChannels * extent(wanted->Width, level) *
			extent(wanted->Height, level) * extent(wanted->Depth, level);
	RETURN_IF(capture_allows());
	struct array *array = calloc(1, sizeof(*array));
	if (!array)
		return CUDA_ERROR_OUT_OF_MEMORY;
	array->handle = handle_new(HANDLE_ARRAY, array);
	CUresult result = array->handle ? memory_new(&array->memory, ctx, size, RANGE_DEVICE, 0)
					: CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS) {
		if (array->handle)
			handle_free(array->handle);
		free(array);
		return result;
	}
	*out = array->handle;
	return CUDA_SUCCESS;
}

static CUresult destroy(void *handle)
{
	struct array *array;
	CUdeviceptr memory;

	{
		API_ENTER();
		array = handle_get(HANDLE_ARRAY, handle);
		if (!array)
			return CUDA_ERROR_INVALID_HANDLE;
		memory = array->memory;
		handle_free(handle);
		free(array);
	}
	return cuMemFree_v2(memory);
}

CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *wanted)
{
	CUDA_ARRAY3D_DESCRIPTOR all = {0};

	if (!wanted)
		return CUDA_ERROR_INVALID_VALUE;
	all.Width = wanted->Width;
	all.Height = wanted->Height;
	all.Format = wanted->Format;
	all.NumChannels = wanted->NumChannels;
	return create((void **)out, &all, 1);
}

CUresult cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *wanted)
{
	return create((void **)out, wanted, 1);
}

CUresult cuArrayDestroy(CUarray array)
{
	return destroy(array);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *wanted,
				unsigned levels)
{
	return create((void **)out, wanted, levels);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
	return destroy(array);
}
