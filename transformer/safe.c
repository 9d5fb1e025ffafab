#include "safe.h"

#include "gather.h"
#include "hidden.h"

struct safe_point *safe_point_new(struct rewrite *rewrite, struct block *at, bool is_common)
{
	static struct safe_point broken;
	struct function *f = rewrite->function;
	struct safe_point *point = arena_new(f->arena, struct safe_point);
	struct cursor leaving;

	if (!point) {
		diag_no_memory(f->module->diag);
		return &broken;
	}
	*point = (struct safe_point){
		.at = at, .leave = edit_block(f, f->last, "leave"), .is_common = is_common};
	leaving = cursor_end(f, point->leave);
	edit_code(&leaving, "trap;");
	*rewrite->safe->points_end = point;
	rewrite->safe->points_end = &point->next;
	rewrite->safe->count++;
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

/* A block that begins at the cursor. */
static struct block *begin_block(struct cursor *at)
{
	struct block *block = edit_new_block(at->function);

	if (!block)
		return at->block;
	cursor_place(at, block);
	return block;
}

struct safe_point *safe_vote(struct cursor *at, struct rewrite *rewrite)
{
	struct safe *safe = rewrite->safe;
	struct safe_point *point = safe_point_new(rewrite, begin_block(at), true);

	if (safe->counts)
		edit_code(at,
			  "{ .reg .pred %p; .reg .b32 %here, %done;"
			  "  mov.pred %p, 1; barrier.red.popc.u32 %here, %0, %p;"
			  "  ld.volatile.shared.u32 %done, [%1]; add.u32 %here, %here, %done;"
			  "  sub.u32 %here, %here, %2; setp.lt.s32 %p, %here, 0; @%p bra %3; }",
			  op_int(rewrite->barrier), op_variable(safe->finished),
			  op_reg(safe->quorum), op_block(point->leave));
	else
		edit_code(at,
			  "{ .reg .pred %no, %left; mov.pred %no, 0;"
			  "  barrier.red.or.pred %left, %0, %no; @%left bra %1; }",
			  op_int(rewrite->barrier), op_block(point->leave));
	return point;
}

void safe_vote_again(struct cursor *at, struct rewrite *rewrite)
{
	edit_code(at,
		  rewrite->safe->counts ? "{ .reg .pred %p; .reg .b32 %n; mov.pred %p, 1;"
					  "  barrier.red.popc.u32 %n, %0, %p; }"
					: "barrier.sync %0;",
		  op_int(rewrite->safe->counts ? rewrite->barrier : SAFE_BARRIER));
}

struct reg *safe_vote_absent(struct cursor *at, struct rewrite *rewrite)
{
	struct safe *safe = rewrite->safe;
	struct safe_point *point = safe_point_new(rewrite, begin_block(at), true);
	struct reg *none = edit_register(rewrite->function, TYPE_pred);

	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %here, %done;"
		  "  mov.pred %p, 0; barrier.red.popc.u32 %here, %0, %p;"
		  "  setp.eq.u32 %4, %here, 0;"
		  "  ld.volatile.shared.u32 %done, [%1]; add.u32 %here, %here, %done;"
		  "  sub.u32 %here, %here, %2; setp.lt.s32 %p, %here, 0; @%p bra %3; }",
		  op_int(rewrite->barrier), op_variable(safe->finished), op_reg(safe->quorum),
		  op_block(point->leave), op_reg(none));
	return none;
}

/* Everybody is done, or has left, if nobody stands at a barrier. */
static void vote_counted_done(struct cursor *at, struct rewrite *rewrite)
{
	struct safe *safe = rewrite->safe;
	struct block *again;

	edit_code(at, "red.shared.add.u32 [%0], 1;", op_variable(safe->finished));
	if (rewrite->gathering)
		gather_done(at, rewrite);
	again = begin_block(at);
	edit_code(at, "@!%0 bra %1;", op_reg(safe_vote_absent(at, rewrite)), op_block(again));
	edit_code(at,
		  "{ .reg .b32 %n, %m; mov.u32 %n, %ntid.x; mov.u32 %m, %ntid.y;"
		  "  mul.lo.u32 %n, %n, %m; mov.u32 %m, %ntid.z; mad.lo.u32 %0, %n, %m, %0; }",
		  op_reg(safe->quorum));
}

void safe_vote_done(struct cursor *at, struct rewrite *rewrite)
{
	if (rewrite->safe->counts)
		vote_counted_done(at, rewrite);
	else if (rewrite->gathering)
		gather_done(at, rewrite);
}

void safe_vote_left(struct cursor *at, struct rewrite *rewrite)
{
	edit_code(
		at,
		rewrite->safe->counts
			? "{ .reg .pred %p; .reg .b32 %n; mov.pred %p, 0;"
			  "  barrier.red.popc.u32 %n, %0, %p; }"
			: "{ .reg .pred %p, %n; mov.pred %p, 1; barrier.red.or.pred %n, %0, %p; }",
		op_int(rewrite->barrier));
}

void safe_tell(struct cursor *at, struct rewrite *rewrite, struct operand id)
{
	struct operand saves = hidden64(at, rewrite, HIDDEN(saves));
	struct operand stride = hidden64(at, rewrite, HIDDEN(save_stride));

	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %w, %all; .reg .b64 %flag, %step;"
		  "  mov.u32 %w, 0; mov.u32 %all, %nctaid.x; add.u64 %flag, %1, 4;"
		  "  mul.lo.u64 %step, %2, %3;"
		  "again: st.volatile.global.u32 [%flag], %0; add.u64 %flag, %flag, %step;"
		  "  add.u32 %w, %w, %3; setp.lt.u32 %p, %w, %all; @%p bra again; }",
		  id, saves, stride, op_int(SAFE_GROUP));
}
