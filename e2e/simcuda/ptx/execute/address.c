/* Checks which memory a lane may touch: its block's shared memory, its own local memory, the
 * parameters, the module's variables, and what the address check allows. Accesses of a warp that
 * lie close together are checked as one range. */
#include "simcuda/ptx/execute/memory.h"

#define CLOSE (64 * 1024) /* bytes */

struct span {
	uint64_t low, high; /* of the first bytes */
	uint64_t bits;      /* all addresses or-ed: alignment */
};

static struct span span_of(const uint64_t *address, uint32_t mask)
{
	struct span span = {UINT64_MAX, 0, 0};

	PTX_FOR_LANES(mask, lane, const uint64_t a = address[lane];
		      span.low = a < span.low ? a : span.low;
		      span.high = a > span.high ? a : span.high; span.bits |= a;);
	return span;
}

static bool inside(uint64_t address, uint64_t size, const void *start, uint64_t bytes)
{
	uint64_t offset = address - (uintptr_t)start;

	return offset < bytes && size <= bytes - offset;
}

static bool touches(const struct span *span, uint32_t size, const void *start, uint64_t bytes)
{
	return bytes && span->high + size > (uintptr_t)start &&
	       span->low < (uintptr_t)start + bytes;
}

static bool global_allowed(const struct ptx_warp *w, uint64_t address, uint64_t size)
{
	const struct ptx_module *module = w->block->kernel->module;
	const void *workspace = w->block->launch->workspace;
	ptx_address_check *check = ptx_check_address;

	if (inside(address, size, module->memory, module->memory_bytes) ||
	    (workspace && inside(address, size, workspace, PTX_WORKSPACE_BYTES)))
		return true;
	if (address < 4096 || address > UINT64_MAX - size)
		return false;
	return !check || check(address, size);
}

/* Parameters can be read, not written. */
static bool generic_allowed(const struct ptx_warp *w, uint32_t lane, uint64_t address,
			    uint32_t size, bool writes)
{
	const struct ptx_block *block = w->block;
	const uint8_t *own = w->stack + (uint64_t)lane * block->stack_bytes;

	if (inside(address, 1, block->stacks, block->stacks_bytes))
		return inside(address, size, own, block->stack_bytes);
	return inside(address, size, block->shared, block->shared_bytes) ||
	       (!writes && inside(address, size, block->params, block->param_bytes)) ||
	       global_allowed(w, address, size);
}

static bool misaligned(struct ptx_warp *w, const struct ptx_insn *i, const struct span *span,
		       uint32_t size)
{
	if (!(span->bits & (size - 1)))
		return false;
	ptx_fault(w, i, "a misaligned address: %u bytes at 0x%llx and beyond", size,
		  (unsigned long long)span->low);
	return true;
}

static bool wild(struct ptx_warp *w, const struct ptx_insn *i, const char *space, uint64_t address,
		 uint32_t size)
{
	ptx_fault(w, i, "no %smemory behind address 0x%llx (%u bytes)", space,
		  (unsigned long long)address, size);
	return false;
}

bool ptx_resolve_global(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask, uint32_t size,
			const uint64_t address[PTX_LANES], uint8_t *host[PTX_LANES])
{
	struct span span = span_of(address, mask);
	const struct ptx_block *block = w->block;

	if (misaligned(w, i, &span, size))
		return false;
	PTX_FOR_LANES(mask, lane, host[lane] = (uint8_t *)(uintptr_t)address[lane];);
	/* A generic address outside the block's own memory is a global one. */
	bool global = i->access.space != PTX_SPACE_GENERIC ||
		      (!touches(&span, size, block->stacks, block->stacks_bytes) &&
		       !touches(&span, size, block->shared, block->shared_bytes) &&
		       !touches(&span, size, block->params, block->param_bytes));
	if (global && i->access.writes)
		w->block->wrote = true;
	bool together = span.high - span.low < CLOSE && span.high <= UINT64_MAX - size;
	uint64_t bytes = span.high - span.low + size;
	if (together && !global && inside(span.low, bytes, block->shared, block->shared_bytes))
		return true;
	if (together && global && global_allowed(w, span.low, bytes))
		return true;
	for (; mask; mask &= mask - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(mask);
		if (global ? !global_allowed(w, address[lane], size)
			   : !generic_allowed(w, lane, address[lane], size, i->access.writes))
			return wild(w, i, "", address[lane], size);
	}
	return true;
}

/* Offsets in memory of a known size: @start for lane 0, @step further for each lane. */
static bool resolve_offsets(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask,
			    uint32_t size, const uint64_t *offset, const uint8_t *start,
			    uint64_t step, uint64_t bytes, const char *space,
			    uint8_t *host[PTX_LANES])
{
	struct span span = span_of(offset, mask);

	if (misaligned(w, i, &span, size))
		return false;
	if (bytes < size || span.high > bytes - size)
		return wild(w, i, space, span.high, size);
	PTX_FOR_LANES(mask, lane, host[lane] = (uint8_t *)start + lane * step + offset[lane];);
	return true;
}

static void add_up(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask,
		   uint64_t address[PTX_LANES])
{
	const uint64_t imm = (uint64_t)i->imm;

	if (i->op[0] == PTX_NO_ROW) {
		PTX_FOR_LANES(mask, lane, address[lane] = imm;);
	} else if (i->access.address_wide) {
		const uint64_t *row = ptx_row(w, i->op[0]);
		PTX_FOR_LANES(mask, lane, address[lane] = row[lane] + imm;);
	} else {
		const uint32_t *row = ptx_row(w, i->op[0]);
		PTX_FOR_LANES(mask, lane, address[lane] = (uint32_t)(row[lane] + imm););
	}
	if (i->access.in_frame) {
		const uint32_t *locals = w->lane_locals;
		PTX_FOR_LANES(mask, lane, address[lane] += locals[lane];);
	}
}

bool ptx_resolve(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask, uint32_t size,
		 uint8_t *host[PTX_LANES])
{
	const struct ptx_block *block = w->block;
	uint64_t address[PTX_LANES];

	add_up(w, i, mask, address);
	switch ((enum ptx_space)i->access.space) {
	case PTX_SPACE_SHARED:
		return resolve_offsets(w, i, mask, size, address, block->shared, 0,
				       block->shared_bytes, "shared ", host);
	case PTX_SPACE_LOCAL:
		return resolve_offsets(w, i, mask, size, address, w->stack, block->stack_bytes,
				       block->stack_bytes, "local ", host);
	case PTX_SPACE_PARAM:
		return resolve_offsets(w, i, mask, size, address, block->params, 0,
				       block->param_bytes, "parameter ", host);
	default:
		return ptx_resolve_global(w, i, mask, size, address, host);
	}
}

bool ptx_read_generic(struct ptx_warp *w, const struct ptx_insn *i, uint32_t lane, uint64_t address,
		      uint32_t size, void *out)
{
	if (!generic_allowed(w, lane, address, size, false))
		return wild(w, i, "", address, size);
	memcpy(out, (const void *)(uintptr_t)address, size);
	return true;
}

bool ptx_global_range(struct ptx_warp *w, const struct ptx_insn *i, uint64_t address, uint64_t size,
		      uint8_t **host)
{
	*host = (uint8_t *)(uintptr_t)address;
	return global_allowed(w, address, size) || wild(w, i, "", address, (uint32_t)size);
}
