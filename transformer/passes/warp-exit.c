// clang-format off
/* A warp instruction may name lanes that have exited; the hardware does not wait for them. In a
 * form where finished lanes stay, they would be waited for, for ever.
 *
 * So where lanes may have exited (uniform.h) and an instruction names all 32, the lanes of the
 * warp reconverge in front of it, finished ones included. The instruction then names the
 * unfinished lanes. Later instructions in the block have the same lanes.
 *
 *	shfl.sync %a, %b, 1, 31, -1;  ->  bar.warp.sync %lanes;  %live = words.live;
 *	                                  bar.warp.sync %lanes;  shfl.sync %a, %b, 1, 31, %live;
 *	ret;                          ->  words.live &= ~me
 *	                            done: bar.warp.sync %lanes;  %live = words.live;
 *	                                  bar.warp.sync %lanes;  @%live != 0 bra done;
 *
 * No lane finishes between the two barriers, so all read the same mask. A mask of lanes that were
 * active before is correct if they certainly come (warp-pair.h).
 *
 * If any other mask may name lanes that have exited, all masks of the kernel are gathered instead
 * (warp-gather.c), because instructions at several places may wait for each other.
 */
// clang-format on
#include "analysis/uniform.h"
#include "analysis/warp-mask.h"
#include "analysis/warp-pair.h"
#include "passes/callee.h"
#include "passes/reconvergence.h"

/* Earlier targets cannot wait for lanes on different paths. */
#define SM_MIN 70

#define WARPS_MAX 32u

struct checker {
	struct rewrite *rewrite;
	struct function *f;
	struct uniform_exited left;
	uint8_t *masks;
	struct warp_pairs *pairs;
	bool is_needed; /* the masks of some instructions have to change */
	bool gathers;   /* by warp-gather.c */
};

/* The most warps that a block of the kernel may have. */
static unsigned warps_of(const struct function *f)
{
	const struct directive *limit = function_directive(f, "reqntid");
	uint64_t threads = 1;

	if (!limit)
		limit = function_directive(f, "maxntid");
	if (!limit)
		return WARPS_MAX;
	for (unsigned k = 0; k < limit->value_count; k++)
		threads = threads * limit->values[k] > WARPS_MAX * 32 ? WARPS_MAX * 32
								      : threads * limit->values[k];
	return (unsigned)(threads + 31) / 32;
}

/* Runs in front of each block of the grid. */
static void write_start(struct rewrite *rewrite)
{
	struct function *f = rewrite->function;
	const struct reconvergence *warp = rewrite->reconvergence;
	unsigned bytes = warp->gathers ? RECONVERGENCE_GATHERS : RECONVERGENCE_WORDS;
	struct variable *words = edit_variable(f, SPACE_SHARED, "warps", 8, warps_of(f) * bytes);
	struct cursor at = cursor_start(f, edit_block(f, NULL, "warps"));

	edit_code(&at,
		  "{ .reg .b32 %me, %x, %y, %threads;"
		  "  mov.u32 %me, %tid.z; mov.u32 %y, %ntid.y; mov.u32 %x, %tid.y;"
		  "  mad.lo.u32 %me, %me, %y, %x; mov.u32 %threads, %ntid.x; mov.u32 %x, %tid.x;"
		  "  mad.lo.u32 %me, %me, %threads, %x; mul.lo.u32 %threads, %threads, %y;"
		  "  mov.u32 %y, %ntid.z; mul.lo.u32 %threads, %threads, %y;"
		  "  shr.u32 %me, %me, 5; shl.b32 %x, %me, 5; sub.u32 %x, %threads, %x;"
		  "  min.u32 %x, %x, 32; sub.u32 %x, 32, %x; mov.u32 %0, -1; shr.u32 %0, %0, %x;"
		  "  mul.lo.u32 %me, %me, %3; mov.u32 %1, %2; add.u32 %1, %1, %me;"
		  "  mov.u32 %x, 0; st.volatile.shared.v2.u32 [%1], {%0, %x}; }",
		  op_reg(warp->lanes), op_reg(warp->words), op_variable(words), op_int(bytes));
	if (warp->gathers)
		start_gathering(&at, rewrite);
	edit_code(&at, "bar.warp.sync %0;", op_reg(warp->lanes));
}

static void check_instruction(struct checker *l, const struct instruction *i)
{
	enum mask_kind mask = warp_mask_of(i, l->masks);

	if (!uniform_has_exited(&l->left, i))
		return;
	if (i->mnemonic->op_class == OP_CALL)
		callee_refuse(l->rewrite, i, CALLEE_WARP, "lanes may exit before a call of",
			      "may wait for them");
	if (mask == MASK_NONE || (mask == MASK_LIVE && warp_is_paired(l->pairs, i)))
		return;
	l->is_needed = true;
	l->gathers = l->gathers || mask != MASK_ALL || i->guard;
}

/* A function is not rewritten, so it cannot gather. */
static void check_gathering(const struct checker *l)
{
	if (!pass_has_isa(l->f->module, 6, 3))
		pass_refuse(l->rewrite, l->f->at,
			    "lanes may exit before others name them, and PTX before 6.3 has no "
			    "nanosleep");
	for_each_instruction (i, l->f)
		if (i->mnemonic->op_class == OP_CALL)
			callee_refuse(l->rewrite, i, CALLEE_WARP,
				      "lanes may exit before others name them; calls",
				      "may wait for them");
}

/* bar.warp.sync may match one at another place, behind which lanes exit. */
static bool keeps_lanes(const struct instruction *i)
{
	enum opcode_class op_class = i->mnemonic->op_class;

	return op_class != OP_BARRIER && op_class != OP_CALL &&
	       !(op_class == OP_WARP && !(i->mnemonic->flags & OP_WRITES_0));
}

static void write_block(struct checker *l, struct block *b)
{
	struct reg *live = NULL;

	for (struct instruction *i = b->first; i; i = i->next) {
		if (uniform_has_exited(&l->left, i) && warp_mask_of(i, l->masks) == MASK_ALL) {
			struct cursor at = cursor_before(l->f, i);

			if (!live)
				live = reconverge(&at, l->rewrite, i);
			i->operands[i->operand_count - 1] = op_reg(live);
		}
		if (!keeps_lanes(i))
			live = NULL;
	}
}

static bool may_wait(const struct function *f)
{
	for_each_instruction (i, f)
		if (warp_has_mask(i) || i->mnemonic->op_class == OP_CALL)
			return true;
	return false;
}

static void run(struct rewrite *rewrite)
{
	struct checker l = {.rewrite = rewrite, .f = rewrite->function};
	struct cfg cfg;

	if (!may_wait(l.f))
		return;
	cfg_build(l.f, &cfg);
	l.left = uniform_find_exited(l.f, &cfg);
	l.masks = warp_masks(l.f);
	l.pairs = warp_pairs_find(l.f, &cfg);
	for_each_instruction (i, l.f)
		check_instruction(&l, i);
	if (!l.is_needed)
		return;
	if (pass_target(l.f->module) < SM_MIN)
		pass_refuse(rewrite, l.f->at,
			    "lanes may exit before others name them, and %s has no barriers "
			    "of single threads",
			    l.f->module->target);
	if (l.gathers)
		check_gathering(&l);
	rewrite->reconvergence = arena_new(l.f->arena, struct reconvergence);
	rewrite->reconvergence->lanes = edit_named_register(l.f, TYPE_b32, "lanes");
	rewrite->reconvergence->words = edit_named_register(l.f, TYPE_b32, "warp");
	rewrite->reconvergence->gathers = l.gathers;
	for (struct block *b = l.f->entry; b && !l.gathers; b = b->next)
		write_block(&l, b);
	write_start(rewrite);
}

const struct pass pass_warp_exit = {"warp-exit", run};
