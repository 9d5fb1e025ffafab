/* Bulk copies (cp.async.bulk) between shared and global memory. A copy is under way until somebody
 * waits for it in vain, which completes the oldest one: so a program that does not wait reads old
 * bytes, and one that overwrites a store's source too early stores the wrong ones. */
#pragma once

#include "simcuda/ptx/execute/warp.h"
#include "simcuda/ptx/tensor-map.h"

#define PTX_BULK_MAX 32u /* under way; one more completes the oldest */

struct ptx_bulk {
	const struct ptx_insn *insn; /* that started it */
	uint32_t thread;             /* of the block */
	uint32_t group;              /* of a store; 0: not committed yet */
	uint32_t shared, bytes;      /* offset in shared memory */
	uint64_t global;             /* unless a tensor */
	uint64_t *barrier;           /* of a load */
	int32_t at[PTX_TENSOR_RANK_MAX];
	struct ptx_tensor_map map;
};

/* Completes the oldest load, if one is under way. False: a fault was reported; so below. */
bool ptx_bulk_progress(struct ptx_warp *w);
/* Completes all. */
bool ptx_bulk_finish(struct ptx_warp *w);
/* Whether a load is under way that an mbarrier awaits. */
bool ptx_bulk_awaited(const struct ptx_block *block, const uint64_t *barrier);

/* tensor.c: copies a tile. */
bool ptx_tensor_copy(struct ptx_warp *w, const struct ptx_bulk *copy);
/* Bytes of a tile. 0: not a map, or too large. */
uint32_t ptx_tensor_bytes(const struct ptx_tensor_map *map);

/* mbarrier.c: so many bytes have come. */
void ptx_mbarrier_complete(uint64_t *barrier, uint32_t bytes);
