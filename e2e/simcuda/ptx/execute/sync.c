/* Operations across the lanes of a warp: shuffles, votes, matches, reductions. Each names its
 * lanes. A lane waits until all named lanes that have not exited have arrived, on any path. Then
 * the operation is done for all of them at once. */
#include "simcuda/ptx/execute/sync.h"

#include "simcuda/ptx/execute/executors.h"
#include "simcuda/ptx/execute/warp.h"

#include <sched.h>

/* Lanes that synchronise, each at its own instruction. */
struct meeting {
	struct ptx_warp *warp;
	uint32_t lanes;
	const struct ptx_insn *insn[PTX_LANES];
};

static void *operand(const struct meeting *m, uint32_t lane, enum ptx_sync_operand which)
{
	const struct ptx_insn *i = m->insn[lane];
	uint32_t ref = i->op[which];

	switch ((enum ptx_base)(ref & 3)) {
	case PTX_REGISTERS:
		return m->warp->registers + m->warp->lane_regs[lane] + (ref & ~3u);
	case PTX_CONSTANTS:
		return i->function->constants + (ref & ~3u);
	default:
		return m->warp->base[ref & 3] + (ref & ~3u);
	}
}

static uint32_t word_of(const struct meeting *m, uint32_t lane, enum ptx_sync_operand which)
{
	return ((uint32_t *)operand(m, lane, which))[lane];
}

static void set_word(const struct meeting *m, uint32_t lane, uint32_t value)
{
	((uint32_t *)operand(m, lane, PTX_SYNC_RESULT))[lane] = value;
}

static void set_predicate(const struct meeting *m, uint32_t lane, enum ptx_sync_operand which,
			  bool value)
{
	if (m->insn[lane]->op[which] == PTX_NO_ROW)
		return;
	uint32_t *word = operand(m, lane, which);
	*word = (*word & ~(1u << lane)) | (uint32_t)value << lane;
}

static void barrier(const struct meeting *m, uint8_t variant)
{
	(void)m;
	(void)variant;
}

static void shuffle(const struct meeting *m, uint8_t variant)
{
	uint32_t values[PTX_LANES] = {0};
	uint32_t results[PTX_LANES];
	uint32_t valid = 0;

	for (uint32_t rest = m->lanes; rest; rest &= rest - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(rest);
		values[lane] = word_of(m, lane, PTX_SYNC_A);
	}
	for (uint32_t rest = m->lanes; rest; rest &= rest - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(rest);
		uint32_t b = word_of(m, lane, PTX_SYNC_B) & 31, c = word_of(m, lane, PTX_SYNC_C);
		uint32_t segment = c >> 8 & 31, clamp = c & 31;
		uint32_t low = lane & segment, high = low | (clamp & ~segment);
		uint32_t from = variant == PTX_SHFL_UP     ? lane - b
				: variant == PTX_SHFL_DOWN ? lane + b
				: variant == PTX_SHFL_BFLY ? lane ^ b
							   : low | (b & ~segment);
		bool inside =
			variant == PTX_SHFL_UP ? (int32_t)from >= (int32_t)high : from <= high;
		valid |= (uint32_t)inside << lane;
		results[lane] = values[inside ? from & 31 : lane];
	}
	for (uint32_t rest = m->lanes; rest; rest &= rest - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(rest);
		set_word(m, lane, results[lane]);
		set_predicate(m, lane, PTX_SYNC_SECOND, valid >> lane & 1);
	}
}

static void vote(const struct meeting *m, uint8_t variant)
{
	uint32_t yes = 0;

	for (uint32_t rest = m->lanes; rest; rest &= rest - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(rest);
		uint32_t predicate = *(uint32_t *)operand(m, lane, PTX_SYNC_A);
		if (m->insn[lane]->sync.negated)
			predicate = ~predicate;
		yes |= predicate & 1u << lane;
	}
	bool outcome = variant == PTX_VOTE_ALL   ? yes == m->lanes
		       : variant == PTX_VOTE_ANY ? yes != 0
						 : yes == m->lanes || yes == 0;
	for (uint32_t rest = m->lanes; rest; rest &= rest - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(rest);
		if (variant == PTX_VOTE_BALLOT)
			set_word(m, lane, yes);
		else
			set_predicate(m, lane, PTX_SYNC_RESULT, outcome);
	}
}

static uint64_t matched_value(const struct meeting *m, uint32_t lane)
{
	if (m->insn[lane]->sync.count)
		return ((uint64_t *)operand(m, lane, PTX_SYNC_A))[lane];
	return word_of(m, lane, PTX_SYNC_A);
}

static void match(const struct meeting *m, uint8_t variant)
{
	uint32_t equal[PTX_LANES];

	for (uint32_t rest = m->lanes; rest; rest &= rest - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(rest);
		equal[lane] = 0;
		for (uint32_t others = m->lanes; others; others &= others - 1) {
			uint32_t other = (uint32_t)__builtin_ctz(others);
			if (matched_value(m, other) == matched_value(m, lane))
				equal[lane] |= 1u << other;
		}
	}
	for (uint32_t rest = m->lanes; rest; rest &= rest - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(rest);
		bool all = equal[lane] == m->lanes;
		set_word(m, lane, variant == PTX_MATCH_ANY || all ? equal[lane] : 0);
		set_predicate(m, lane, PTX_SYNC_SECOND, all);
	}
}

static uint32_t reduce(enum ptx_redux operation, uint32_t a, uint32_t b)
{
	switch (operation) {
	case PTX_REDUX_ADD:
		return a + b;
	case PTX_REDUX_MIN_U:
		return a < b ? a : b;
	case PTX_REDUX_MAX_U:
		return a > b ? a : b;
	case PTX_REDUX_MIN_S:
		return (int32_t)a < (int32_t)b ? a : b;
	case PTX_REDUX_MAX_S:
		return (int32_t)a > (int32_t)b ? a : b;
	case PTX_REDUX_AND:
		return a & b;
	case PTX_REDUX_OR:
		return a | b;
	case PTX_REDUX_XOR:
		break;
	}
	return a ^ b;
}

static void redux(const struct meeting *m, uint8_t variant)
{
	uint32_t first = (uint32_t)__builtin_ctz(m->lanes);
	uint32_t result = word_of(m, first, PTX_SYNC_A);

	for (uint32_t rest = m->lanes & (m->lanes - 1); rest; rest &= rest - 1)
		result = reduce(variant, result,
				word_of(m, (uint32_t)__builtin_ctz(rest), PTX_SYNC_A));
	for (uint32_t rest = m->lanes; rest; rest &= rest - 1)
		set_word(m, (uint32_t)__builtin_ctz(rest), result);
}

static void elect(const struct meeting *m, uint8_t variant)
{
	uint32_t leader = (uint32_t)__builtin_ctz(m->lanes);

	(void)variant;
	for (uint32_t rest = m->lanes; rest; rest &= rest - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(rest);
		set_word(m, lane, leader);
		set_predicate(m, lane, PTX_SYNC_SECOND, lane == leader);
	}
}

static void (*const operations[])(const struct meeting *m, uint8_t variant) = {
	[PTX_SYNC_BARRIER] = barrier, [PTX_SYNC_SHFL] = shuffle, [PTX_SYNC_VOTE] = vote,
	[PTX_SYNC_MATCH] = match,     [PTX_SYNC_REDUX] = redux,  [PTX_SYNC_ELECT] = elect,
};

/* The lanes that wait for the same operation as @i. */
static uint32_t waiting_for(const struct meeting *m, const struct ptx_insn *i, uint32_t members)
{
	const struct ptx_insn *code = m->warp->block->kernel->module->code;
	uint32_t lanes = 0;

	for (uint32_t rest = m->warp->at_sync & members; rest; rest &= rest - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(rest);
		const struct ptx_insn *other = &code[m->warp->lane_pc[lane]];
		if (m->warp->sync_members[lane] == members && other->sync.kind == i->sync.kind &&
		    other->sync.variant == i->sync.variant)
			lanes |= 1u << lane;
	}
	return lanes;
}

/* Lanes of the group that name the same members as its first lane. */
static uint32_t same_members(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	const uint32_t *members = ptx_row(w, i->op[PTX_SYNC_MEMBERS]);
	uint32_t first = members[__builtin_ctz(mask)], same = 0;

	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(rest);
		same |= members[lane] == first ? 1u << lane : 0;
	}
	return same;
}

static enum ptx_flow wait(struct ptx_warp *w, uint32_t lanes, uint32_t others, uint32_t members)
{
	ptx_park(w, w->group, w->pc + 1);
	ptx_park(w, lanes | others, w->pc);
	w->at_sync |= lanes;
	for (uint32_t rest = lanes; rest; rest &= rest - 1)
		w->sync_members[__builtin_ctz(rest)] = members;
	return PTX_REGROUP;
}

enum ptx_flow ptx_exec_sync(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	struct meeting m = {.warp = w};
	uint32_t lanes = same_members(w, i, mask);
	uint32_t lane = (uint32_t)__builtin_ctz(lanes);
	uint32_t members = ((uint32_t *)ptx_row(w, i->op[PTX_SYNC_MEMBERS]))[lane];

	if (lanes & ~members)
		return ptx_fault(w, i, "a thread is not among those that it says take part");
	uint32_t waited = waiting_for(&m, i, members);
	if (members & w->live & ~(lanes | waited))
		return wait(w, lanes, mask & ~lanes, members);

	m.lanes = lanes | waited;
	for (uint32_t rest = lanes; rest; rest &= rest - 1)
		m.insn[__builtin_ctz(rest)] = i;
	for (uint32_t rest = waited; rest; rest &= rest - 1) {
		lane = (uint32_t)__builtin_ctz(rest);
		m.insn[lane] = &w->block->kernel->module->code[w->lane_pc[lane]++];
	}
	w->at_sync &= ~waited;
	operations[i->sync.kind](&m, i->sync.variant);
	if (!waited && lanes == mask)
		return PTX_NEXT;
	ptx_park(w, w->group, w->pc + 1);
	ptx_park(w, mask & ~lanes, w->pc);
	return PTX_REGROUP;
}

enum ptx_flow ptx_exec_activemask(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	uint32_t *d = ptx_row(w, i->op[0]);

	PTX_FOR_LANES(mask, lane, d[lane] = mask;);
	return PTX_NEXT;
}

/* nanosleep: the thread that this one waits for may need this CPU, or be in the same warp. */
enum ptx_flow ptx_exec_pause(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	(void)i;
	sched_yield();
	ptx_pause_here();
	ptx_park(w, w->group, w->pc + 1);
	w->skip |= mask;
	return PTX_REGROUP;
}

/* griddepcontrol.launch_dependents: the first thread speaks for its block. */
enum ptx_flow ptx_exec_permit(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	const struct ptx_dependence *dependence = w->block->launch->dependence;

	(void)i;
	(void)mask;
	if (dependence && !w->block->permitted)
		dependence->permit(dependence->data);
	w->block->permitted = true;
	return PTX_NEXT;
}

/* griddepcontrol.wait */
enum ptx_flow ptx_exec_await_grids(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	const struct ptx_dependence *dependence = w->block->launch->dependence;

	(void)i;
	(void)mask;
	if (dependence)
		dependence->wait(dependence->data);
	return PTX_NEXT;
}
