/* Tiles of tensors: boxes of up to five dimensions that tensor maps describe. In shared memory a
 * tile is dense. With swizzling, pieces of 16 bytes change places by the address's bits 7 to 9. */
#include "simcuda/ptx/execute/async/bulk.h"

#include "simcuda/ptx/execute/memory.h"
#include "simcuda/ptx/execute/sync.h"

#define TILE_MAX  (256u * 1024) /* bytes; shared memory has less */
#define PIECE     16u
#define BOX_MAX   256u
#define ONE_BYTES 255 /* NaN in every format */

uint32_t ptx_tensor_bytes(const struct ptx_tensor_map *map)
{
	uint64_t bytes = map->element;

	if (map->magic != PTX_TENSOR_MAGIC || !map->rank || map->rank > PTX_TENSOR_RANK_MAX ||
	    !map->element || map->element > 8)
		return 0;
	for (uint32_t k = 0; k < map->rank; k++) {
		if (!map->box[k] || map->box[k] > BOX_MAX || bytes > TILE_MAX)
			return 0;
		bytes *= map->box[k];
	}
	return bytes > TILE_MAX || bytes % PIECE ? 0 : (uint32_t)bytes;
}

/* Where byte @offset of shared memory lies. */
static uint32_t swizzle(const struct ptx_tensor_map *map, uint32_t offset)
{
	uint32_t mask = map->swizzle ? map->swizzle / PIECE - 1u : 0;

	return offset ^ ((offset >> 7 & mask) << 4);
}

/* Copies a row of the box, which begins at @global; @inside: its coordinates but the first are. */
static bool copy_row(struct ptx_warp *w, const struct ptx_bulk *copy, uint64_t global,
		     uint32_t offset, bool inside)
{
	const struct ptx_tensor_map *map = &copy->map;
	bool is_load = copy->insn->access.variant == PTX_TENSOR_LOAD;

	for (uint32_t k = 0; k < map->box[0]; k++, offset += map->element) {
		int64_t x = (int64_t)copy->at[0] + k;
		uint32_t place = swizzle(map, copy->shared + offset);
		uint8_t *at = w->block->shared + place, *to;

		/* A swizzled piece may lie behind the tile's end. */
		if (place + map->element > w->block->shared_bytes) {
			ptx_fault(w, copy->insn, "no shared memory at 0x%x", place);
			return false;
		}
		if (!inside || x < 0 || x >= map->dims[0]) {
			if (is_load)
				memset(at, map->nan ? ONE_BYTES : 0, map->element);
			continue;
		}
		if (!ptx_global_range(w, copy->insn, global + (uint64_t)x * map->element,
				      map->element, &to))
			return false;
		memcpy(is_load ? at : to, is_load ? to : at, map->element);
	}
	return true;
}

/* The next row of the box. False: there is none. */
static bool next_row(const struct ptx_tensor_map *map, uint32_t row[PTX_TENSOR_RANK_MAX])
{
	for (uint32_t k = 1; k < map->rank; k++) {
		if (++row[k] < map->box[k])
			return true;
		row[k] = 0;
	}
	return false;
}

bool ptx_tensor_copy(struct ptx_warp *w, const struct ptx_bulk *copy)
{
	const struct ptx_tensor_map *map = &copy->map;
	uint32_t row[PTX_TENSOR_RANK_MAX] = {0}, offset = 0;

	do {
		uint64_t global = map->address;
		bool inside = true;

		for (uint32_t k = 1; k < map->rank; k++) {
			int64_t at = (int64_t)copy->at[k] + row[k];

			inside = inside && at >= 0 && at < map->dims[k];
			global += (uint64_t)at * map->strides[k];
		}
		if (!copy_row(w, copy, global, offset, inside))
			return false;
		offset += (uint32_t)map->box[0] * map->element;
	} while (next_row(map, row));
	return true;
}
