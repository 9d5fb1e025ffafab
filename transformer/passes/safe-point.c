#include "passes/safe-point.h"

#include "passes/exit-barrier.h"
#include "passes/hidden.h"
#include "passes/reconvergence.h"

struct safe_point *safe_point_new(struct rewrite *rewrite, struct block *at, bool is_common)
{
	struct function *f = rewrite->function;
	struct safe_point *point = arena_new(f->arena, struct safe_point);
	struct cursor leaving;

	*point = (struct safe_point){.number = rewrite->safe->count++,
				     .at = at,
				     .leave = edit_block(f, f->last, "leave"),
				     .is_common = is_common};
	leaving = cursor_end(f, point->leave);
	edit_code(&leaving, "trap;");
	*rewrite->safe->points_end = point;
	rewrite->safe->points_end = &point->next;
	return point;
}

struct cursor safe_point_leaving(struct rewrite *rewrite, struct safe_point *point)
{
	struct block *b = point->leave;

	/* Code in front of the trap may have split the block. */
	while (b->last && b->last->mnemonic->op_class != OP_TRAP && b->next)
		b = b->next;
	return (struct cursor){rewrite->function, b, b->last};
}

/* Begins a new block at the cursor. */
static struct block *begin_block(struct cursor *at)
{
	struct block *block = edit_new_block(at->function);

	cursor_place(at, block);
	return block;
}

struct safe_point *safe_point_barrier(struct cursor *at, struct rewrite *rewrite)
{
	struct safe_point *point = safe_point_new(rewrite, begin_block(at), true);

	exit_barrier_wait(at, rewrite, point->leave, NULL);
	return point;
}

struct reg *safe_point_barrier_absent(struct cursor *at, struct rewrite *rewrite)
{
	struct safe_point *point = safe_point_new(rewrite, begin_block(at), true);

	return exit_barrier_absent(at, rewrite, point->leave);
}

static void at_barrier_of_others(struct cursor *at, struct rewrite *rewrite)
{
	safe_point_barrier_absent(at, rewrite);
}

void safe_point_barrier_done(struct cursor *at, struct rewrite *rewrite)
{
	bool is_uniform = rewrite->safe->is_uniform;
	struct block *again;

	if (!is_uniform)
		exit_barrier_done(at, rewrite);
	if (rewrite->reconvergence)
		reconverge_done(at, rewrite, is_uniform ? NULL : at_barrier_of_others);
	if (is_uniform)
		return;
	again = begin_block(at);
	edit_code(at, "@!%0 bra %1;", op_reg(safe_point_barrier_absent(at, rewrite)),
		  op_block(again));
}

void safe_point_begin_period(struct cursor *at, struct rewrite *rewrite)
{
	edit_code(at,
		  "{ .reg .b32 %from; mov.u32 %0, %clock; neg.s32 %from, %1; and.b32 %0, %0, "
		  "%from; }",
		  op_reg(rewrite->safe->since), hidden32(at, rewrite, HIDDEN(look)));
}

void safe_point_set_flags(struct cursor *at, struct rewrite *rewrite, struct operand id,
			  struct operand first, struct operand n)
{
	struct operand saves = hidden64(at, rewrite, HIDDEN(saves));
	struct operand stride = hidden32(at, rewrite, HIDDEN(save_stride)); /* less than 2^32 */

	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %w, %all, %on; .reg .b64 %flag;"
		  "  mul.lo.u32 %w, %4, %3; mul.lo.u32 %on, %5, %3; mov.u32 %all, %nctaid.x;"
		  "again: mad.wide.u32 %flag, %w, %2, %1; setp.lt.u32 %p, %w, %all;"
		  "  @%p st.volatile.global.u32 [%flag+16], %0; add.u32 %w, %w, %on; @%p bra "
		  "again; }",
		  id, saves, stride, op_int(SAFE_POINT_GROUP), first, n);
}
