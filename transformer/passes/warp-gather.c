// clang-format off
/* Gathers the lanes that an instruction names and that have not finished, so that it names no
 * others. Natively the hardware does this: it waits for a named lane until that comes or exits.
 *
 *	here	same = the lanes that came here together with the same mask
 *		all others that the mask names have finished?  in all of these lanes: instruction
 *	slow	want[me] = mask
 *	again	a named lane is neither of these, nor has finished, nor wants this mask?  again
 *		bar.warp.sync (mask and not finished);  want[me] = 0;  bar.warp.sync
 *
 * A lane with the same mask elsewhere is not one of `same`. It has not finished, so both take the
 * slow way. A lane that wants a mask waits for it, so the lanes found are complete and stay:
 * all of them compute the same mask. None passes the second barrier before all have cleared their
 * words, so a word that a lane sees belongs to the instruction that it comes to.
 *
 * Lanes that wait sleep between two looks, so that others of their warp run.
 */
// clang-format on
#include "analysis/warp-mask.h"
#include "passes/pass.h"
#include "passes/reconvergence.h"

void start_gathering(struct cursor *at, struct rewrite *rewrite)
{
	edit_code(at,
		  "{ .reg .b32 %want, %none; mov.u32 %want, %laneid; mov.u32 %none, 0;"
		  "  shl.b32 %want, %want, 2; add.u32 %want, %want, %0;"
		  "  st.volatile.shared.u32 [%want+8], %none; }",
		  op_reg(rewrite->reconvergence->words));
}
static_assert(RECONVERGENCE_WORDS == 8, "in the templates");

static void write_waiting(struct cursor *at, struct rewrite *rewrite, struct reg *mask,
			  struct reg *rest)
{
	const struct reconvergence *warp = rewrite->reconvergence;
	struct operand want = op_reg(edit_register(rewrite->function, TYPE_b32));

	edit_code(at,
		  "{ mov.u32 %0, %laneid; shl.b32 %0, %0, 2; add.u32 %0, %0, %1;"
		  "  st.volatile.shared.u32 [%0+8], %2; }",
		  want, op_reg(warp->words), op_reg(mask));
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %x, %lane;"
		  "again: ld.volatile.shared.u32 %x, [%0]; and.b32 %1, %1, %x;"
		  "  setp.eq.u32 %p, %1, 0; @%p bra all;"
		  "  bfind.u32 %lane, %1; shl.b32 %x, %lane, 2; add.u32 %x, %x, %0;"
		  "  ld.volatile.shared.u32 %x, [%x+8]; setp.eq.u32 %p, %x, %2; @%p bra came;"
		  "  nanosleep.u32 20; bra again;"
		  "came: mov.u32 %x, 1; shl.b32 %x, %x, %lane; xor.b32 %1, %1, %x; bra again;"
		  "all: }",
		  op_reg(warp->words), op_reg(rest), op_reg(mask));
	edit_code(at,
		  "{ .reg .b32 %x; ld.volatile.shared.u32 %x, [%0]; and.b32 %1, %1, %x;"
		  "  mov.u32 %x, 0; bar.warp.sync %1; st.volatile.shared.u32 [%2+8], %x;"
		  "  bar.warp.sync %1; }",
		  op_reg(warp->words), op_reg(mask), want);
}

static void gather(struct rewrite *rewrite, struct instruction *i)
{
	struct function *f = rewrite->function;
	struct reg *mask = edit_named_register(f, TYPE_b32, "named"),
		   *rest = edit_named_register(f, TYPE_b32, "absent");
	struct block *slow = edit_new_block(f), *all = edit_new_block(f);
	struct operand *operand = &i->operands[i->operand_count - 1];
	struct cursor at;

	if (i->guard)
		edit_unguard(f, i);
	at = cursor_before(f, i);
	edit_code(&at, "mov.u32 %0, %1;", op_reg(mask), *operand);
	edit_code(&at,
		  "{ .reg .pred %p; .reg .b32 %here, %same; activemask.b32 %here;"
		  "  match.any.sync.b32 %same, %0, %here; ld.volatile.shared.u32 %1, [%2];"
		  "  not.b32 %here, %same; and.b32 %here, %here, %0; and.b32 %1, %1, %here;"
		  "  setp.ne.u32 %p, %1, 0; vote.sync.any.pred %p, %p, %same; @%p bra %3;"
		  "  mov.u32 %0, %same; bra %4; }",
		  op_reg(mask), op_reg(rest), op_reg(rewrite->reconvergence->words), op_block(slow),
		  op_block(all));
	cursor_place(&at, slow);
	write_waiting(&at, rewrite, mask, rest);
	cursor_place(&at, all);
	*operand = op_reg(mask);
}

/* From its end: each instruction splits the block, and what is behind it has to move. */
static void reconverge_block(struct rewrite *rewrite, struct block *b)
{
	for (struct instruction *i = b->last, *prev; i; i = prev) {
		prev = i->prev;
		if (i->at.line && warp_has_mask(i))
			gather(rewrite, i);
	}
}

static void run(struct rewrite *rewrite)
{
	if (!rewrite->reconvergence || !rewrite->reconvergence->gathers)
		return;
	for (struct block *b = rewrite->function->entry, *next; b; b = next) {
		next = b->next; /* new blocks come before it */
		reconverge_block(rewrite, b);
	}
}

const struct pass pass_warp_gather = {"warp-gather", run};
