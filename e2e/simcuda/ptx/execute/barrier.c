/* Barriers of a block. A warp has arrived when all its lanes that have not exited have arrived, on
 * any path. A barrier without a thread count waits for all warps that have not ended. */
#include "simcuda/ptx/execute/executors.h"

#include "simcuda/ptx/execute/sync.h"
#include "simcuda/ptx/execute/warp.h"

static uint32_t *lane_word(const struct ptx_warp *w, uint32_t lane, uint32_t ref)
{
	return (uint32_t *)(w->registers + w->lane_regs[lane] + (ref & ~3u));
}

/* Lanes continue; the barrier instruction may have a result for them. */
static void release_lane(struct ptx_warp *w, uint32_t lane, const struct ptx_barrier *barrier)
{
	const struct ptx_insn *i = &w->block->kernel->module->code[w->lane_pc[lane]];
	bool outcome = i->sync.variant == PTX_BARRIER_AND ? barrier->passed == barrier->threads
							  : barrier->passed != 0;

	w->at_barrier &= ~(1u << lane);
	w->lane_pc[lane]++;
	if (i->sync.variant == PTX_BARRIER_POPC) {
		lane_word(w, lane, i->op[2])[lane] = barrier->passed;
	} else if (i->sync.variant == PTX_BARRIER_AND || i->sync.variant == PTX_BARRIER_OR) {
		uint32_t *word = lane_word(w, lane, i->op[2]);
		*word = (*word & ~(1u << lane)) | (uint32_t)outcome << lane;
	}
}

static void release_if_complete(struct ptx_block *block, uint32_t id)
{
	struct ptx_barrier *barrier = &block->barriers[id];
	uint32_t expected = barrier->expected ? barrier->expected : block->live_warps * PTX_LANES;

	if (!barrier->arrived || barrier->arrived < expected)
		return;
	for (uint32_t k = 0; k < block->n_warps; k++) {
		struct ptx_warp *w = &block->warps[k];
		for (uint32_t rest = w->at_barrier; rest; rest &= rest - 1) {
			uint32_t lane = (uint32_t)__builtin_ctz(rest);
			if (w->barrier[lane] == id)
				release_lane(w, lane, barrier);
		}
	}
	*barrier = (struct ptx_barrier){0};
}

/* Have all live lanes of the warp arrived? */
static void count_warp(struct ptx_block *block, struct ptx_warp *w, uint32_t id)
{
	uint32_t *partial = &block->partial[w->index][id];

	if (!*partial || (w->live & ~*partial))
		return;
	*partial = 0;
	block->barriers[id].arrived += PTX_LANES;
}

void ptx_barriers_recheck(struct ptx_block *block, struct ptx_warp *w)
{
	for (uint32_t id = 0; id < PTX_BARRIERS; id++)
		count_warp(block, w, id);
	if (!w->live)
		block->live_warps--;
	for (uint32_t id = 0; id < PTX_BARRIERS; id++)
		release_if_complete(block, id);
}

/* A count of all threads of the block means the same as no count. */
static bool agree(const struct ptx_block *block, uint32_t count, uint32_t other)
{
	uint32_t all = block->n_warps * PTX_LANES;

	return (count ? count : all) == (other ? other : all);
}

static enum ptx_flow set_expected(struct ptx_warp *w, const struct ptx_insn *i, uint32_t lane,
				  struct ptx_barrier *barrier)
{
	uint32_t count = i->sync.count ? ((uint32_t *)ptx_row(w, i->op[1]))[lane] : 0;

	if (i->sync.count && (count == 0 || count % PTX_LANES))
		return ptx_fault(w, i, "a barrier of %u threads: not a multiple of a warp", count);
	if (barrier->in_use && !agree(w->block, barrier->expected, count))
		return ptx_fault(w, i, "threads do not agree how many a barrier is for");
	barrier->expected = barrier->in_use && !barrier->expected ? 0 : count;
	barrier->in_use = true;
	return PTX_NEXT;
}

static uint32_t passing(struct ptx_warp *w, const struct ptx_insn *i, uint32_t lanes)
{
	if (i->sync.variant < PTX_BARRIER_POPC)
		return 0;
	uint32_t predicate = *(uint32_t *)ptx_row(w, i->op[3]);
	return lanes & (i->sync.negated ? ~predicate : predicate);
}

/* The @lanes of @mask come to barrier @id; the others come back to this instruction. */
static enum ptx_flow come(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask,
			  uint32_t lanes, uint32_t id)
{
	struct ptx_block *block = w->block;
	struct ptx_barrier *barrier = &block->barriers[id];
	bool waits = i->sync.variant != PTX_BARRIER_ARRIVE;
	ptx_park(w, w->group, w->pc + 1);
	ptx_park(w, mask & ~lanes, w->pc);
	if (waits) {
		ptx_park(w, lanes, w->pc);
		w->at_barrier |= lanes;
		for (uint32_t rest = lanes; rest; rest &= rest - 1)
			w->barrier[__builtin_ctz(rest)] = (uint8_t)id;
	}
	block->partial[w->index][id] |= lanes;
	barrier->threads += (uint32_t)__builtin_popcount(lanes);
	barrier->passed += (uint32_t)__builtin_popcount(passing(w, i, lanes));
	count_warp(block, w, id);
	release_if_complete(block, id);
	return PTX_REGROUP;
}

enum ptx_flow ptx_exec_barrier(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	const uint32_t *ids = ptx_row(w, i->op[0]);
	uint32_t first = (uint32_t)__builtin_ctz(mask), id = ids[first], lanes = 0;
	struct ptx_block *block = w->block;

	if (id >= PTX_NAMED_BARRIERS)
		return ptx_fault(w, i, "there is no barrier %u", id);
	/* Lanes with another barrier come back to this instruction. */
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(rest);
		lanes |= ids[lane] == id ? 1u << lane : 0;
	}
	struct ptx_barrier *barrier = &block->barriers[id];
	if (set_expected(w, i, first, barrier) == PTX_FAULT)
		return PTX_FAULT;
	return come(w, i, mask, lanes, id);
}

/* wgmma.wait_group: the products of a warp group are complete for all of its warps. */
enum ptx_flow ptx_exec_group_wait(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	uint32_t id = PTX_NAMED_BARRIERS + w->index / PTX_GROUP_WARPS;
	struct ptx_barrier *barrier = &w->block->barriers[id];

	if (mask != PTX_ALL_LANES)
		return ptx_fault(w, i, "only a part of the warp comes here");
	barrier->expected = PTX_GROUP_WARPS * PTX_LANES;
	barrier->in_use = true;
	return come(w, i, mask, mask, id);
}
