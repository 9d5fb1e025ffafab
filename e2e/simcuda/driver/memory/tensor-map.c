/* Tensor maps, as far as the interpreter copies tiles: dense boxes, with the plain kinds of
 * swizzling. */
#include "simcuda/driver/exec.h"
#include "simcuda/ptx/tensor-map.h"

#include <string.h>

#define BOX_MAX    256u
#define DIM_MAX    (1ull << 32)
#define ALIGNMENT  16u
#define STRIDE_MAX (1ull << 40)

static uint8_t element_size(CUtensorMapDataType type)
{
	static const uint8_t sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

	return (unsigned)type < sizeof(sizes) ? sizes[type] : 0;
}

static bool fill_dimension(struct ptx_tensor_map *map, unsigned k, uint64_t dim, uint64_t stride,
			   uint32_t box)
{
	if (dim == 0 || dim > DIM_MAX || box == 0 || box > BOX_MAX)
		return false;
	if (k && (stride % ALIGNMENT || stride >= STRIDE_MAX))
		return false;
	map->dims[k] = dim == DIM_MAX ? UINT32_MAX : (uint32_t)dim;
	map->strides[k] = stride;
	map->box[k] = (uint16_t)box;
	return true;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank,
				void *address, const cuuint64_t *dims, const cuuint64_t *strides,
				const cuuint32_t *box, const cuuint32_t *steps,
				CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
				CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	static const uint8_t swizzles[] = {0, 32, 64, 128};
	struct ptx_tensor_map map = {.magic = PTX_TENSOR_MAGIC,
				     .rank = (uint8_t)rank,
				     .element = element_size(type),
				     .nan = fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
				     .address = (uintptr_t)address};

	(void)promotion;
	if (!out || !dims || !box || !steps || rank == 0 || rank > PTX_TENSOR_RANK_MAX ||
	    (rank > 1 && !strides) || map.address % ALIGNMENT || !map.element)
		return CUDA_ERROR_INVALID_VALUE;
	if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || (unsigned)swizzle >= sizeof(swizzles))
		return CUDA_ERROR_NOT_SUPPORTED;
	map.swizzle = swizzles[swizzle];
	for (unsigned k = 0; k < rank; k++) {
		if (!fill_dimension(&map, k, dims[k], k ? strides[k - 1] : map.element, box[k]))
			return CUDA_ERROR_INVALID_VALUE;
		if (k && steps[k] != 1)
			return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (map.box[0] * map.element % ALIGNMENT ||
	    (map.swizzle && map.box[0] * map.element > map.swizzle))
		return CUDA_ERROR_INVALID_VALUE;
	memset(out, 0, sizeof(*out));
	memcpy(out, &map, sizeof(map));
	return CUDA_SUCCESS;
}
