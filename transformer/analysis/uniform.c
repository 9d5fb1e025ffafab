/* A register is divergent if threads of a block may find different values in it: computed from the
 * thread's index, read from memory, or written on different paths. The paths from a branch on a
 * divergent register end at the branch's post-dominator. Registers written on these paths are
 * divergent, and some threads may miss the barriers on them.
 *
 * If such a path leads out of the kernel without a barrier, a thread on these paths may be alone in
 * its warp: the other lanes have exited, or will exit elsewhere. */
#include "analysis/uniform.h"

#include "analysis/barrier.h"
#include "analysis/postdominator.h"

#include <string.h>

#define BUDGET        256u /* steps per instruction */
#define BROADCAST_MAX 16u  /* instructions behind a barrier */

/* Whether a block contains a barrier. */
enum stop {
	STOP_NONE,
	STOP_PERHAPS, /* the barrier has a guard */
	STOP_SURELY,
};

struct analysis {
	struct function *f;
	const struct cfg *cfg;
	unsigned *postdominator;
	bool *divergent;    /* by register */
	bool *has_diverged; /* by block: its branch is divergent */
	bool *is_between;   /* by block: lies between a divergent branch and its post-dominator */
	bool *has_exited;   /* by block: other lanes may have exited; NULL: not asked for */
	bool *exits_freely; /* by block: a path from its start exits without a barrier; or NULL */
	uint8_t *stops;     /* by block: enum stop; or NULL */
	bool found;
	bool is_divergent; /* the current instruction */
	unsigned *seen;    /* by block: the last walk that visited it */
	unsigned *stack;
	unsigned walks;
	uint64_t steps, max_steps;
	bool changed, is_missed; /* some threads may miss a barrier */
};

static bool is_uniform_special(const char *name)
{
	static const char *const uniform[] = {"%ctaid",
					      "%nctaid",
					      "%ntid",
					      "%smid",
					      "%nsmid",
					      "%gridid",
					      "%nwarpid",
					      "WARP_SZ",
					      "%dynamic_smem_size",
					      "%cluster_ctaid",
					      "%cluster_nctaid",
					      "%cluster_ctarank",
					      "%cluster_nctarank"};

	for (size_t k = 0; k < sizeof(uniform) / sizeof(uniform[0]); k++) {
		size_t len = strlen(uniform[k]);

		if (!strncmp(name, uniform[k], len) && (!name[len] || name[len] == '.'))
			return true;
	}
	return false;
}

/* A .param variable in a kernel's body carries arguments and results of calls: each thread has its
 * own. */
static bool has_divergent_name(const struct operand *operand)
{
	if (operand->kind == OPERAND_SPECIAL)
		return !is_uniform_special(operand->text);
	if (operand->kind == OPERAND_VARIABLE)
		return operand->variable->space == SPACE_PARAM && operand->variable->of_body;
	for (size_t k = 0; k < operand_items(operand); k++)
		if (has_divergent_name(&operand->items[k]))
			return true;
	return false;
}

/* Whether a load reads a value that one thread left for all: from shared memory, soon behind a
 * barrier, with no write in between. If threads read different values there, the program has a
 * race. */
static bool is_broadcast(const struct instruction *i)
{
	unsigned steps = BROADCAST_MAX;
	struct barrier barrier;

	if (strcmp(i->mnemonic->name, "ld") != 0 || !mnemonic_has(i->mnemonic, "shared"))
		return false;
	if (mnemonic_has(i->mnemonic, "volatile") || mnemonic_has(i->mnemonic, "relaxed") ||
	    mnemonic_has(i->mnemonic, "acquire"))
		return false;
	for (i = i->prev; i && steps--; i = i->prev) {
		enum opcode_class op_class = i->mnemonic->op_class;

		if (barrier_read(i, &barrier))
			return !barrier.is_counted && !i->guard;
		if (op_class != OP_PLAIN && op_class != OP_DIRECTIVE &&
		    strcmp(i->mnemonic->name, "ld") != 0)
			return false;
	}
	return false;
}

/* Whether the result may differ between threads although the operands are the same. */
static bool is_divergent_source(const struct analysis *a, const struct instruction *i)
{
	const struct mnemonic *m = i->mnemonic;
	struct barrier barrier;

	switch (m->op_class) {
	case OP_BARRIER: /* same result in all threads that it is for */
		return !barrier_read(i, &barrier) || barrier.is_counted;
	case OP_PLAIN:
	case OP_BRANCH:
	case OP_TABLE:
	case OP_EXIT:
		break;
	case OP_MEMORY:
		if (a->has_exited && is_broadcast(i))
			break;
		if (strcmp(m->name, "ld") != 0 ||
		    !(mnemonic_has(m, "param") || mnemonic_has(m, "const")))
			return true;
		break;
	default:
		return true;
	}
	for (size_t k = 0; k < i->operand_count; k++)
		if (has_divergent_name(&i->operands[k]))
			return true;
	return false;
}

static void look_at_read(void *data, struct register_use use)
{
	struct analysis *a = data;

	a->is_divergent |= use.read && a->divergent[use.reg->id];
}

static void set_divergent(void *data, struct register_use use)
{
	struct analysis *a = data;

	if (use.written && !a->divergent[use.reg->id]) {
		a->divergent[use.reg->id] = true;
		a->changed = true;
	}
}

static void mark_between(struct analysis *a, struct block *b)
{
	if (a->is_between[b->order])
		return;
	a->is_between[b->order] = true;
	for (const struct instruction *i = b->first; i; i = i->next) {
		struct barrier barrier;

		instruction_registers(a->f, i, set_divergent, a);
		if (barrier_read(i, &barrier) && !barrier.is_counted)
			a->is_missed = true;
	}
}

/* Visits all blocks between the end of @from and its post-dominator, or some if the budget is
 * spent.
 */
static void visit_between(struct analysis *a, struct block *from,
			  void (*visit)(struct analysis *, struct block *))
{
	unsigned n = 0, walk = ++a->walks, end = a->postdominator[from->order];
	struct block *b = from;

	for (;;) {
		for (unsigned k = 0; k < b->succ_count; k++) {
			unsigned s = b->succs[k]->order;

			a->steps++;
			if (s == end || a->seen[s] == walk)
				continue;
			a->seen[s] = walk;
			a->stack[n++] = s;
		}
		if (!n || a->steps >= a->max_steps)
			return;
		b = a->cfg->order[a->stack[--n]];
		visit(a, b);
	}
}

static void look_for_stop(struct analysis *a, struct block *b)
{
	a->found = a->found || a->stops[b->order];
}

static void mark_exited(struct analysis *a, struct block *b)
{
	a->has_exited[b->order] = true;
}

/* Whether lanes may exit while others are between the end of @b and its post-dominator: behind a
 * barrier in between, or without one if a path exits freely. */
static bool may_exit(struct analysis *a, struct block *b)
{
	if (b->last && b->last->mnemonic->op_class == OP_EXIT)
		return true;
	for (unsigned k = 0; k < b->succ_count; k++)
		if (a->exits_freely[b->succs[k]->order])
			return true;
	a->found = false;
	visit_between(a, b, look_for_stop);
	return a->found;
}

/* The branch at the end of @from is divergent. */
static void diverge(struct analysis *a, struct block *from)
{
	a->changed = true;
	a->has_diverged[from->order] = true;
	visit_between(a, from, mark_between);
	if (a->has_exited && may_exit(a, from))
		visit_between(a, from, mark_exited);
}

static void look_at(struct analysis *a, struct instruction *i)
{
	struct barrier barrier;

	a->steps++;
	a->is_divergent = is_divergent_source(a, i) || (i->guard && a->divergent[i->guard->id]);
	if (!a->is_divergent && i->mnemonic->op_class != OP_BARRIER)
		instruction_registers(a->f, i, look_at_read, a);
	if (!a->is_divergent)
		return;
	instruction_registers(a->f, i, set_divergent, a);
	if (instruction_ends_block(i) && !a->has_diverged[i->block->order])
		diverge(a, i->block);
	if (barrier_read(i, &barrier) && !barrier.is_counted)
		a->is_missed = true; /* a barrier is divergent only by its guard */
}

static enum stop stop_of(const struct block *b)
{
	enum stop stop = STOP_NONE;
	struct barrier barrier;

	for (const struct instruction *i = b->first; i && stop != STOP_SURELY; i = i->next)
		if (barrier_read(i, &barrier) && !barrier.is_counted)
			stop = i->guard ? STOP_PERHAPS : STOP_SURELY;
	return stop;
}

/* With @postdominator, only a barrier that a thread may reach again for ever. */
static bool has_barrier(const struct cfg *cfg, const unsigned *postdominator)
{
	for (unsigned k = 0; k < cfg->count; k++)
		if ((!postdominator || postdominator[k] == POSTDOMINATOR_NONE) &&
		    stop_of(cfg->order[k]))
			return true;
	return false;
}

static void analysis_init(struct analysis *a)
{
	struct arena *arena = a->f->arena;
	unsigned n = a->cfg->count;

	a->divergent = arena_array(arena, a->f->reg_count, sizeof(*a->divergent));
	a->has_diverged = arena_array(arena, n, sizeof(*a->has_diverged));
	a->is_between = arena_array(arena, n, sizeof(*a->is_between));
	a->seen = arena_array(arena, n, sizeof(*a->seen));
	a->stack = arena_array(arena, n, sizeof(*a->stack));
	for (unsigned k = 0; k < n; k++)
		for (const struct instruction *i = a->cfg->order[k]->first; i; i = i->next)
			a->max_steps += BUDGET;
}

/* Walks backward from the exits. */
static void find_free_exits(struct analysis *a)
{
	unsigned n = 0, count = a->cfg->count;

	a->exits_freely = arena_array(a->f->arena, count, sizeof(*a->exits_freely));
	a->stops = arena_array(a->f->arena, count, sizeof(*a->stops));
	a->has_exited = arena_array(a->f->arena, count, sizeof(*a->has_exited));
	for (unsigned k = 0; k < count; k++) {
		const struct block *b = a->cfg->order[k];

		a->stops[k] = stop_of(b);
		if (!b->last || b->last->mnemonic->op_class != OP_EXIT ||
		    a->stops[k] == STOP_SURELY)
			continue;
		a->exits_freely[k] = true;
		a->stack[n++] = k;
	}
	while (n) {
		const struct block *b = a->cfg->order[a->stack[--n]];

		for (unsigned k = 0; k < b->pred_count; k++) {
			const struct block *p = b->preds[k];

			if (p->order == CFG_UNREACHED || a->exits_freely[p->order] ||
			    a->stops[p->order] == STOP_SURELY)
				continue;
			a->exits_freely[p->order] = true;
			a->stack[n++] = p->order;
		}
	}
}

/* Repeats until nothing changes. False: over budget. */
static bool analyse(struct analysis *a)
{
	a->changed = true;
	while (a->changed && !(a->is_missed && !a->has_exited) && a->steps < a->max_steps) {
		a->changed = false;
		for (unsigned k = 0; k < a->cfg->count; k++)
			for (struct instruction *i = a->cfg->order[k]->first; i; i = i->next)
				look_at(a, i);
	}
	return a->steps < a->max_steps;
}

bool uniform_barriers(struct function *function, const struct cfg *cfg)
{
	struct analysis a = {.f = function, .cfg = cfg};

	if (!has_barrier(cfg, NULL))
		return true;
	a.postdominator = postdominator_build(function, cfg);
	if (!a.postdominator || has_barrier(cfg, a.postdominator))
		return false;
	analysis_init(&a);
	return analyse(&a) && !a.is_missed;
}

struct uniform_exited uniform_find_exited(struct function *function, const struct cfg *cfg)
{
	struct analysis a = {.f = function, .cfg = cfg};

	a.postdominator = postdominator_build(function, cfg);
	if (!a.postdominator)
		return (struct uniform_exited){.blocks = NULL};
	analysis_init(&a);
	find_free_exits(&a);
	return analyse(&a) ? (struct uniform_exited){a.has_exited, a.divergent}
			   : (struct uniform_exited){.blocks = NULL};
}

bool uniform_has_exited(const struct uniform_exited *left, const struct instruction *i)
{
	if (i->block->order == CFG_UNREACHED)
		return false;
	return !left->blocks || left->blocks[i->block->order] ||
	       (i->guard && left->divergent[i->guard->id]);
}
