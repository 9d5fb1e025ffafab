#include "passes/exit-barrier.h"

void exit_barriers_init(struct rewrite *rewrite)
{
	struct function *f = rewrite->function;
	struct exit_barriers *barriers = arena_new(f->arena, struct exit_barriers);

	barriers->next = edit_named_register(f, TYPE_b32, "vote");
	barriers->announced = edit_variable(f, SPACE_SHARED, "told", 8, 8);
	barriers->finished = edit_variable(f, SPACE_SHARED, "finished", 4, 4);
	rewrite->exit_barriers = barriers;
}

/* All threads store the same values. */
void exit_barriers_begin(struct cursor *at, struct rewrite *rewrite)
{
	const struct exit_barriers *barriers = rewrite->exit_barriers;

	edit_code(at,
		  "{ .reg .b32 %none; mov.u32 %0, 1; mov.u32 %none, 0; st.shared.u32 [%2], %none;"
		  "  mov.u32 %none, -1; st.shared.u32 [%1], %none; st.shared.u32 [%1+4], %none; }",
		  op_reg(barriers->next), op_variable(barriers->announced),
		  op_variable(barriers->finished));
}

/* To @left, unless that is NULL, if a thread has left at this barrier. */
static void check_left(struct cursor *at, const struct exit_barriers *barriers, struct block *left)
{
	if (left)
		edit_code(at,
			  "{ .reg .pred %p; .reg .b32 %left; ld.shared.u32 %left, [%0];"
			  "  setp.eq.u32 %p, %left, %1; @%p bra %2; }",
			  op_variable(barriers->announced), op_reg(barriers->next), op_block(left));
}

static void advance(struct cursor *at, const struct exit_barriers *barriers,
		    const struct instruction *like)
{
	edit_code(at, "add.u32 %0, %0, 1;", op_reg(barriers->next));
	if (like)
		edit_guard_like(at, like);
	edit_code(at, "and.b32 %0, %0, 0x7fffffff;", op_reg(barriers->next));
}

void exit_barrier_wait(struct cursor *at, struct rewrite *rewrite, struct block *left,
		       const struct instruction *like)
{
	const struct exit_barriers *barriers = rewrite->exit_barriers;

	edit_code(at, "barrier.sync %0;", op_int(rewrite->barrier));
	if (like)
		edit_guard_like(at, like);
	check_left(at, barriers, left);
	advance(at, barriers, like);
}

void exit_barrier_left(struct cursor *at, struct rewrite *rewrite)
{
	edit_code(at, "st.shared.u32 [%0], %1; barrier.sync %2;",
		  op_variable(rewrite->exit_barriers->announced),
		  op_reg(rewrite->exit_barriers->next), op_int(rewrite->barrier));
}

/* The last thread resets the count to 0 for the next block. */
void exit_barrier_done(struct cursor *at, struct rewrite *rewrite)
{
	const struct exit_barriers *barriers = rewrite->exit_barriers;

	edit_code(at,
		  "{ .reg .pred %last; .reg .b32 %n, %x; mov.u32 %n, %ntid.x; mov.u32 %x, %ntid.y;"
		  "  mul.lo.u32 %n, %n, %x; mov.u32 %x, %ntid.z; mul.lo.u32 %n, %n, %x;"
		  "  sub.u32 %n, %n, 1; atom.shared.inc.u32 %x, [%0], %n;"
		  "  setp.eq.u32 %last, %x, %n; @%last st.shared.u32 [%1+4], %2; }",
		  op_variable(barriers->finished), op_variable(barriers->announced),
		  op_reg(barriers->next));
}

struct reg *exit_barrier_absent(struct cursor *at, struct rewrite *rewrite, struct block *left)
{
	const struct exit_barriers *barriers = rewrite->exit_barriers;
	struct reg *none = edit_register(rewrite->function, TYPE_pred);

	edit_code(at,
		  "{ .reg .b32 %done; barrier.sync %0; ld.shared.u32 %done, [%1+4];"
		  "  setp.eq.u32 %2, %done, %3; }",
		  op_int(rewrite->barrier), op_variable(barriers->announced), op_reg(none),
		  op_reg(barriers->next));
	check_left(at, barriers, left);
	advance(at, barriers, NULL);
	return none;
}
