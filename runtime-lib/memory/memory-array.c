/* Arrays count as their elements: the driver does not tell how it pads them. */
#include "memory/memory.h"

/* Sparse arrays, and arrays that are mapped later, take no memory. */
#define WITHOUT_MEMORY (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)

/* Their depth counts layers or sides, which each mipmap level has in full. */
#define IN_LAYERS (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)

/* Bits of one channel. Compressed and planar formats count as 8. */
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

static uint64_t level_bytes(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned level)
{
	uint64_t width = array->Width >> level, height = array->Height >> level;
	uint64_t depth = array->Flags & IN_LAYERS ? array->Depth : array->Depth >> level;
	uint64_t n = saturating_mul(saturating_mul(larger(width, 1), larger(height, 1)),
				    larger(depth, 1));

	return saturating_mul(n, array->NumChannels * channel_bits(array->Format) / 8);
}

static uint64_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned levels)
{
	uint64_t bytes = 0;

	if (!array || array->Flags & WITHOUT_MEMORY)
		return 0;
	for (unsigned level = 0; level < levels && level < 32; level++)
		bytes = saturating_add(bytes, level_bytes(array, level));
	return bytes;
}

/* Descriptors differ in types only; those of two dimensions have no depth. @n: levels. */
#define BYTES_3D(n)                                                                    \
	bytes_of(array ? &(CUDA_ARRAY3D_DESCRIPTOR){.Width = array->Width,             \
						    .Height = array->Height,           \
						    .Depth = array->Depth,             \
						    .Format = array->Format,           \
						    .NumChannels = array->NumChannels, \
						    .Flags = array->Flags}             \
		       : NULL,                                                         \
		 n)
#define BYTES_2D                                                                       \
	bytes_of(array ? &(CUDA_ARRAY3D_DESCRIPTOR){.Width = array->Width,             \
						    .Height = array->Height,           \
						    .Format = array->Format,           \
						    .NumChannels = array->NumChannels} \
		       : NULL,                                                         \
		 1)

MEMORY_ALLOCATES(cuArrayCreate_v2, RECORD_ARRAY, BYTES_2D,
		 (CUarray * out, const CUDA_ARRAY_DESCRIPTOR *array), (out, array))
MEMORY_ALLOCATES(cuArrayCreate, RECORD_ARRAY, BYTES_2D,
		 (CUarray * out, const CUDA_ARRAY_DESCRIPTOR_v1 *array), (out, array))
MEMORY_ALLOCATES(cuArray3DCreate_v2, RECORD_ARRAY, BYTES_3D(1),
		 (CUarray * out, const CUDA_ARRAY3D_DESCRIPTOR *array), (out, array))
MEMORY_ALLOCATES(cuArray3DCreate, RECORD_ARRAY, BYTES_3D(1),
		 (CUarray * out, const CUDA_ARRAY3D_DESCRIPTOR_v1 *array), (out, array))
MEMORY_ALLOCATES(cuMipmappedArrayCreate, RECORD_MIPMAP, BYTES_3D(levels),
		 (CUmipmappedArray * out, const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned levels),
		 (out, array, levels))

MEMORY_RELEASES(cuArrayDestroy, RECORD_ARRAY, array, (CUarray array), (array), )
MEMORY_RELEASES(cuMipmappedArrayDestroy, RECORD_MIPMAP, array, (CUmipmappedArray array), (array), )
