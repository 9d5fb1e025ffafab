/* A warp instruction may name lanes that have left the kernel: they are not waited for. In a form
 *in which nobody leaves they wait elsewhere, and whoever names them would wait for ever.
 *
 * So where some lanes may have left (uniform.h) and an instruction names all 32, the lanes of the
 * warp gather in front of it, those that are done included, and it names those that are not. What
 * follows it in the block has the same lanes.
 *
 *	shfl.sync %a, %b, 1, 31, -1;  ->  bar.warp.sync %lanes;  %live = words.live;
 *	                                  bar.warp.sync %lanes;  shfl.sync %a, %b, 1, 31, %live;
 *	ret;                          ->  words.live &= ~me
 *	                            done: bar.warp.sync %lanes;  %live = words.live;
 *	                                  bar.warp.sync %lanes;  @%live != 0 bra done;
 *
 * Nobody leaves between the two, so all read the same. Masks that were made of lanes that were
 *there are good; of others nobody knows who will come, and the kernel is refused.
 */
#include "passes/callee.h"
#include "passes/reconvergence.h"
#include "passes/safe.h"
#include "analysis/uniform.h"
#include "passes/exit-barrier.h"
#include "analysis/warp-mask.h"

#include <errno.h>

/* Lanes that wait for each other on different paths. */
#define SM_MIN 70

#define WARPS_MAX 32u

struct looking {
	struct rewrite *rewrite;
	struct function *f;
	struct uniform_left left;
	uint8_t *masks;
	bool is_needed;
};

struct reg *gather(struct cursor *at, struct rewrite *rewrite, const struct instruction *like)
{
	const struct gathering *g = rewrite->gathering;
	struct reg *live = edit_named_register(rewrite->function, TYPE_b32, "live");

	edit_code(at, "bar.warp.sync %0;", op_reg(g->lanes));
	edit_guard_like(at, like);
	edit_code(at, "ld.volatile.shared.u32 %0, [%1];", op_reg(live), op_reg(g->words));
	edit_code(at, "bar.warp.sync %0;", op_reg(g->lanes));
	edit_guard_like(at, like);
	return live;
}

static void tell(struct cursor *at, struct rewrite *rewrite, uint32_t is_barrier,
		 const struct instruction *like)
{
	struct reg *word = edit_register(rewrite->function, TYPE_b32);

	edit_code(at, "mov.u32 %0, %1;", op_reg(word), op_int(is_barrier));
	edit_code(at, "st.volatile.shared.u32 [%0+4], %1;", op_reg(rewrite->gathering->words),
		  op_reg(word));
	edit_guard_like(at, like);
}

void gather_at_barrier(struct cursor *at, struct rewrite *rewrite, const struct instruction *like)
{
	tell(at, rewrite, 1, like);
	gather(at, rewrite, like);
	tell(at, rewrite, 0, like);
}

/* One who is done, at a barrier of the others. If all threads come by the same barriers that cannot
 * be, and it stands there for nothing. */
static void come_to_barrier(struct cursor *at, struct rewrite *rewrite)
{
	if (!rewrite->votes || (rewrite->safe && rewrite->safe->is_uniform))
		return;
	if (rewrite->safe)
		safe_vote_absent(at, rewrite);
	else
		vote_absent(at, rewrite, NULL);
}

void gather_done(struct cursor *at, struct rewrite *rewrite)
{
	struct function *f = rewrite->function;
	const struct gathering *g = rewrite->gathering;

	struct block *again = edit_new_block(f), *out = edit_new_block(f);

	if (!again || !out)
		return;
	edit_code(at,
		  "{ .reg .b32 %others; mov.u32 %others, %1; not.b32 %others, %others;"
		  "  red.shared.and.b32 [%0], %others; }",
		  op_reg(g->words), op_special(f, "%lanemask_eq"));
	cursor_place(at, again);
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %live, %barrier; bar.warp.sync %0;"
		  "  ld.volatile.shared.v2.u32 {%live, %barrier}, [%1]; bar.warp.sync %0;"
		  "  setp.eq.u32 %p, %live, 0; @%p bra %2;"
		  "  setp.eq.u32 %p, %barrier, 0; @%p bra %3; }",
		  op_reg(g->lanes), op_reg(g->words), op_block(out), op_block(again));
	come_to_barrier(at, rewrite);
	edit_code(at, "bra %0;", op_block(again));
	cursor_place(at, out);
}

/* In front of each block of the program. */
static void write_start(struct rewrite *rewrite)
{
	struct function *f = rewrite->function;
	const struct gathering *g = rewrite->gathering;
	struct variable *words = edit_variable(f, SPACE_SHARED, "warps", 8, WARPS_MAX * 8);
	struct cursor at = cursor_start(f, edit_block(f, NULL, "warps"));

	edit_code(&at,
		  "{ .reg .b32 %me, %x, %y, %threads;"
		  "  mov.u32 %me, %tid.z; mov.u32 %y, %ntid.y; mov.u32 %x, %tid.y;"
		  "  mad.lo.u32 %me, %me, %y, %x; mov.u32 %threads, %ntid.x; mov.u32 %x, %tid.x;"
		  "  mad.lo.u32 %me, %me, %threads, %x; mul.lo.u32 %threads, %threads, %y;"
		  "  mov.u32 %y, %ntid.z; mul.lo.u32 %threads, %threads, %y;"
		  "  shr.u32 %me, %me, 5; shl.b32 %x, %me, 5; sub.u32 %x, %threads, %x;"
		  "  min.u32 %x, %x, 32; sub.u32 %x, 32, %x; mov.u32 %0, -1; shr.u32 %0, %0, %x;"
		  "  shl.b32 %me, %me, 3; mov.u32 %1, %2; add.u32 %1, %1, %me;"
		  "  mov.u32 %x, 0; st.volatile.shared.v2.u32 [%1], {%0, %x};"
		  "  bar.warp.sync %0; }",
		  op_reg(g->lanes), op_reg(g->words), op_variable(words));
}

static int check_call(struct looking *l, const struct instruction *call)
{
	const char *culprit = "";
	int r = callee_has(call, l->f->module, CALLEE_WARP, &culprit);

	if (r > 0)
		return pass_refuse(
			l->rewrite, call->at,
			"threads of a warp may leave before a call of %.80s, which names "
			"them",
			culprit);
	return r;
}

static int check_instruction(struct looking *l, const struct instruction *i)
{
	enum mask_kind mask = warp_mask_of(i, l->masks);

	if (!uniform_is_left(&l->left, i))
		return PASS_DONE;
	if (i->mnemonic->op_class == OP_CALL)
		return check_call(l, i);
	if (mask == MASK_UNKNOWN || (mask == MASK_ALL && i->guard))
		return pass_refuse(l->rewrite, i->at,
				   "threads of a warp may leave before %.80s, which may name them",
				   i->mnemonic->text);
	l->is_needed = l->is_needed || mask == MASK_ALL;
	return PASS_DONE;
}

static int look_at_all(struct looking *l)
{
	for (struct block *b = l->f->entry; b; b = b->next) {
		for (const struct instruction *i = b->first; i; i = i->next) {
			int r = check_instruction(l, i);

			if (r)
				return r;
		}
	}
	return PASS_DONE;
}

/* bar.warp.sync may meet another one of it elsewhere, behind which some leave. */
static bool keeps_lanes(const struct instruction *i)
{
	enum opcode_class op_class = i->mnemonic->op_class;

	return op_class != OP_BARRIER && op_class != OP_CALL &&
	       !(op_class == OP_WARP && !(i->mnemonic->flags & OP_WRITES_0));
}

static void write_block(struct looking *l, struct block *b)
{
	struct reg *live = NULL;

	for (struct instruction *i = b->first; i; i = i->next) {
		if (uniform_is_left(&l->left, i) && warp_mask_of(i, l->masks) == MASK_ALL) {
			struct cursor at = cursor_before(l->f, i);

			if (!live)
				live = gather(&at, l->rewrite, i);
			i->operands[i->operand_count - 1] = op_reg(live);
		}
		if (!keeps_lanes(i))
			live = NULL;
	}
}

static bool may_wait(const struct function *f)
{
	for (const struct block *b = f->entry; b; b = b->next)
		for (const struct instruction *i = b->first; i; i = i->next)
			if (warp_has_mask(i) || i->mnemonic->op_class == OP_CALL)
				return true;
	return false;
}

static int run(struct rewrite *rewrite)
{
	struct looking l = {.rewrite = rewrite, .f = rewrite->function};
	struct cfg cfg;
	int r;

	if (!may_wait(l.f))
		return PASS_DONE;
	r = cfg_build(l.f, &cfg);
	if (!r)
		r = uniform_find_left(l.f, &cfg, &l.left);
	l.masks = r ? NULL : warp_masks(l.f);
	if (!r)
		r = l.masks ? look_at_all(&l) : -ENOMEM;
	if (r || !l.is_needed)
		return r;
	if (pass_target(l.f->module) < SM_MIN)
		return pass_refuse(rewrite, l.f->at,
				   "threads of a warp may leave before others name them, and %s "
				   "has no barriers for single threads",
				   l.f->module->target);
	rewrite->gathering = arena_new(l.f->arena, struct gathering);
	if (!rewrite->gathering)
		return -ENOMEM;
	rewrite->gathering->lanes = edit_named_register(l.f, TYPE_b32, "lanes");
	rewrite->gathering->words = edit_named_register(l.f, TYPE_b32, "warp");
	for (struct block *b = l.f->entry; b; b = b->next)
		write_block(&l, b);
	write_start(rewrite);
	return PASS_DONE;
}

const struct pass pass_warp_exit = {"warp-exit", run};
