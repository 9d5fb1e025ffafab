/* What cuTensorMapEncodeTiled writes here; kernels find it in the 128 bytes of a CUtensorMap. */
#pragma once

#include <stdint.h>

#define PTX_TENSOR_MAGIC    0x70616d74u
#define PTX_TENSOR_RANK_MAX 5

struct ptx_tensor_map {
	uint32_t magic;
	uint8_t rank, element; /* bytes of an element */
	uint8_t swizzle; /* bytes of a row in which pieces of 16 bytes change places; 0: none */
	uint8_t nan;     /* what is outside of the tensor reads as NaN, not as 0 */
	uint64_t address;
	uint64_t strides[PTX_TENSOR_RANK_MAX]; /* bytes; [0] is @element */
	uint32_t dims[PTX_TENSOR_RANK_MAX];
	uint16_t box[PTX_TENSOR_RANK_MAX];
};
_Static_assert(sizeof(struct ptx_tensor_map) <= 128, "larger than a CUtensorMap");
