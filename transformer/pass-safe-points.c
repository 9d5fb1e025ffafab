/* Chooses where threads may leave inside a block: at the heads of loops. Barriers become votes
 * (safe.h), so that those who have left are not missed there.
 *
 * At a head each thread compares %clock with the time of its last check. If a period has begun
 *since then it looks at two words in shared memory: is the block to leave, and when did somebody of
 *this block last look outside? After a period nobody has, and it reads the ticket word, whose top
 *bit says that the launch is closed; and if the whole GPU has not asked the host for a period, it
 *does (hidden.c). So shared memory is read once per thread and period, device memory once per block
 *and period, and host memory once per period. Periods are told from each other by `^`, not by `-`:
 *so lanes that checked at different times check together again when the next one begins.
 *
 *	head:	now = %clock; (now ^ since) >= period?  check
 *		... the loop
 *	check:	since = now
 *		watch.leave?  leave
 *		(now ^ watch.looked) < period?  go on; else watch.looked = now
 *		closed, or asked to leave?  watch.leave = 1, leave
 *
 * Lanes of a warp that wait for each other (shuffles, votes) must leave together. In a kernel that
 * has such instructions, or calls, a check counts only if all lanes of the warp are at it: then
 * none waits for another one elsewhere. So it is at all of them where warps gather (gather.h), also
 * those that are done.
 */
#include "barrier.h"
#include "gather.h"
#include "hidden.h"
#include "pass.h"
#include "safe.h"
#include "uniform.h"

#include <errno.h>

#define POINTS_MAX 64u
#define ROUND_MAX  64u

struct chooser {
	struct rewrite *rewrite;
	struct function *f;
	struct cfg cfg;
	struct block **heads;
	unsigned head_count;
	struct instruction *barriers[POINTS_MAX];
	unsigned barrier_count;
	bool *owes; /* by block: at its start; see above */
};

/* Does each round of @outer come by the head of a loop in it that is chosen already? */
static bool is_covered(const struct chooser *c, const struct loop *outer)
{
	for (unsigned k = 0; k < c->head_count; k++) {
		bool always = true;

		if (!loop_contains(outer, c->heads[k]) || c->heads[k] == outer->head)
			continue;
		for (unsigned p = 0; p < outer->head->pred_count; p++) {
			const struct block *pred = outer->head->preds[p];

			if (loop_contains(outer, pred))
				always = always && cfg_dominates(c->heads[k], pred);
		}
		if (always)
			return true;
	}
	return false;
}

/* Inner loops first. */
static int choose_heads(struct chooser *c)
{
	struct loop **loops;
	unsigned n = 0;

	for (struct loop *loop = c->f->loops; loop; loop = loop->next)
		n++;
	loops = arena_array(c->f->arena, n, sizeof(struct loop *));
	c->heads = arena_array(c->f->arena, n, sizeof(struct block *));
	if (!loops || !c->heads)
		return -ENOMEM;
	n = 0;
	for (struct loop *loop = c->f->loops; loop; loop = loop->next)
		loops[n++] = loop;
	while (n-- > 0) {
		if (c->head_count == POINTS_MAX)
			return pass_refuse(c->rewrite, c->f->at, "more than %u loops", POINTS_MAX);
		if (!is_covered(c, loops[n]))
			c->heads[c->head_count++] = loops[n]->head;
	}
	return PASS_DONE;
}

static int look_at_barriers(struct chooser *c)
{
	for (struct block *b = c->f->entry; b; b = b->next) {
		for (struct instruction *i = b->first; i; i = i->next) {
			struct barrier barrier;

			if (i->mnemonic->op_class != OP_BARRIER)
				continue;
			if (!barrier_read(i, &barrier))
				return pass_refuse(c->rewrite, i->at, "a barrier of unknown kind");
			if (barrier.is_counted)
				return pass_refuse(c->rewrite, i->at,
						   "a barrier for some threads of the block, which "
						   "others might leave before");
			if (c->barrier_count == POINTS_MAX)
				return pass_refuse(c->rewrite, i->at, "more than %u barriers",
						   POINTS_MAX);
			c->barriers[c->barrier_count++] = i;
		}
	}
	return PASS_DONE;
}

/* Who leaves a block of the grid goes on with another one. */
static bool owes_behind(const struct chooser *c, const struct block *b)
{
	bool owes =
		b->last && b->last->mnemonic->op_class == OP_EXIT && c->owes[c->f->entry->order];

	for (unsigned k = 0; k < b->succ_count; k++)
		owes = owes || c->owes[b->succs[k]->order];
	return owes;
}

static bool owes_at(const struct chooser *c, const struct block *b)
{
	for (const struct instruction *i = b->first; i; i = i->next) {
		if (i->mnemonic->op_class == OP_WARP || i->mnemonic->op_class == OP_CALL)
			return true;
		if (i->mnemonic->op_class == OP_BARRIER && !i->guard)
			return false;
	}
	return owes_behind(c, b);
}

static int find_debts(struct chooser *c)
{
	bool changed = true;

	c->owes = arena_array(c->f->arena, c->cfg.count, sizeof(*c->owes));
	if (!c->owes)
		return -ENOMEM;
	for (unsigned round = 0; changed; round++) {
		if (round == ROUND_MAX)
			return -E2BIG;
		changed = false;
		for (unsigned k = c->cfg.count; k-- > 0;) {
			bool owes = owes_at(c, c->cfg.order[k]);

			changed = changed || owes != c->owes[k];
			c->owes[k] = owes;
		}
	}
	return PASS_DONE;
}

/* @p bar.sync 0;  ->  @!p bra skip; bar.sync 0; skip: */
static void unguard(struct function *f, struct instruction *i)
{
	struct cursor behind = cursor_after(f, i), before = cursor_before(f, i);
	struct block *skip = edit_new_block(f);

	if (!skip)
		return;
	cursor_place(&behind, skip);
	edit_code(&before, i->guard_negated ? "@%0 bra %1;" : "@!%0 bra %1;", op_reg(i->guard),
		  op_block(skip));
	i->guard = NULL;
}

/* Those of the warp that are done come to the vote, too; whoever goes on there has been fetched. */
static void fetch_done(struct cursor *at, struct rewrite *rewrite, const struct instruction *i)
{
	if (rewrite->gathering && rewrite->safe->counts)
		gather_at_barrier(at, rewrite, i);
}

/* A barrier that reduces a vote of the kernel's own: the tally is added to in front of our vote,
 * read behind it, and taken back behind the next barrier, when all have read it; or by those who
 * leave. */
static void replace_reduction(struct cursor *at, struct rewrite *rewrite,
			      const struct instruction *i, const struct barrier *barrier)
{
	struct function *f = rewrite->function;
	struct reg *vote = edit_register(f, TYPE_b32), *sum = edit_register(f, TYPE_b32);
	struct operand result = *barrier->result, tally;
	bool is_and = mnemonic_has(i->mnemonic, "and");
	struct safe_point *point;
	struct block *begin;
	struct cursor leaving;

	if (!rewrite->tally)
		rewrite->tally = edit_variable(f, SPACE_SHARED, "tally", 4, 4);
	tally = op_variable(rewrite->tally);
	fetch_done(at, rewrite, i);
	begin = edit_new_block(f);
	if (!begin)
		return;
	cursor_place(at, begin);
	edit_code(at,
		  (barrier->vote->sign == '!') != is_and ? "selp.u32 %0, 0, 1, %1;"
							 : "selp.u32 %0, 1, 0, %1;",
		  op_reg(vote), op_reg(barrier->vote->reg));
	edit_code(at, "red.shared.add.u32 [%0], %1; neg.s32 %1, %1;", tally, op_reg(vote));
	point = safe_vote(at, rewrite);
	point->at = begin;
	leaving = safe_point_leaving(rewrite, point);
	edit_code(&leaving, "red.shared.add.u32 [%0], %1;", tally, op_reg(vote));
	edit_code(at, "ld.volatile.shared.u32 %0, [%1];", op_reg(sum), tally);
	fetch_done(at, rewrite, i);
	safe_vote_again(at, rewrite);
	edit_code(at, "red.shared.add.u32 [%0], %1;", tally, op_reg(vote));
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
		unguard(f, i);
	at = cursor_before(f, i);
	if (barrier_read(i, &barrier) && barrier.is_red)
		replace_reduction(&at, rewrite, i, &barrier);
	else {
		fetch_done(&at, rewrite, i);
		safe_vote(&at, rewrite);
	}
	edit_remove(f, i);
}

static void replace_barriers(struct chooser *c)
{
	for (unsigned k = 0; k < c->barrier_count && !c->f->module->diag->error; k++)
		replace_barrier(c->rewrite, c->barriers[k]);
}

/* How many lanes the warp has. */
static void write_lanes(struct cursor *at, struct reg *lanes)
{
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %n, %m, %x, %y, %z, %t;"
		  "  mov.u32 %x, %ntid.x; mov.u32 %y, %ntid.y; mov.u32 %z, %ntid.z;"
		  "  mul.lo.u32 %n, %x, %y; mul.lo.u32 %n, %n, %z;"
		  "  mov.u32 %t, %tid.z; mov.u32 %m, %tid.y; mad.lo.u32 %t, %t, %y, %m;"
		  "  mov.u32 %m, %tid.x; mad.lo.u32 %t, %t, %x, %m;"
		  "  and.b32 %t, %t, -32; sub.u32 %n, %n, %t; mov.u32 %0, -1;"
		  "  setp.ge.u32 %p, %n, 32; @%p mov.u32 %n, 0; neg.s32 %n, %n; and.b32 %n, %n, 31;"
		  "  shr.u32 %0, %0, %n; }",
		  op_reg(lanes));
}

static void write_check(struct chooser *c, struct safe_point *point, struct block *check,
			bool together)
{
	struct rewrite *rewrite = c->rewrite;
	struct function *f = c->f;
	struct safe *safe = rewrite->safe;
	struct reg *go = edit_named_register(f, TYPE_pred, "go"),
		   *lanes = edit_named_register(f, TYPE_b32, "lanes"),
		   *next = edit_register(f, TYPE_b64);
	struct cursor at = cursor_end(f, check);
	struct block *decide = edit_block(f, check, "decide"), *mark = edit_new_block(f);
	struct operand watch = op_variable(safe->watch), words;

	if (!mark)
		return;
	edit_code(&at, "mov.u32 %0, %clock; mov.pred %1, 0;", op_reg(safe->since), op_reg(go));
	if (together) {
		write_lanes(&at, lanes);
		edit_code(&at,
			  "{ .reg .pred %p; .reg .b32 %here; activemask.b32 %here;"
			  "  setp.ne.u32 %p, %here, %0; @%p bra %1; }",
			  op_reg(lanes), op_block(point->at));
	}
	edit_code(&at,
		  "{ .reg .pred %p; .reg .b32 %leave, %looked;"
		  "  ld.volatile.shared.v2.u32 {%leave, %looked}, [%0];"
		  "  setp.ne.u32 %1, %leave, 0; @%1 bra %2; xor.b32 %looked, %3, %looked;"
		  "  setp.lt.u32 %p, %looked, %4; @%p bra %2;"
		  "  st.volatile.shared.u32 [%0+4], %3; }",
		  watch, op_reg(go), op_block(decide), op_reg(safe->since),
		  hidden32(&at, rewrite, HIDDEN(period)));
	words = hidden64(&at, rewrite, HIDDEN(words));
	edit_code(&at,
		  "{ .reg .b32 %ticket;"
		  "  ld.volatile.global.u32 %ticket, [%0+16]; ld.volatile.global.u64 %1, [%0];"
		  "  setp.lt.s32 %2, %ticket, 0; @%2 bra %3; }",
		  words, op_reg(next), op_reg(go), op_block(mark));
	hidden_poll(&at, rewrite, words, op_reg(next), op_block(decide));
	cursor_place(&at, mark);
	edit_code(
		&at,
		"{ .reg .b32 %x; mov.pred %0, 1; mov.u32 %x, 1; st.volatile.shared.u32 [%1], %x; }",
		op_reg(go), watch);
	at = cursor_end(f, decide);
	if (together)
		edit_code(&at, "vote.sync.any.pred %0, %0, %1;", op_reg(go), op_reg(lanes));
	edit_code(&at, "@%0 bra %1; bra %2;", op_reg(go), op_block(point->leave),
		  op_block(point->at));
}

static void add_check(struct chooser *c, struct block *head, bool together)
{
	struct rewrite *rewrite = c->rewrite;
	struct function *f = c->f;
	struct cursor at = cursor_start(f, head);
	struct block *check = edit_block(f, f->last, "check"), *on = edit_new_block(f);

	if (!on)
		return;
	edit_code(&at,
		  "{ .reg .pred %p; .reg .b32 %now; mov.u32 %now, %clock; xor.b32 %now, %now, %0;"
		  "  setp.ge.u32 %p, %now, %1; @%p bra %2; }",
		  op_reg(rewrite->safe->since), hidden32(&at, rewrite, HIDDEN(period)),
		  op_block(check));
	cursor_place(&at, on);
	write_check(c, safe_point_new(rewrite, on, false), check, together);
}

static int init_safe(struct chooser *c)
{
	struct rewrite *rewrite = c->rewrite;
	struct function *f = c->f;
	struct safe *safe = arena_new(f->arena, struct safe);
	bool is_uniform;
	int r = uniform_barriers(f, &c->cfg, &is_uniform);

	if (r || !safe)
		return r ? r : -ENOMEM;
	safe->points_end = &safe->points;
	safe->counts = !is_uniform;
	safe->watch = edit_variable(f, SPACE_SHARED, "watch", 8, 8);
	safe->since = edit_named_register(f, TYPE_b32, "since");
	if (safe->counts) {
		safe->finished = edit_variable(f, SPACE_SHARED, "finished", 4, 4);
		safe->quorum = edit_named_register(f, TYPE_b32, "quorum");
	}
	rewrite->safe = safe;
	rewrite->barrier = 0; /* no barrier with a count is left */
	return PASS_DONE;
}

static int run(struct rewrite *rewrite)
{
	struct chooser c = {.rewrite = rewrite, .f = rewrite->function};
	int r = cfg_build(c.f, &c.cfg);

	if (r || (!c.f->loops && !c.cfg.irreducible))
		return r;
	if (c.cfg.irreducible)
		return pass_refuse(rewrite, c.f->at, "a cycle that is entered in several places");
	r = choose_heads(&c);
	if (!r)
		r = look_at_barriers(&c);
	if (!r)
		r = find_debts(&c);
	if (!r)
		r = init_safe(&c);
	if (r)
		return r;
	replace_barriers(&c);
	for (unsigned k = 0; k < c.head_count && !c.f->module->diag->error; k++)
		add_check(&c, c.heads[k], rewrite->gathering || c.owes[c.heads[k]->order]);
	if (rewrite->safe->count > POINTS_MAX)
		return pass_refuse(rewrite, c.f->at, "%u loops and barriers, which is too many",
				   rewrite->safe->count);
	return PASS_DONE;
}

const struct pass pass_safe_points = {"safe-points", run};
