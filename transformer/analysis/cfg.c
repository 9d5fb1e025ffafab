/* Dominators: Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm" (2001). In reverse
 * post-order, each block's immediate dominator is the common dominator of its predecessors, until
 * nothing changes. Predecessors are visited from last to first: a long row of checks that all
 * branch to one exit then costs one step per check.
 *
 * A hostile graph can cost far more than its size. BUDGET bounds the steps. */
#include "analysis/cfg.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define BUDGET 64u /* steps per block and edge */

struct builder {
	struct function *f;
	struct cfg *cfg;
	struct block **blocks; /* by id */
	unsigned block_count, edge_count;
	uint64_t steps, max_steps;
};

_Noreturn void cfg_too_complex(const struct function *function)
{
	diag_stop(function->module->diag, -E2BIG, function->at,
		  "control flow too complex for its size");
}

static void step(struct builder *b)
{
	if (++b->steps > b->max_steps)
		cfg_too_complex(b->f);
}

/* Where an instruction may jump to. */
static struct block *const *targets_of(const struct instruction *i, unsigned *count)
{
	enum opcode_class op_class = i->mnemonic->op_class;

	*count = op_class == OP_BRANCH && i->operand_count;
	if (*count)
		return &i->operands[0].block;
	for (size_t k = 0; op_class == OP_TABLE && k < i->operand_count; k++) {
		if (i->operands[k].kind == OPERAND_TABLE) {
			*count = (unsigned)i->operands[k].table->target_count;
			return i->operands[k].table->targets;
		}
	}
	return NULL;
}

static void number_blocks(struct builder *b)
{
	for (struct block *x = b->f->entry; x; x = x->next) {
		x->id = b->block_count++;
		x->order = CFG_UNREACHED;
		x->pred_count = x->succ_count = 0;
		x->dominator = NULL;
		x->loop = NULL;
	}
	b->blocks = arena_array(b->f->arena, b->block_count, sizeof(*b->blocks));
	for (struct block *x = b->f->entry; x; x = x->next)
		b->blocks[x->id] = x;
}

static void link_successors(struct builder *b, struct block *x)
{
	unsigned jumps = 0;
	struct block *const *targets = x->last ? targets_of(x->last, &jumps) : NULL;
	bool falls = block_falls_through(x) && x->next;

	x->succs = arena_array(b->f->arena, jumps + falls, sizeof(*x->succs));
	for (unsigned k = 0; k < jumps; k++)
		x->succs[x->succ_count++] = targets[k];
	if (falls)
		x->succs[x->succ_count++] = x->next;
	b->edge_count += x->succ_count;
	for (unsigned k = 0; k < x->succ_count; k++)
		x->succs[k]->pred_count++;
}

static void link_edges(struct builder *b)
{
	for (struct block *x = b->f->entry; x; x = x->next)
		link_successors(b, x);
	for (struct block *x = b->f->entry; x; x = x->next) {
		x->preds = arena_array(b->f->arena, x->pred_count, sizeof(*x->preds));
		x->pred_count = 0;
	}
}

/* Depth-first without recursion: a stack of blocks, and how many edges of each have been followed.
 */
static void number_order(struct builder *b)
{
	struct block **stack = arena_array(b->f->arena, b->block_count, sizeof(*stack));
	unsigned *taken = arena_array(b->f->arena, b->block_count, sizeof(*taken));
	unsigned depth = 0, at = b->block_count;

	b->cfg->order = arena_array(b->f->arena, b->block_count, sizeof(*b->cfg->order));
	stack[depth++] = b->f->entry;
	b->f->entry->order = 0;
	while (depth) {
		struct block *x = stack[depth - 1];

		if (taken[x->id] < x->succ_count) {
			struct block *to = x->succs[taken[x->id]++];

			if (to->order == CFG_UNREACHED) {
				to->order = 0;
				stack[depth++] = to;
			}
			continue;
		}
		b->cfg->order[--at] = x;
		depth--;
	}
	b->cfg->order += at;
	b->cfg->count = b->block_count - at;
	for (unsigned k = 0; k < b->cfg->count; k++)
		b->cfg->order[k]->order = k;
}

/* Only from reachable blocks, in reverse post-order. */
static void link_predecessors(struct builder *b)
{
	for (unsigned k = 0; k < b->cfg->count; k++) {
		struct block *x = b->cfg->order[k];

		for (unsigned s = 0; s < x->succ_count; s++)
			x->succs[s]->preds[x->succs[s]->pred_count++] = x;
	}
}

/* The lowest block that dominates both. */
static struct block *common_dominator(struct builder *b, struct block *x, struct block *y)
{
	for (; x != y; step(b)) {
		for (; x->order > y->order; step(b))
			x = x->dominator;
		for (; y->order > x->order; step(b))
			y = y->dominator;
	}
	return x;
}

static void find_dominators(struct builder *b)
{
	struct block *entry = b->f->entry;
	bool changed = true;

	entry->dominator = entry; /* until all are known */
	while (changed) {
		changed = false;
		for (unsigned k = 1; k < b->cfg->count; k++) {
			struct block *x = b->cfg->order[k], *up = NULL;

			for (unsigned p = x->pred_count; p-- > 0; step(b))
				if (x->preds[p]->dominator)
					up = up ? common_dominator(b, up, x->preds[p])
						: x->preds[p];
			changed = changed || up != x->dominator;
			x->dominator = up;
		}
	}
	entry->dominator = NULL;
}

/* Numbers the dominator tree so that dominance is one comparison. */
static void number_dominators(struct builder *b)
{
	struct block **order = b->cfg->order;

	for (unsigned k = 0; k < b->cfg->count; k++)
		order[k]->dom_size = 1;
	for (unsigned k = b->cfg->count; k-- > 1;) {
		struct block *up = order[k]->dominator; /* every reachable block has one */

		assert(up);
		up->dom_size += order[k]->dom_size;
	}
	/* First, dom_first counts up while the children take their ranges ... */
	b->f->entry->dom_first = 1;
	for (unsigned k = 1; k < b->cfg->count; k++) {
		struct block *up = order[k]->dominator;

		order[k]->dom_first = up->dom_first + 1;
		up->dom_first += order[k]->dom_size;
	}
	/* ... then it goes back to the start of the block's own range. */
	for (unsigned k = 0; k < b->cfg->count; k++)
		order[k]->dom_first -= order[k]->dom_size;
}

bool cfg_dominates(const struct block *above, const struct block *below)
{
	return below->dom_first - above->dom_first < above->dom_size;
}

bool loop_contains(const struct loop *loop, const struct block *block)
{
	for (const struct loop *l = block->loop; l; l = l->parent)
		if (l == loop)
			return true;
	return false;
}

static struct loop *outermost(struct builder *b, struct loop *loop)
{
	for (; loop->parent; step(b))
		loop = loop->parent;
	return loop;
}

/* Collects all blocks that reach a back edge to the head without passing the head. Loops found
 * before are nested in this one. */
static void collect_loop(struct builder *b, struct loop *loop, struct block **stack, unsigned depth)
{
	while (depth) {
		struct block *x = stack[--depth];

		step(b);
		if (x->loop) {
			struct loop *inner = outermost(b, x->loop);

			if (inner == loop)
				continue;
			inner->parent = loop;
			x = inner->head;
		} else {
			x->loop = loop;
		}
		if (x == loop->head)
			continue;
		for (unsigned p = 0; p < x->pred_count; p++) {
			struct block *pred = x->preds[p];

			if (pred->loop && outermost(b, pred->loop) == loop)
				continue;
			step(b);
			if (depth == b->edge_count)
				cfg_too_complex(b->f);
			stack[depth++] = pred;
		}
	}
}

/* Pushes the sources of back edges to @head and returns their number. */
static unsigned push_back_edges(struct builder *b, const struct block *head, struct block **stack)
{
	unsigned n = 0;

	for (unsigned p = 0; p < head->pred_count; p++) {
		struct block *pred = head->preds[p];

		if (pred->order < head->order)
			continue;
		if (cfg_dominates(head, pred))
			stack[n++] = pred;
		else
			b->cfg->irreducible = true;
	}
	return n;
}

static void measure_loops(struct builder *b)
{
	for (unsigned k = 0; k < b->cfg->count; k++) {
		struct block *x = b->cfg->order[k];

		if (!x->loop)
			continue;
		for (const struct instruction *i = x->first; i; i = i->next) {
			x->loop->instruction_count++;
			x->loop->has_barrier |= i->mnemonic->op_class == OP_BARRIER;
			x->loop->has_call |= i->mnemonic->op_class == OP_CALL;
		}
	}
}

/* In the list, outer loops come before their inner loops. */
static void add_up_loops(struct function *f, struct loop **loops, unsigned n)
{
	for (unsigned k = 0; k < n; k++) { /* inner loops were found first */
		struct loop *loop = loops[k], *parent = loop->parent;

		loop->next = f->loops;
		f->loops = loop;
		if (!parent)
			continue;
		parent->instruction_count += loop->instruction_count;
		parent->has_barrier |= loop->has_barrier;
		parent->has_call |= loop->has_call;
	}
	for (struct loop *loop = f->loops; loop; loop = loop->next)
		loop->depth = loop->parent ? loop->parent->depth + 1 : 1;
}

static void find_loops(struct builder *b)
{
	struct block **stack = arena_array(b->f->arena, b->edge_count, sizeof(*stack));
	struct loop **loops = arena_array(b->f->arena, b->cfg->count, sizeof(struct loop *));
	unsigned n = 0;

	b->f->loops = NULL;
	for (unsigned k = b->cfg->count; k-- > 0;) {
		struct block *head = b->cfg->order[k];
		unsigned depth = push_back_edges(b, head, stack);

		if (!depth)
			continue;
		loops[n] = arena_new(b->f->arena, struct loop);
		loops[n]->head = head;
		head->loop = loops[n];
		collect_loop(b, loops[n++], stack, depth);
	}
	measure_loops(b);
	add_up_loops(b->f, loops, n);
}

void cfg_build(struct function *function, struct cfg *cfg)
{
	struct builder b = {.f = function, .cfg = cfg};

	*cfg = (struct cfg){0};
	number_blocks(&b);
	link_edges(&b);
	number_order(&b);
	link_predecessors(&b);
	b.max_steps = BUDGET * ((uint64_t)b.block_count + b.edge_count) + 1024;
	find_dominators(&b);
	number_dominators(&b);
	find_loops(&b);
}
