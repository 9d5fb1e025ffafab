// clang-format off
/* Makes every thread end at one place, `leave`, where the loop around the blocks continues.
 *
 * A finished thread no longer exits, so barriers without a thread count would wait for it. If all
 * threads reach the same barriers (uniform.h), nothing else is needed. Otherwise finished threads
 * join each such barrier until all threads have finished (exit-barrier.h):
 *
 *	bar.sync 0;     ->  barrier.sync N;  next += 1
 *	ret;            ->  bra done;
 *	done:               finished += 1;  the last one?  announced.done = next
 *	again:              barrier.sync N;  announced.done != next?  next += 1, again
 *
 * The last of these barriers also separates two blocks of the loop. N is a number that no barrier
 * with a thread count uses. A barrier.red counts its predicate in shared memory, between two exit
 * barriers. Barriers with a thread count stay as they are.
 */
// clang-format on
#include "analysis/barrier.h"
#include "analysis/uniform.h"
#include "passes/async/async.h"
#include "passes/callee.h"
#include "passes/exit-barrier.h"
#include "passes/reconvergence.h"
#include "passes/safe-point.h"
#include "syntax/lex.h"
#include "syntax/opcode.h"

#include <string.h>

/* Earlier targets have barriers of warps, not of threads. */
#define SM_MIN 70

/* A barrier that finished threads join. */
static void insert_barrier(struct cursor *at, struct rewrite *rewrite, const struct instruction *i)
{
	if (rewrite->reconvergence)
		reconverge_at_barrier(at, rewrite, i);
	exit_barrier_wait(at, rewrite, NULL, i);
}

/* Threads add to the tally, read the sum, and subtract their part again, so the tally is 0 at the
 * next barrier. `and` counts false predicates. */
static void insert_reduction(struct cursor *at, struct rewrite *rewrite,
			     const struct instruction *i, const struct barrier *barrier)
{
	struct function *f = rewrite->function;
	struct reg *mine = edit_register(f, TYPE_b32), *sum = edit_register(f, TYPE_b32);
	bool is_and = mnemonic_has(i->mnemonic, "and");
	struct operand result = *barrier->result, tally;

	if (!rewrite->tally)
		rewrite->tally = edit_variable(f, SPACE_SHARED, "tally", 4, 4);
	tally = op_variable(rewrite->tally);
	edit_code(at, "mov.u32 %0, 0;", op_reg(mine));
	edit_code(at, "mov.u32 %0, 1;", op_reg(mine));
	if (at->before && at->before->prev) {
		at->before->prev->guard = barrier->predicate->reg;
		at->before->prev->guard_negated = (barrier->predicate->sign == '!') != is_and;
	}
	edit_code(at, "red.shared.add.u32 [%0], %1;", tally, op_reg(mine));
	edit_guard_like(at, i);
	insert_barrier(at, rewrite, i);
	edit_code(at, "ld.volatile.shared.u32 %0, [%1];", op_reg(sum), tally);
	insert_barrier(at, rewrite, i);
	edit_code(at, "neg.s32 %0, %0;", op_reg(mine));
	edit_code(at, "red.shared.add.u32 [%0], %1;", tally, op_reg(mine));
	edit_guard_like(at, i);
	edit_code(at,
		  is_and                              ? "setp.eq.u32 %0, %1, 0;"
		  : mnemonic_has(i->mnemonic, "popc") ? "mov.u32 %0, %1;"
						      : "setp.ne.u32 %0, %1, 0;",
		  result, op_reg(sum));
	edit_guard_like(at, i);
}

static void replace_barrier(struct rewrite *rewrite, struct instruction *i,
			    const struct barrier *barrier)
{
	struct cursor at = cursor_before(rewrite->function, i);

	if (barrier->is_red)
		insert_reduction(&at, rewrite, i, barrier);
	else
		insert_barrier(&at, rewrite, i);
	edit_remove(i);
}

static void replace_barriers(struct rewrite *rewrite)
{
	struct barrier barrier;

	for (struct block *b = rewrite->function->entry; b; b = b->next) {
		for (struct instruction *i = b->first, *next; i; i = next) {
			next = i->next;
			if (barrier_read(i, &barrier) && !barrier.is_counted)
				replace_barrier(rewrite, i, &barrier);
		}
	}
}

/* Replaces every ret and exit by a jump to @to. */
static void replace_exits(struct function *f, struct block *to)
{
	for (struct block *b = f->entry; b; b = b->next) {
		struct instruction *i = b->last;
		struct cursor at;

		if (!i || i->mnemonic->op_class != OP_EXIT)
			continue;
		at = cursor_before(f, i);
		edit_code(&at, "bra %0;", op_block(to));
		b->last->guard = i->guard;
		b->last->guard_negated = i->guard_negated;
		edit_remove(i);
	}
}

/* Whether blocks share a resource that a fast thread of the next block must not touch yet. */
static bool shares(const struct instruction *i)
{
	struct barrier barrier;
	enum opcode_class op_class = i->mnemonic->op_class;

	for (size_t k = 0; k < i->operand_count; k++) {
		const struct operand *o = &i->operands[k];

		if (o->kind == OPERAND_ADDRESS && o->item_count)
			o = &o->items[0];
		if (o->kind == OPERAND_VARIABLE && o->variable->space == SPACE_SHARED)
			return true;
	}
	return op_class == OP_CALL || op_class == OP_ASYNC || op_class == OP_CLUSTER ||
	       mnemonic_has(i->mnemonic, "shared") ||
	       (barrier_read(i, &barrier) && barrier.is_counted);
}

struct writes {
	uint8_t *count; /* by register: 0, 1, 2: more */
};

static void count_write(void *data, struct register_use use)
{
	const struct writes *writes = data;

	if (use.written && writes->count[use.reg->id] < 2)
		writes->count[use.reg->id]++;
}

/* Whether @i gives a whole register an integer. */
static bool is_constant(const struct instruction *i)
{
	const struct operand *o = i->operands;
	uint64_t value;

	return !strcmp(i->mnemonic->name, "mov") && !i->guard && i->operand_count == 2 &&
	       o[0].kind == OPERAND_REGISTER && !o[0].suffix && o[1].kind == OPERAND_IMMEDIATE &&
	       o[1].text && token_integer(o[1].text, strlen(o[1].text), &value) &&
	       value == o[1].value;
}

/* CUTLASS passes barrier numbers through registers. Replaces those that always hold one constant.
 */
static void name_barriers(struct function *f)
{
	struct writes writes = {arena_array(f->arena, f->reg_count, sizeof(*writes.count))};
	struct operand *constant = arena_array(f->arena, f->reg_count, sizeof(*constant));
	struct barrier barrier;

	for_each_instruction (i, f) {
		instruction_registers(f, i, count_write, &writes);
		if (is_constant(i))
			constant[i->operands[0].reg->id] = i->operands[1];
	}
	for_each_instruction (i, f) {
		struct operand *number;

		if (!barrier_read(i, &barrier) || barrier.number->kind != OPERAND_REGISTER ||
		    barrier.number->suffix)
			continue;
		number = &i->operands[barrier.number - i->operands];
		if (writes.count[number->reg->id] == 1 &&
		    constant[number->reg->id].kind == OPERAND_IMMEDIATE)
			*number = constant[number->reg->id];
	}
}

/* wgmma, mma, ldmatrix ... */
static bool is_of_whole_warps(const struct instruction *i)
{
	enum opcode_class op_class = i->mnemonic->op_class;

	return (op_class == OP_WARP || op_class == OP_ASYNC) &&
	       mnemonic_has(i->mnemonic, "aligned");
}

/* Finds a free barrier number, whether blocks share anything, and what needs whole warps. */
static void look_around(struct rewrite *rewrite)
{
	struct function *f = rewrite->function;
	unsigned used = 0;

	for_each_instruction (i, f) {
		struct barrier barrier;

		/* code of warp-exit.c uses memory of its own warp only */
		if (i->at.line || rewrite->safe)
			rewrite->needs_barrier = rewrite->needs_barrier || shares(i);
		rewrite->needs_warps = rewrite->needs_warps || is_of_whole_warps(i);
		if (i->mnemonic->op_class != OP_BARRIER)
			continue;
		if (!barrier_read(i, &barrier))
			pass_refuse(rewrite, i->at, "a barrier of unknown kind");
		if (!barrier.is_counted)
			continue;
		if (barrier.number->kind != OPERAND_IMMEDIATE ||
		    barrier.number->value >= BARRIER_COUNT)
			pass_refuse(rewrite, i->at,
				    "a barrier with a thread count and its number in a register");
		used |= 1u << barrier.number->value;
	}
	rewrite->barrier = (unsigned)__builtin_ctz(~used);
	if (rewrite->barrier >= BARRIER_COUNT)
		pass_refuse(rewrite, f->at, "all barriers are in use");
}

/* If some threads only arrive at a barrier, others may wait there without a count. Such a barrier
 * cannot be replaced. NULL: there is none. */
static const struct instruction *find_awaited(const struct function *f)
{
	unsigned arrived = 0;
	struct barrier barrier;

	for_each_instruction (i, f)
		if (barrier_read(i, &barrier) && barrier.is_counted &&
		    mnemonic_has(i->mnemonic, "arrive"))
			arrived |= 1u << barrier.number->value;
	if (!arrived)
		return NULL;
	for_each_instruction (i, f)
		if (barrier_read(i, &barrier) && !barrier.is_counted &&
		    (barrier.number->kind != OPERAND_IMMEDIATE ||
		     (barrier.number->value < BARRIER_COUNT &&
		      arrived & 1u << barrier.number->value)))
			return i;
	return NULL;
}

/* @p bra.uni L;  ->  @p bra L;
 * Natively all lanes that are here agree on @p. In a form some may be in another block of the grid,
 * or come from another safe point, and ptxas makes code for whole warps of `uni`. */
static void allow_divergence(struct function *f)
{
	for_each_instruction (i, f) {
		const struct mnemonic *m = i->mnemonic;

		bool may_differ = i->guard || m->op_class == OP_TABLE ||
				  (m->op_class == OP_CALL && !callee_of(i));

		if (may_differ && mnemonic_has(m, "uni"))
			i->mnemonic = opcode_mnemonic(f->module, m->text,
						      (size_t)(strstr(m->text, ".uni") - m->text));
	}
}

static void at_barrier_of_others(struct cursor *at, struct rewrite *rewrite)
{
	exit_barrier_absent(at, rewrite, NULL);
}

/* Finished threads join the others' barriers until all have finished. */
static void leave_together(struct cursor *at, struct rewrite *rewrite)
{
	struct block *again = edit_new_block(rewrite->function);

	if (rewrite->exit_barriers)
		exit_barrier_done(at, rewrite);
	if (rewrite->reconvergence)
		reconverge_done(at, rewrite, rewrite->exit_barriers ? at_barrier_of_others : NULL);
	if (!rewrite->exit_barriers)
		return;
	cursor_place(at, again);
	edit_code(at, "@!%0 bra %1;", op_reg(exit_barrier_absent(at, rewrite, NULL)),
		  op_block(again));
}

static void run(struct rewrite *rewrite)
{
	struct function *f = rewrite->function;
	bool is_uniform = true; /* with safe points, all barriers are exit barriers already */
	const struct instruction *awaited;
	struct block *done;
	struct cursor at;
	struct cfg cfg;

	allow_divergence(f);
	name_barriers(f);
	look_around(rewrite);
	if (!rewrite->safe) {
		cfg_build(f, &cfg);
		is_uniform = uniform_barriers(f, &cfg);
	}
	if ((!is_uniform || rewrite->safe) && pass_target(f->module) < SM_MIN)
		pass_refuse(rewrite, f->at,
			    "threads may exit before barriers, and %s has no barriers of "
			    "single threads",
			    f->module->target);
	awaited = is_uniform ? NULL : find_awaited(f);
	if (awaited)
		pass_refuse(rewrite, awaited->at,
			    "a barrier is used with and without a thread count");
	if (!is_uniform)
		exit_barriers_init(rewrite);
	done = edit_block(f, f->last, "done");
	replace_exits(f, done);
	if (!is_uniform)
		replace_barriers(rewrite);
	at = cursor_end(f, done);
	async_await(&at, rewrite);
	if (rewrite->safe)
		safe_point_barrier_done(&at, rewrite);
	else
		leave_together(&at, rewrite);
	rewrite->exits_at_barrier = rewrite->safe ? !rewrite->safe->is_uniform : !is_uniform;
	edit_code(&at, "ret;");
	rewrite->leave = at.block->last;
}

const struct pass pass_uniform_exit = {"uniform-exit", run};
