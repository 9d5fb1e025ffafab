// clang-format off
/* Selects safe points at loop heads, where threads may leave inside a block. Replaces barriers by
 * exit barriers (safe-point.h), so that threads that left are not missed there.
 *
 * head:  now = %clock; now - since >= look, or on the way to a safe point (save.c)?  check
 *        ... the loop
 * check: is the block to leave (look.h)?
 *
 * Lanes of a warp wait for each other at shuffles, warp votes etc. A block is "awaited" if a
 * thread may reach such an instruction, or a call, before the next barrier: other lanes may wait
 * for it there. Not at functions of the driver (save/calls.c), nor at instructions that name just the
 * lanes that came together. At an awaited loop head a check counts only if all lanes of the warp
 * are present, so they leave together. This holds at every head if finished lanes reconverge
 * (reconvergence.h).
 */
// clang-format on
#include "analysis/barrier.h"
#include "analysis/uniform.h"
#include "analysis/warp-mask.h"
#include "passes/callee.h"
#include "passes/exit-barrier.h"
#include "passes/hidden.h"
#include "passes/look.h"
#include "passes/pass.h"
#include "passes/reconvergence.h"
#include "passes/safe-point.h"
#include "passes/unroll.h"

#define POINTS_MAX 256u
#define ROUND_MAX  64u

#define ROUND_WEIGHT 320u /* minimal weight between two checks of a loop ... */
#define COPIES_MAX   640u /* ... unless the copies have more instructions or blocks than this */

struct selector {
	struct rewrite *rewrite;
	struct function *f;
	struct cfg cfg;
	struct loop **loops; /* with a check at the head */
	unsigned loop_count;
	struct instruction *barriers[POINTS_MAX];
	unsigned barrier_count;
	bool *awaited; /* by block: awaited at its start; see above */
};

/* Whether each iteration of @outer passes the head of a selected inner loop. */
static bool is_covered(const struct selector *c, const struct loop *outer)
{
	for (unsigned k = 0; k < c->loop_count; k++) {
		const struct block *inner = c->loops[k]->head;
		bool always = loop_contains(outer, inner);

		for (unsigned p = 0; p < outer->head->pred_count && always; p++) {
			const struct block *pred = outer->head->preds[p];

			if (loop_contains(outer, pred))
				always = cfg_dominates(inner, pred);
		}
		if (always)
			return true;
	}
	return false;
}

/* Inner loops first: a check there serves the outer loops, too. */
static void select_loops(struct selector *c)
{
	struct loop **loops;
	unsigned n = 0;

	for (struct loop *loop = c->f->loops; loop; loop = loop->next)
		n++;
	loops = arena_array(c->f->arena, n, sizeof(struct loop *));
	c->loops = arena_array(c->f->arena, n, sizeof(struct loop *));
	n = 0;
	for (struct loop *loop = c->f->loops; loop; loop = loop->next)
		loops[n++] = loop;
	while (n-- > 0) {
		if (c->loop_count == POINTS_MAX)
			pass_refuse(c->rewrite, c->f->at, "more than %u loops", POINTS_MAX);
		if (!is_covered(c, loops[n]))
			c->loops[c->loop_count++] = loops[n];
	}
}

/* The approximate duration, in simple instructions. An atomic operation on a word that all threads
 * want takes 20 us on an H200: a loop of such is not copied. */
static unsigned weight(const struct instruction *i)
{
	switch (i->mnemonic->op_class) {
	case OP_DIRECTIVE:
		return 0;
	case OP_ATOMIC:
		return mnemonic_has(i->mnemonic, "shared") ? 8 : ROUND_WEIGHT;
	case OP_MEMORY:
	case OP_WARP:
		return 8;
	case OP_ASYNC:
	case OP_FENCE:
		return 32;
	default:
		return 1;
	}
}

/* The number of copies of the body that makes a check cheap; 1: do not copy the loop. */
static unsigned copies_of(const struct selector *c, const struct loop *loop)
{
	unsigned round = 1, size = loop->instruction_count, blocks = 0, copies;

	if (loop->has_barrier || loop->has_call)
		return 1;
	for (const struct loop *l = c->f->loops; l; l = l->next)
		if (l->parent == loop)
			return 1;
	for (unsigned k = 0; k < c->cfg.count; k++) {
		const struct block *b = c->cfg.order[k];

		if (b->loop != loop)
			continue;
		blocks++;
		for (const struct instruction *i = b->first; i; i = i->next) {
			if (i->mnemonic->op_class == OP_TABLE)
				return 1;
			round += weight(i);
		}
	}
	copies = (ROUND_WEIGHT + round - 1) / round;
	size = blocks > size ? blocks : size; /* blocks may be empty */
	return (uint64_t)copies * size <= COPIES_MAX ? copies : 1;
}

static void unroll_loops(struct selector *c)
{
	for (unsigned k = 0; k < c->loop_count; k++) {
		unsigned copies = copies_of(c, c->loops[k]);

		if (copies > 1)
			unroll_loop(c->f, c->loops[k], copies);
	}
}

static void look_at_barriers(struct selector *c)
{
	for_each_instruction (i, c->f) {
		struct barrier barrier;

		if (i->mnemonic->op_class != OP_BARRIER)
			continue;
		if (!barrier_read(i, &barrier))
			pass_refuse(c->rewrite, i->at, "a barrier of unknown kind");
		if (barrier.is_counted)
			pass_refuse(c->rewrite, i->at, "a barrier with a thread count");
		if (c->barrier_count == POINTS_MAX)
			pass_refuse(c->rewrite, i->at, "more than %u barriers", POINTS_MAX);
		c->barriers[c->barrier_count++] = i;
	}
}

/* A thread that exits continues with the next block of the grid. */
static bool awaited_behind(const struct selector *c, const struct block *b)
{
	bool awaited =
		b->last && b->last->mnemonic->op_class == OP_EXIT && c->awaited[c->f->entry->order];

	for (unsigned k = 0; k < b->succ_count; k++)
		awaited = awaited || c->awaited[b->succs[k]->order];
	return awaited;
}

/* The lanes that @i waits for were together a moment ago, with no safe point since then. */
static bool waits_for_company(const struct instruction *i)
{
	const struct operand *mask = warp_has_mask(i) ? &i->operands[i->operand_count - 1] : NULL;

	if (!mask || mask->kind != OPERAND_REGISTER)
		return false;
	for (const struct instruction *p = i->prev; p; p = p->prev) {
		const struct operand *result = p->operand_count ? p->operands : NULL;

		if (result && result->kind > OPERAND_ADDRESS) /* of several results one may be it */
			return false;
		if (result && result->kind == OPERAND_REGISTER && result->reg == mask->reg)
			return !p->guard && name_is(p->mnemonic->name, "activemask");
	}
	return false;
}

static bool waits_for_lanes(const struct instruction *i)
{
	if (i->mnemonic->op_class == OP_CALL)
		return !calls_driver(i);
	return i->mnemonic->op_class == OP_WARP && !name_is(i->mnemonic->name, "activemask") &&
	       !waits_for_company(i);
}

static bool awaited_at(const struct selector *c, const struct block *b)
{
	for (const struct instruction *i = b->first; i; i = i->next) {
		if (waits_for_lanes(i))
			return true;
		if (i->mnemonic->op_class == OP_BARRIER && !i->guard)
			return false;
	}
	return awaited_behind(c, b);
}

static void find_awaited(struct selector *c)
{
	bool changed = true;

	c->awaited = arena_array(c->f->arena, c->cfg.count, sizeof(*c->awaited));
	for (unsigned round = 0; changed; round++) {
		if (round == ROUND_MAX)
			cfg_too_complex(c->f);
		changed = false;
		for (unsigned k = c->cfg.count; k-- > 0;) {
			bool awaited = awaited_at(c, c->cfg.order[k]);

			changed = changed || awaited != c->awaited[k];
			c->awaited[k] = awaited;
		}
	}
}

/* Finished lanes of the warp join the exit barrier. */
static void reconverge_for_barrier(struct cursor *at, struct rewrite *rewrite,
				   const struct instruction *i)
{
	if (rewrite->reconvergence && !rewrite->safe->is_uniform)
		reconverge_at_barrier(at, rewrite, i);
}

/* Replaces a barrier that reduces a predicate. Each thread adds to the tally in front of an exit
 * barrier and reads it behind. It subtracts its part behind a second barrier, when all have read
 * the sum, or when it leaves. */
static void replace_reduction(struct cursor *at, struct rewrite *rewrite,
			      const struct instruction *i, const struct barrier *barrier)
{
	struct function *f = rewrite->function;
	struct reg *mine = edit_register(f, TYPE_b32), *sum = edit_register(f, TYPE_b32);
	struct operand result = *barrier->result, tally;
	bool is_and = mnemonic_has(i->mnemonic, "and");
	struct safe_point *point;
	struct block *begin;
	struct cursor leaving;

	if (!rewrite->tally)
		rewrite->tally = edit_variable(f, SPACE_SHARED, "tally", 4, 4);
	tally = op_variable(rewrite->tally);
	reconverge_for_barrier(at, rewrite, i);
	begin = edit_new_block(f);
	cursor_place(at, begin);
	edit_code(at,
		  (barrier->predicate->sign == '!') != is_and ? "selp.u32 %0, 0, 1, %1;"
							      : "selp.u32 %0, 1, 0, %1;",
		  op_reg(mine), op_reg(barrier->predicate->reg));
	edit_code(at, "red.shared.add.u32 [%0], %1; neg.s32 %1, %1;", tally, op_reg(mine));
	point = safe_point_barrier(at, rewrite);
	point->at = begin;
	leaving = safe_point_leaving(rewrite, point);
	edit_code(&leaving, "red.shared.add.u32 [%0], %1;", tally, op_reg(mine));
	edit_code(at, "ld.volatile.shared.u32 %0, [%1];", op_reg(sum), tally);
	reconverge_for_barrier(at, rewrite, i);
	exit_barrier_wait(at, rewrite, NULL, NULL); /* nobody can have left in between */
	edit_code(at, "red.shared.add.u32 [%0], %1;", tally, op_reg(mine));
	edit_code(at,
		  is_and                              ? "setp.eq.u32 %0, %1, 0;"
		  : mnemonic_has(i->mnemonic, "popc") ? "mov.u32 %0, %1;"
						      : "setp.ne.u32 %0, %1, 0;",
		  result, op_reg(sum));
}

static void replace_barrier(struct rewrite *rewrite, struct instruction *i)
{
	struct function *f = rewrite->function;
	struct barrier barrier;
	struct cursor at;

	if (i->guard)
		edit_unguard(f, i);
	at = cursor_before(f, i);
	if (barrier_read(i, &barrier) && barrier.is_red) {
		replace_reduction(&at, rewrite, i, &barrier);
	} else {
		reconverge_for_barrier(&at, rewrite, i);
		safe_point_barrier(&at, rewrite);
	}
	edit_remove(i);
}

static void replace_barriers(struct selector *c)
{
	for (unsigned k = 0; k < c->barrier_count; k++)
		replace_barrier(c->rewrite, c->barriers[k]);
}

static void add_check(struct selector *c, struct block *head, bool together)
{
	struct rewrite *rewrite = c->rewrite;
	struct function *f = c->f;
	struct cursor at = cursor_start(f, head);
	struct block *check = edit_block(f, f->last, "check"), *on = edit_new_block(f);
	struct safe_point *point;

	edit_code(&at,
		  "{ .reg .pred %p; .reg .b32 %now; mov.u32 %now, %clock; sub.u32 %now, %now, %0;"
		  "  setp.lt.s32 %p, %3, 0; setp.ge.or.u32 %p, %now, %1, %p; @%p bra %2; }",
		  op_reg(rewrite->safe->since), hidden32(&at, rewrite, HIDDEN(look)),
		  op_block(check), op_reg(rewrite->exit_barriers->next));
	cursor_place(&at, on);
	point = safe_point_new(rewrite, on, false);
	point->head = head;
	point->check = check;
	look_check(rewrite, point, together);
}

static void init_safe(struct selector *c)
{
	struct rewrite *rewrite = c->rewrite;
	struct function *f = c->f;
	struct safe *safe = arena_new(f->arena, struct safe);

	safe->is_uniform = uniform_barriers(f, &c->cfg);
	exit_barriers_init(rewrite);
	safe->points_end = &safe->points;
	safe->watch = edit_variable(f, SPACE_SHARED, "watch", 16, WATCH_BYTES);
	safe->since = edit_named_register(f, TYPE_b32, "since");
	rewrite->safe = safe;
	rewrite->barrier = 0; /* no barrier with a thread count is left */
}

static void run(struct rewrite *rewrite)
{
	struct selector c = {.rewrite = rewrite, .f = rewrite->function};

	cfg_build(c.f, &c.cfg);
	if (!c.f->loops && !c.cfg.irreducible)
		return;
	if (!pass_has_isa(c.f->module, 6, 2))
		pass_refuse(rewrite, c.f->at, "PTX before 6.2 has no activemask");
	if (c.cfg.irreducible)
		pass_refuse(rewrite, c.f->at, "a loop with several entries");
	select_loops(&c);
	look_at_barriers(&c);
	find_awaited(&c);
	init_safe(&c);
	unroll_loops(&c);
	replace_barriers(&c);
	for (unsigned k = 0; k < c.loop_count; k++)
		add_check(&c, c.loops[k]->head,
			  rewrite->reconvergence || c.awaited[c.loops[k]->head->order]);
	if (rewrite->safe->count > POINTS_MAX)
		pass_refuse(rewrite, c.f->at, "%u loops and barriers, which is too many",
			    rewrite->safe->count);
}

const struct pass pass_safe_points = {"safe-points", run};
