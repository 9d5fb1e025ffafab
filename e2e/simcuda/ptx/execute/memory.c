/* Loads, stores, fences, and conversions between generic and other addresses. Each element of
 * shared memory is read or written with one access, as the hardware does. */
#include "simcuda/ptx/execute/memory.h"

#include "simcuda/ptx/execute/executors.h"

#include <stdatomic.h>

#define ALIKE(type, pointer) ((type *)(void *)(pointer))

static uint64_t load_element(const uint8_t *at, uint32_t bytes, bool sign)
{
	switch (bytes) {
	case 1: {
		uint8_t value = __atomic_load_n(at, __ATOMIC_RELAXED);
		return sign ? (uint64_t)(int8_t)value : value;
	}
	case 2: {
		uint16_t value = __atomic_load_n(ALIKE(const uint16_t, at), __ATOMIC_RELAXED);
		return sign ? (uint64_t)(int16_t)value : value;
	}
	case 4: {
		uint32_t value = __atomic_load_n(ALIKE(const uint32_t, at), __ATOMIC_RELAXED);
		return sign ? (uint64_t)(int32_t)value : value;
	}
	default:
		return __atomic_load_n(ALIKE(const uint64_t, at), __ATOMIC_RELAXED);
	}
}

static void store_element(uint8_t *at, uint32_t bytes, uint64_t value)
{
	switch (bytes) {
	case 1:
		__atomic_store_n(at, (uint8_t)value, __ATOMIC_RELAXED);
		break;
	case 2:
		__atomic_store_n(ALIKE(uint16_t, at), (uint16_t)value, __ATOMIC_RELAXED);
		break;
	case 4:
		__atomic_store_n(ALIKE(uint32_t, at), (uint32_t)value, __ATOMIC_RELAXED);
		break;
	default:
		__atomic_store_n(ALIKE(uint64_t, at), value, __ATOMIC_RELAXED);
	}
}

static void put(void *row, uint32_t lane, uint32_t row_bytes, uint64_t value)
{
	switch (row_bytes) {
	case 2:
		((uint16_t *)row)[lane] = (uint16_t)value;
		break;
	case 4:
		((uint32_t *)row)[lane] = (uint32_t)value;
		break;
	default:
		((uint64_t *)row)[lane] = value;
	}
}

static uint64_t get(const void *row, uint32_t lane, uint32_t row_bytes)
{
	return row_bytes == 2   ? ((const uint16_t *)row)[lane]
	       : row_bytes == 4 ? ((const uint32_t *)row)[lane]
				: ((const uint64_t *)row)[lane];
}

/* One element of each lane. */
static void load_row(const struct ptx_access *access, uint32_t mask, void *row,
		     uint8_t *const host[PTX_LANES], uint32_t offset)
{
	if (access->bytes == 4 && access->row_bytes == 4) {
		uint32_t *d = row;
		PTX_FOR_LANES(mask, lane,
			      d[lane] = __atomic_load_n(ALIKE(uint32_t, host[lane] + offset),
							__ATOMIC_RELAXED););
	} else if (access->bytes == 8) {
		uint64_t *d = row;
		PTX_FOR_LANES(mask, lane,
			      d[lane] = __atomic_load_n(ALIKE(uint64_t, host[lane] + offset),
							__ATOMIC_RELAXED););
	} else {
		PTX_FOR_LANES(mask, lane,
			      put(row, lane, access->row_bytes,
				  load_element(host[lane] + offset, access->bytes, access->sign)););
	}
}

static void store_row(const struct ptx_access *access, uint32_t mask, const void *row,
		      uint8_t *const host[PTX_LANES], uint32_t offset)
{
	/* Lanes in order: where several write to one place, the last one stays. */
	for (; mask; mask &= mask - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(mask);
		if (access->bytes == 4)
			__atomic_store_n(ALIKE(uint32_t, host[lane] + offset),
					 (uint32_t)get(row, lane, access->row_bytes),
					 __ATOMIC_RELAXED);
		else
			store_element(host[lane] + offset, access->bytes,
				      get(row, lane, access->row_bytes));
	}
}

enum ptx_flow ptx_exec_load(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	const struct ptx_access *access = &i->access;
	uint8_t *host[PTX_LANES];

	if (!ptx_resolve(w, i, mask, (uint32_t)access->bytes * access->count, host))
		return PTX_FAULT;
	for (uint32_t k = 0; k < access->count; k++)
		load_row(access, mask, ptx_row(w, i->op[k + 1]), host, k * access->bytes);
	if (access->order & PTX_ACQUIRE)
		atomic_thread_fence(memory_order_acquire);
	return PTX_NEXT;
}

enum ptx_flow ptx_exec_store(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	const struct ptx_access *access = &i->access;
	uint8_t *host[PTX_LANES];

	if (!ptx_resolve(w, i, mask, (uint32_t)access->bytes * access->count, host))
		return PTX_FAULT;
	if (access->order & PTX_RELEASE)
		atomic_thread_fence(memory_order_release);
	for (uint32_t k = 0; k < access->count; k++)
		store_row(access, mask, ptx_row(w, i->op[k + 1]), host, k * access->bytes);
	return PTX_NEXT;
}

/* A kernel's parameter at a fixed offset: the same for all lanes, of any alignment. */
enum ptx_flow ptx_exec_load_param(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	const struct ptx_access *access = &i->access;
	uint64_t size = (uint64_t)access->bytes * access->count;

	if (i->imm < 0 || (uint64_t)i->imm + size > w->block->param_bytes)
		return ptx_fault(w, i, "no parameter at offset %lld (%llu bytes)",
				 (long long)i->imm, (unsigned long long)size);
	for (uint32_t k = 0; k < access->count; k++) {
		uint8_t *row = ptx_row(w, i->op[k + 1]);
		uint64_t aligned = 0;
		memcpy(&aligned, w->block->params + i->imm + k * access->bytes, access->bytes);
		uint64_t value = load_element((uint8_t *)&aligned, access->bytes, access->sign);
		PTX_FOR_LANES(mask, lane, put(row, lane, access->row_bytes, value););
	}
	return PTX_NEXT;
}

enum ptx_flow ptx_exec_fence(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	(void)w;
	(void)i;
	(void)mask;
	atomic_thread_fence(memory_order_seq_cst);
	return PTX_NEXT;
}

enum ptx_flow ptx_exec_nothing(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	(void)w;
	(void)i;
	(void)mask;
	return PTX_NEXT;
}

/* The generic address of offset 0 of a space, and how much further it is for the next lane. */
static uint64_t window(const struct ptx_warp *w, enum ptx_space space, uint64_t *step)
{
	*step = 0;
	switch (space) {
	case PTX_SPACE_SHARED:
		return (uintptr_t)w->block->shared;
	case PTX_SPACE_PARAM:
		return (uintptr_t)w->block->params;
	case PTX_SPACE_LOCAL:
		*step = w->block->stack_bytes;
		return (uintptr_t)w->stack;
	default:
		return 0;
	}
}

enum ptx_flow ptx_exec_to_generic(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	uint64_t step, start = window(w, i->access.space, &step);
	uint64_t *d = ptx_row(w, i->op[0]);
	const uint64_t *a = ptx_row(w, i->op[1]);

	PTX_FOR_LANES(mask, lane, d[lane] = a[lane] + start + lane * step;);
	return PTX_NEXT;
}

enum ptx_flow ptx_exec_from_generic(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	uint64_t step, start = window(w, i->access.space, &step);
	uint64_t *d = ptx_row(w, i->op[0]);
	const uint64_t *a = ptx_row(w, i->op[1]);

	PTX_FOR_LANES(mask, lane, d[lane] = a[lane] - start - lane * step;);
	return PTX_NEXT;
}

static bool lies_in(const struct ptx_warp *w, enum ptx_space space, uint64_t address)
{
	const struct ptx_block *block = w->block;
	bool shared = address - (uintptr_t)block->shared < block->shared_bytes;
	bool local = address - (uintptr_t)block->stacks < block->stacks_bytes;
	bool param = address - (uintptr_t)block->params < block->param_bytes;

	switch (space) {
	case PTX_SPACE_SHARED:
		return shared;
	case PTX_SPACE_LOCAL:
		return local;
	case PTX_SPACE_PARAM:
		return param;
	default:
		return !shared && !local && !param;
	}
}

enum ptx_flow ptx_exec_is_space(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	const uint64_t *a = ptx_row(w, i->op[1]);
	uint32_t *d = ptx_row(w, i->op[0]);

	for (; mask; mask &= mask - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(mask);
		bool there = lies_in(w, i->access.space, a[lane]);
		*d = (*d & ~(1u << lane)) | (uint32_t)there << lane;
	}
	return PTX_NEXT;
}

enum ptx_flow ptx_exec_frame_address(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	void *d = ptx_row(w, i->op[0]);

	PTX_FOR_LANES(mask, lane,
		      put(d, lane, i->access.row_bytes, w->lane_locals[lane] + (uint64_t)i->imm););
	return PTX_NEXT;
}

/* cp.async, at once: op[1] + op[2] is the source, op[3] how much of it, the rest is zero. */
enum ptx_flow ptx_exec_copy(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	uint8_t *to[PTX_LANES], *from[PTX_LANES];
	const uint64_t *base = ptx_row(w, i->op[1]), *offset = ptx_row(w, i->op[2]);
	uint64_t address[PTX_LANES];

	PTX_FOR_LANES(mask, lane, address[lane] = base[lane] + offset[lane];);
	/* No lane may read what it leaves out. */
	const uint32_t *less = i->op[3] == PTX_NO_ROW ? NULL : ptx_row(w, i->op[3]);
	uint32_t reading = mask;
	for (uint32_t lane = 0; less && lane < PTX_LANES; lane++)
		if (less[lane] == 0)
			reading &= ~(1u << lane);
	if (!ptx_resolve(w, i, mask, i->access.bytes, to) ||
	    (reading && !ptx_resolve_global(w, i, reading, i->access.bytes, address, from)))
		return PTX_FAULT;
	for (; mask; mask &= mask - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(mask);
		uint32_t have = less && less[lane] < i->access.bytes ? less[lane] : i->access.bytes;
		memset(to[lane], 0, i->access.bytes);
		if (have)
			memcpy(to[lane], from[lane], have);
	}
	return PTX_NEXT;
}
