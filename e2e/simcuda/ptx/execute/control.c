/* Branches, calls and ends. */
#include "simcuda/ptx/execute/executors.h"

#include "simcuda/ptx/execute/warp.h"

/* All of the group goes to @target. */
static enum ptx_flow jump(struct ptx_warp *w, uint32_t target)
{
	if (target < w->jump_limit) {
		w->pc = target;
		return PTX_JUMPED;
	}
	ptx_park(w, w->group, target);
	return PTX_REGROUP;
}

enum ptx_flow ptx_exec_bra(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	uint32_t target = (uint32_t)i->imm;

	if (mask == w->group)
		return jump(w, target);
	ptx_park(w, w->group & ~mask, w->pc + 1);
	ptx_park(w, mask, target);
	return PTX_REGROUP;
}

enum ptx_flow ptx_exec_brx(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	const uint32_t *index = ptx_row(w, i->op[0]);

	ptx_park(w, w->group & ~mask, w->pc + 1);
	for (; mask; mask &= mask - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(mask);
		if (index[lane] >= i->targets->n)
			return ptx_fault(w, i, "brx.idx: %u of a list of %u", index[lane],
					 i->targets->n);
		w->lane_pc[lane] = i->targets->pc[index[lane]];
	}
	return PTX_REGROUP;
}

/* A row of another frame. */
static uint8_t *row_at(const struct ptx_warp *w, uint32_t registers, uint32_t ref)
{
	return w->registers + registers + (ref & ~3u);
}

/* Copies a value of one lane between two frames: each end is a row or in the lane's stack. */
static void pass(struct ptx_warp *w, uint32_t lane, const struct ptx_frame *to, uint32_t to_at,
		 bool to_row, const struct ptx_frame *from, uint32_t from_at, bool from_row,
		 uint32_t bytes)
{
	uint8_t *stack = w->stack + (uint64_t)lane * w->block->stack_bytes;
	uint8_t *target = to_row ? row_at(w, to->registers, to_at) + lane * bytes
				 : stack + to->locals + to_at;
	const uint8_t *source = from_row ? row_at(w, from->registers, from_at) + lane * bytes
					 : stack + from->locals + from_at;

	memmove(target, source, bytes);
}

/* NULL: the call does not fit the function. */
static const struct ptx_function *check_callee(struct ptx_warp *w, const struct ptx_insn *i,
					       const struct ptx_function *callee)
{
	const struct ptx_call *call = i->call;
	bool fits = callee->n_params == call->n_arguments && callee->n_results == call->n_results;

	if (callee->unusable.message[0]) {
		ptx_fault(w, i, "call of %.60s: %.150s", callee->name, callee->unusable.message);
		return NULL;
	}
	for (uint32_t k = 0; fits && k < call->n_arguments; k++)
		fits = callee->params[k]->size == call->arguments[k].bytes;
	for (uint32_t k = 0; fits && k < call->n_results; k++)
		fits = callee->results[k]->size == call->results[k].bytes;
	if (fits)
		return callee;
	ptx_fault(w, i, "a call with other parameters than %.100s has", callee->name);
	return NULL;
}

static const struct ptx_function *callee_at(const struct ptx_warp *w, uint64_t address)
{
	struct ptx_function *f;

	for (f = w->block->kernel->module->functions; f; f = f->hh.next) {
		if ((uintptr_t)f == address && !f->is_kernel)
			return f;
	}
	return NULL;
}

static bool enter(struct ptx_warp *w, const struct ptx_insn *i, uint32_t lane,
		  const struct ptx_function *callee)
{
	const struct ptx_function *kernel = w->block->kernel;
	const struct ptx_call *call = i->call;
	struct ptx_frame caller = {i, w->lane_regs[lane], w->lane_locals[lane]};
	struct ptx_frame own = {i, caller.registers + i->function->register_bytes,
				caller.locals + i->function->frame_bytes};

	if (w->lane_depth[lane] >= kernel->frames ||
	    own.registers + callee->register_bytes > kernel->total_register_bytes ||
	    own.locals + callee->frame_bytes > kernel->total_frame_bytes) {
		ptx_fault(w, i, "calls are nested too deep, in %.100s", callee->name);
		return false;
	}
	for (uint32_t k = 0; k < call->n_arguments; k++)
		pass(w, lane, &own, (uint32_t)callee->params[k]->offset,
		     callee->params[k]->is_register, &caller, call->arguments[k].at,
		     call->arguments[k].is_row, call->arguments[k].bytes);
	w->frames[w->lane_depth[lane]++ * PTX_LANES + lane] = caller;
	w->lane_regs[lane] = own.registers;
	w->lane_locals[lane] = own.locals;
	w->lane_pc[lane] = callee->entry;
	return true;
}

/* Lanes that call different functions run one group after the other: the others stay at the call.
 */
enum ptx_flow ptx_exec_call(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	const struct ptx_function *callee = i->call->function;
	uint32_t first = (uint32_t)__builtin_ctz(mask), together = mask;

	if (!callee) {
		const uint64_t *address = ptx_row(w, i->op[0]);
		callee = callee_at(w, address[first]);
		if (!callee)
			return ptx_fault(w, i, "call of 0x%llx, which is no function",
					 (unsigned long long)address[first]);
		for (uint32_t lane = 0; lane < PTX_LANES; lane++)
			if (address[lane] != address[first])
				together &= ~(1u << lane);
	}
	if (!check_callee(w, i, callee))
		return PTX_FAULT;
	if (callee->builtin && callee->builtin(w, i, together) == PTX_FAULT)
		return PTX_FAULT;
	ptx_park(w, w->group & ~mask, w->pc + 1);
	ptx_park(w, mask & ~together, w->pc);
	if (callee->builtin) {
		ptx_park(w, together, w->pc + 1);
		return PTX_REGROUP;
	}
	for (uint32_t rest = together; rest; rest &= rest - 1)
		if (!enter(w, i, (uint32_t)__builtin_ctz(rest), callee))
			return PTX_FAULT;
	return PTX_REGROUP;
}

static void leave(struct ptx_warp *w, const struct ptx_insn *i, uint32_t lane)
{
	const struct ptx_frame *caller = &w->frames[--w->lane_depth[lane] * PTX_LANES + lane];
	struct ptx_frame own = {NULL, w->lane_regs[lane], w->lane_locals[lane]};
	const struct ptx_call *call = caller->call->call;
	const struct ptx_function *callee = i->function;

	for (uint32_t k = 0; k < call->n_results; k++)
		pass(w, lane, caller, call->results[k].at, call->results[k].is_row, &own,
		     (uint32_t)callee->results[k]->offset, callee->results[k]->is_register,
		     call->results[k].bytes);
	w->lane_regs[lane] = caller->registers;
	w->lane_locals[lane] = caller->locals;
	w->lane_pc[lane] = (uint32_t)(caller->call - w->block->kernel->module->code) + 1;
}

enum ptx_flow ptx_exec_ret(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	if (i->function->is_kernel)
		return ptx_exec_exit(w, i, mask);
	ptx_park(w, w->group & ~mask, w->pc + 1);
	for (; mask; mask &= mask - 1)
		leave(w, i, (uint32_t)__builtin_ctz(mask));
	return PTX_REGROUP;
}

enum ptx_flow ptx_exec_exit(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	(void)i;
	ptx_park(w, w->group & ~mask, w->pc + 1);
	w->live &= ~mask;
	/* Wakes lanes that waited for these. */
	w->at_sync = 0;
	ptx_barriers_recheck(w->block, w);
	return PTX_REGROUP;
}

enum ptx_flow ptx_exec_trap(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	return ptx_fault(w, i, "trap, in thread %u",
			 w->index * PTX_LANES + (uint32_t)__builtin_ctz(mask));
}
