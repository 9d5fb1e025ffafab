/* Arrays: as large as their elements are; how the driver lays them out it does not say. */
#include "memory/memory.h"

#include <stddef.h>

/* Sparse ones and those that are mapped later take nothing. */
#define WITHOUT_MEMORY (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)

/* Whose depth counts layers, or sides: each level has all of them. */
#define IN_LAYERS (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)

/* Bits of one channel; compressed and planar formats are taken for 8 of each element. */
static unsigned channel_bits(CUarray_format format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 32;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
	case CU_AD_FORMAT_UNORM_INT16X1:
	case CU_AD_FORMAT_UNORM_INT16X2:
	case CU_AD_FORMAT_UNORM_INT16X4:
	case CU_AD_FORMAT_SNORM_INT16X1:
	case CU_AD_FORMAT_SNORM_INT16X2:
	case CU_AD_FORMAT_SNORM_INT16X4:
		return 16;
	default:
		return 8;
	}
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t level_bytes(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned level)
{
	uint64_t width = array->Width >> level, height = array->Height >> level;
	uint64_t depth = array->Flags & IN_LAYERS ? array->Depth : array->Depth >> level;
	uint64_t n = times(times(width ? width : 1, height ? height : 1), depth ? depth : 1);

	return times(n, array->NumChannels * channel_bits(array->Format) / 8);
}

static uint64_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned levels)
{
	uint64_t bytes = 0;

	if (!array || array->Flags & WITHOUT_MEMORY)
		return 0;
	for (unsigned level = 0; level < levels && level < 32; level++) {
		uint64_t more = level_bytes(array, level);
		bytes = bytes > UINT64_MAX - more ? UINT64_MAX : bytes + more;
	}
	return bytes;
}

static uint64_t bytes_2d(const CUDA_ARRAY_DESCRIPTOR *array)
{
	CUDA_ARRAY3D_DESCRIPTOR all = {0};

	if (!array)
		return 0;
	all.Width = array->Width;
	all.Height = array->Height;
	all.Format = array->Format;
	all.NumChannels = array->NumChannels;
	return bytes_of(&all, 1);
}

EXPORT CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *array)
{
	struct memory_claim claim;

	if (!memory_claim(&claim, bytes_2d(array)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = real(cuArrayCreate_v2)(out, array);
	return memory_made(&claim, result, RECORD_ARRAY, result ? 0 : (uintptr_t)*out);
}

EXPORT CUresult cuArrayCreate(CUarray *out, const CUDA_ARRAY_DESCRIPTOR_v1 *array)
{
	CUDA_ARRAY_DESCRIPTOR wide = {0};
	struct memory_claim claim;

	if (array) {
		wide.Width = array->Width;
		wide.Height = array->Height;
		wide.Format = array->Format;
		wide.NumChannels = array->NumChannels;
	}
	if (!memory_claim(&claim, bytes_2d(array ? &wide : NULL)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = real(cuArrayCreate)(out, array);
	return memory_made(&claim, result, RECORD_ARRAY, result ? 0 : (uintptr_t)*out);
}

EXPORT CUresult cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *array)
{
	struct memory_claim claim;

	if (!memory_claim(&claim, bytes_of(array, 1)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = real(cuArray3DCreate_v2)(out, array);
	return memory_made(&claim, result, RECORD_ARRAY, result ? 0 : (uintptr_t)*out);
}

EXPORT CUresult cuArray3DCreate(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR_v1 *array)
{
	CUDA_ARRAY3D_DESCRIPTOR wide = {0};
	struct memory_claim claim;

	if (array) {
		wide.Width = array->Width;
		wide.Height = array->Height;
		wide.Depth = array->Depth;
		wide.Format = array->Format;
		wide.NumChannels = array->NumChannels;
		wide.Flags = array->Flags;
	}
	if (!memory_claim(&claim, bytes_of(array ? &wide : NULL, 1)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = real(cuArray3DCreate)(out, array);
	return memory_made(&claim, result, RECORD_ARRAY, result ? 0 : (uintptr_t)*out);
}

EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *array,
				       unsigned levels)
{
	struct memory_claim claim;

	if (!memory_claim(&claim, bytes_of(array, levels)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = real(cuMipmappedArrayCreate)(out, array, levels);
	return memory_made(&claim, result, RECORD_MIPMAP, result ? 0 : (uintptr_t)*out);
}

EXPORT CUresult cuArrayDestroy(CUarray array)
{
	struct record record;
	bool known = memory_releasing(&record, RECORD_ARRAY, (uintptr_t)array);

	driver_ready();
	CUresult result = real(cuArrayDestroy)(array);
	return known ? memory_released(&record, result) : result;
}

EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
	struct record record;
	bool known = memory_releasing(&record, RECORD_MIPMAP, (uintptr_t)array);

	driver_ready();
	CUresult result = real(cuMipmappedArrayDestroy)(array);
	return known ? memory_released(&record, result) : result;
}
