#include "passes/reconvergence.h"

struct reg *reconverge(struct cursor *at, struct rewrite *rewrite, const struct instruction *like)
{
	const struct reconvergence *warp = rewrite->reconvergence;
	struct reg *live = edit_named_register(rewrite->function, TYPE_b32, "live");

	edit_code(at, "bar.warp.sync %0;", op_reg(warp->lanes));
	edit_guard_like(at, like);
	edit_code(at, "ld.volatile.shared.u32 %0, [%1];", op_reg(live), op_reg(warp->words));
	edit_code(at, "bar.warp.sync %0;", op_reg(warp->lanes));
	edit_guard_like(at, like);
	return live;
}

static void tell(struct cursor *at, struct rewrite *rewrite, uint32_t is_barrier,
		 const struct instruction *like)
{
	struct reg *word = edit_register(rewrite->function, TYPE_b32);

	edit_code(at, "mov.u32 %0, %1;", op_reg(word), op_int(is_barrier));
	edit_code(at, "st.volatile.shared.u32 [%0+4], %1;", op_reg(rewrite->reconvergence->words),
		  op_reg(word));
	edit_guard_like(at, like);
}

void reconverge_at_barrier(struct cursor *at, struct rewrite *rewrite,
			   const struct instruction *like)
{
	if (rewrite->reconvergence->gathers)
		return;
	tell(at, rewrite, 1, like);
	reconverge(at, rewrite, like);
	tell(at, rewrite, 0, like);
}

void reconverge_done(struct cursor *at, struct rewrite *rewrite, barrier_writer *at_barrier)
{
	struct function *f = rewrite->function;
	const struct reconvergence *warp = rewrite->reconvergence;
	struct block *again, *out;

	edit_code(at,
		  "{ .reg .b32 %others; mov.u32 %others, %1; not.b32 %others, %others;"
		  "  red.shared.and.b32 [%0], %others; }",
		  op_reg(warp->words), op_special(f, "%lanemask_eq"));
	if (warp->gathers) {
		if (!at_barrier)
			edit_code(at, "bar.warp.sync %0;", op_reg(warp->lanes));
		return;
	}
	again = edit_new_block(f);
	out = edit_new_block(f);
	cursor_place(at, again);
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %live, %barrier; bar.warp.sync %0;"
		  "  ld.volatile.shared.v2.u32 {%live, %barrier}, [%1]; bar.warp.sync %0;"
		  "  setp.eq.u32 %p, %live, 0; @%p bra %2;"
		  "  setp.eq.u32 %p, %barrier, 0; @%p bra %3; }",
		  op_reg(warp->lanes), op_reg(warp->words), op_block(out), op_block(again));
	if (at_barrier)
		at_barrier(at, rewrite);
	edit_code(at, "bra %0;", op_block(again));
	cursor_place(at, out);
}
