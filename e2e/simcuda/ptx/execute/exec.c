/* Runs the warps of a block in slices until all have ended. Within a warp, groups of lanes also run
 * in slices (warp.h has their order), so a thread that spins until another thread writes does not
 * spin forever. */
#include "simcuda/ptx/execute/async/bulk.h"
#include "simcuda/ptx/execute/warp.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define SLICE 4096 /* instructions of a warp before the next warp runs */

static ptx_pause *pause_hook;

void ptx_set_pause(ptx_pause *pause)
{
	pause_hook = pause;
}

void ptx_pause_here(void)
{
	if (pause_hook)
		pause_hook();
}

enum ptx_flow ptx_fault(struct ptx_warp *warp, const struct ptx_insn *insn, const char *format, ...)
{
	struct ptx_error *error = &warp->block->error;
	va_list args;

	error->line = insn->line;
	va_start(args, format);
	vsnprintf(error->message, sizeof(error->message), format, args);
	va_end(args);
	return PTX_FAULT;
}

/* Selects the group that runs next. False: none can run. */
static bool choose_group(struct ptx_warp *w)
{
	uint32_t runnable = ptx_runnable(w), candidates = runnable & ~w->skip;

	if (!runnable)
		return false;
	if (!candidates) {
		w->skip = 0;
		candidates = runnable;
	}
	uint32_t regs = 0, pc = UINT32_MAX, rest;
	for (rest = candidates; rest; rest &= rest - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(rest);
		if (w->lane_regs[lane] > regs) {
			regs = w->lane_regs[lane];
			pc = w->lane_pc[lane];
		} else if (w->lane_regs[lane] == regs && w->lane_pc[lane] < pc) {
			pc = w->lane_pc[lane];
		}
	}

	w->group = 0;
	w->stop = UINT32_MAX;
	bool lowest = true;
	for (rest = runnable; rest; rest &= rest - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(rest);
		if (w->lane_regs[lane] != regs)
			continue;
		if (w->lane_pc[lane] == pc)
			w->group |= 1u << lane;
		else if (w->lane_pc[lane] < pc)
			lowest = false;
		else if (w->lane_pc[lane] < w->stop)
			w->stop = w->lane_pc[lane];
	}
	w->jump_limit = lowest ? w->stop : 0;
	w->pc = pc;
	w->regs = regs;
	w->base[PTX_REGISTERS] = w->registers + regs;
	w->base[PTX_CONSTANTS] = w->block->kernel->module->code[pc].function->constants;
	return true;
}

/* The lanes whose guard is true. */
static uint32_t guarded(const struct ptx_warp *w, const struct ptx_insn *i)
{
	uint32_t predicate = *(const uint32_t *)ptx_row(w, i->guard);

	return w->group & (i->guard_negated ? ~predicate : predicate);
}

/* Runs until another group has to be selected, or *@budget is used up. */
static enum ptx_flow run_group(struct ptx_warp *w, uint32_t *budget)
{
	const struct ptx_insn *code = w->block->kernel->module->code;

	while (*budget) {
		if (w->pc == w->stop)
			break;
		const struct ptx_insn *i = &code[w->pc];
		uint32_t mask = w->group;
		--*budget;
		if (i->guard != PTX_NO_ROW && !(mask = guarded(w, i))) {
			w->pc++;
			continue;
		}
		enum ptx_flow flow = i->exec(w, i, mask);
		if (flow == PTX_NEXT)
			w->pc++;
		else if (flow != PTX_JUMPED)
			return flow;
	}
	ptx_park(w, w->group, w->pc);
	return PTX_REGROUP;
}

/* @ran: instructions. */
static enum ptx_flow run_warp(struct ptx_warp *w, uint32_t slice, uint32_t *ran)
{
	uint32_t budget = slice;

	w->yields = false;
	while (budget && !w->yields && choose_group(w)) {
		if (run_group(w, &budget) == PTX_FAULT)
			return PTX_FAULT;
	}
	*ran = slice - budget;
	if (w->yields)
		return PTX_NEXT;
	/* Groups that used up their slice go behind the others. */
	if (!budget && w->group != ptx_runnable(w))
		w->skip |= w->group;
	else
		w->skip = 0;
	return PTX_NEXT;
}

static int deadlock(struct ptx_block *block)
{
	for (uint32_t k = 0; k < block->n_warps; k++) {
		struct ptx_warp *w = &block->warps[k];
		if (!w->live)
			continue;
		uint32_t lane = (uint32_t)__builtin_ctz(w->live);
		const struct ptx_insn *i = &block->kernel->module->code[w->lane_pc[lane]];
		ptx_fault(w, i,
			  "a barrier that can never be met: thread %u waits and all others too",
			  k * PTX_LANES + lane);
		return -EFAULT;
	}
	return -EFAULT;
}

int ptx_run_warps(struct ptx_block *block, const volatile int *stop)
{
	uint64_t left =
		block->launch->max_instructions ? block->launch->max_instructions : UINT64_MAX;

	while (block->live_warps) {
		bool progress = false;
		for (uint32_t k = 0; k < block->n_warps; k++) {
			struct ptx_warp *w = &block->warps[k];
			uint32_t ran;
			if (!ptx_runnable(w))
				continue;
			progress = true;
			if (run_warp(w, left < SLICE ? (uint32_t)left : SLICE, &ran) == PTX_FAULT)
				return -EFAULT;
			ptx_pause_here();
			if (stop && __atomic_load_n(stop, __ATOMIC_RELAXED))
				return -EINTR;
			left -= ran;
			if (!left)
				return -ETIME;
		}
		if (!progress)
			return deadlock(block);
	}
	return ptx_bulk_finish(&block->warps[0]) ? 0 : -EFAULT;
}
