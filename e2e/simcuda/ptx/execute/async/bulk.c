#include "simcuda/ptx/execute/async/bulk.h"

#include "simcuda/ptx/execute/executors.h"
#include "simcuda/ptx/execute/memory.h"
#include "simcuda/ptx/execute/sync.h"

#define ALIGNMENT 16u /* of addresses and sizes */

static bool is_load(const struct ptx_bulk *copy)
{
	uint8_t kind = copy->insn->access.variant;

	return kind == PTX_BULK_LOAD || kind == PTX_TENSOR_LOAD;
}

static bool is_tensor(const struct ptx_insn *i)
{
	return i->access.variant == PTX_TENSOR_LOAD || i->access.variant == PTX_TENSOR_STORE;
}

static bool copy_bytes(struct ptx_warp *w, const struct ptx_bulk *copy)
{
	uint8_t *shared = w->block->shared + copy->shared, *global;

	if (!copy->bytes) /* an empty group */
		return true;
	if (!ptx_global_range(w, copy->insn, copy->global, copy->bytes, &global))
		return false;
	if (is_load(copy))
		memcpy(shared, global, copy->bytes);
	else
		memcpy(global, shared, copy->bytes);
	return true;
}

/* Completes copy @k. */
static bool complete(struct ptx_warp *w, uint32_t k)
{
	struct ptx_block *block = w->block;
	struct ptx_bulk copy = block->bulk[k];

	block->n_bulk--;
	memmove(&block->bulk[k], &block->bulk[k + 1], (block->n_bulk - k) * sizeof(copy));
	if (!(is_tensor(copy.insn) ? ptx_tensor_copy(w, &copy) : copy_bytes(w, &copy)))
		return false;
	if (is_load(&copy))
		ptx_mbarrier_complete(copy.barrier, copy.bytes);
	return true;
}

bool ptx_bulk_progress(struct ptx_warp *w)
{
	for (uint32_t k = 0; k < w->block->n_bulk; k++)
		if (is_load(&w->block->bulk[k]))
			return complete(w, k);
	return true;
}

bool ptx_bulk_finish(struct ptx_warp *w)
{
	while (w->block->n_bulk)
		if (!complete(w, 0))
			return false;
	return true;
}

bool ptx_bulk_awaited(const struct ptx_block *block, const uint64_t *barrier)
{
	for (uint32_t k = 0; k < block->n_bulk; k++)
		if (block->bulk[k].barrier == barrier)
			return true;
	return false;
}

static uint64_t address_of(struct ptx_warp *w, const struct ptx_insn *i, uint32_t lane,
			   enum ptx_bulk_operand at, bool wide)
{
	const void *base = ptx_row(w, i->op[at]), *add = ptx_row(w, i->op[at + 1]);

	if (wide)
		return ((const uint64_t *)base)[lane] + ((const uint64_t *)add)[lane];
	return ((const uint32_t *)base)[lane] + ((const uint32_t *)add)[lane];
}

static bool bad(struct ptx_warp *w, const struct ptx_insn *i, const char *what, uint64_t value)
{
	ptx_fault(w, i, "bulk copy: %s 0x%llx", what, (unsigned long long)value);
	return false;
}

static bool read_map(struct ptx_warp *w, const struct ptx_insn *i, uint32_t lane,
		     struct ptx_bulk *copy)
{
	if (!ptx_read_generic(w, i, lane, copy->global, sizeof(copy->map), &copy->map))
		return false;
	copy->bytes = ptx_tensor_bytes(&copy->map);
	if (!copy->bytes || copy->map.rank != i->access.count)
		return bad(w, i, "no tensor map of this rank at", copy->global);
	for (uint32_t k = 0; k < copy->map.rank; k++)
		copy->at[k] = ((const int32_t *)ptx_row(w, i->op[PTX_BULK_AT + k]))[lane];
	return true;
}

/* Fills in the copy that a lane starts. */
static bool describe(struct ptx_warp *w, const struct ptx_insn *i, uint32_t lane,
		     struct ptx_bulk *copy)
{
	const struct ptx_block *block = w->block;
	uint64_t shared = address_of(w, i, lane, PTX_BULK_SHARED, false), barrier;

	*copy = (struct ptx_bulk){.insn = i, .thread = w->index * PTX_LANES + lane};
	copy->global = address_of(w, i, lane, PTX_BULK_GLOBAL, true);
	if (is_tensor(i) && !read_map(w, i, lane, copy))
		return false;
	if (!is_tensor(i)) {
		copy->bytes = ((const uint32_t *)ptx_row(w, i->op[PTX_BULK_SIZE]))[lane];
		if ((copy->bytes | copy->global) % ALIGNMENT)
			return bad(w, i, "odd address or size", copy->global | copy->bytes);
	}
	if (shared % ALIGNMENT || shared > block->shared_bytes ||
	    copy->bytes > block->shared_bytes - shared)
		return bad(w, i, "no shared memory at", shared);
	copy->shared = (uint32_t)shared;
	if (!is_load(copy))
		return true;
	barrier = address_of(w, i, lane, PTX_BULK_BARRIER, false);
	if (barrier % sizeof(uint64_t) || barrier + sizeof(uint64_t) > block->shared_bytes)
		return bad(w, i, "no mbarrier at", barrier);
	copy->barrier = (uint64_t *)(void *)(block->shared + barrier);
	return true;
}

enum ptx_flow ptx_exec_bulk(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	struct ptx_block *block = w->block;

	for (; mask; mask &= mask - 1) {
		if (block->n_bulk == PTX_BULK_MAX && !complete(w, 0))
			return PTX_FAULT;
		if (!describe(w, i, (uint32_t)__builtin_ctz(mask), &block->bulk[block->n_bulk]))
			return PTX_FAULT;
		block->wrote |= !is_load(&block->bulk[block->n_bulk]);
		block->n_bulk++;
	}
	return PTX_NEXT;
}

/* A store of the lanes @mask. */
static bool started_by(const struct ptx_warp *w, const struct ptx_bulk *copy, uint32_t mask)
{
	return copy->thread / PTX_LANES == w->index && mask >> copy->thread % PTX_LANES & 1 &&
	       !is_load(copy);
}

enum ptx_flow ptx_exec_bulk_commit(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	struct ptx_block *block = w->block;
	uint32_t empty = 0; /* lanes whose group would be empty behind others */

	block->bulk_groups++;
	for (uint32_t k = 0; k < block->n_bulk; k++)
		if (started_by(w, &block->bulk[k], mask))
			empty |= 1u << block->bulk[k].thread % PTX_LANES;
	for (uint32_t k = 0; k < block->n_bulk; k++) {
		if (!started_by(w, &block->bulk[k], mask) || block->bulk[k].group)
			continue;
		block->bulk[k].group = block->bulk_groups;
		empty &= ~(1u << block->bulk[k].thread % PTX_LANES);
	}
	for (; empty; empty &= empty - 1) {
		if (block->n_bulk == PTX_BULK_MAX && !complete(w, 0))
			return PTX_FAULT;
		block->bulk[block->n_bulk++] = (struct ptx_bulk){
			.insn = i,
			.thread = w->index * PTX_LANES + (uint32_t)__builtin_ctz(empty),
			.group = block->bulk_groups};
	}
	return PTX_NEXT;
}

/* The last group of @thread of which at most @left groups come later; 0: none. */
static uint32_t last_awaited(const struct ptx_block *block, uint32_t thread, uint64_t left)
{
	uint32_t last = UINT32_MAX;

	for (uint64_t n = 0; n <= left; n++) {
		uint32_t before = 0;

		for (uint32_t k = 0; k < block->n_bulk; k++) {
			const struct ptx_bulk *copy = &block->bulk[k];

			if (copy->thread == thread && !is_load(copy) && copy->group < last &&
			    copy->group > before)
				before = copy->group;
		}
		last = before;
	}
	return last;
}

enum ptx_flow ptx_exec_bulk_wait(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	struct ptx_block *block = w->block;

	for (; mask; mask &= mask - 1) {
		uint32_t thread = w->index * PTX_LANES + (uint32_t)__builtin_ctz(mask);
		uint32_t last = last_awaited(block, thread, (uint64_t)i->imm);

		for (uint32_t k = 0; k < block->n_bulk;) {
			const struct ptx_bulk *copy = &block->bulk[k];

			if (copy->thread != thread || is_load(copy) || !copy->group ||
			    copy->group > last)
				k++;
			else if (!complete(w, k))
				return PTX_FAULT;
		}
	}
	return PTX_NEXT;
}
