/* The algorithm of cfg.c on the reversed graph, from the kernel's end. A trap is not an end: blocks
 * that only lead to a trap do not influence the others. */
#include "analysis/postdominator.h"

#define BUDGET 64u /* steps per block and edge */

struct builder {
	const struct cfg *cfg;
	unsigned end;            /* stands for the kernel's end: cfg->count */
	unsigned *postdominator; /* by block */
	unsigned *place;         /* by block: position in post-order from the end */
	unsigned *order;         /* the block at each position */
	unsigned count;
	uint64_t steps, max_steps;
};

static bool leaves(const struct block *b)
{
	return b->last && b->last->mnemonic->op_class == OP_EXIT;
}

/* The next predecessor of @node in the original graph, from number *@at on; POSTDOMINATOR_NONE: no
 * more. */
static unsigned next_back(const struct builder *m, unsigned node, unsigned *at)
{
	const struct block *b;

	if (node == m->end) {
		while (*at < m->cfg->count)
			if (leaves(m->cfg->order[(*at)++]))
				return *at - 1;
		return POSTDOMINATOR_NONE;
	}
	b = m->cfg->order[node];
	while (*at < b->pred_count)
		if (b->preds[(*at)++]->order != CFG_UNREACHED)
			return b->preds[*at - 1]->order;
	return POSTDOMINATOR_NONE;
}

static void number(struct builder *m, struct arena *arena)
{
	unsigned n = m->end + 1, depth = 0;
	unsigned *stack = arena_array(arena, n, sizeof(*stack));
	unsigned *at = arena_array(arena, n, sizeof(*at));
	bool *seen = arena_array(arena, n, sizeof(*seen));

	stack[depth++] = m->end;
	seen[m->end] = true;
	while (depth) {
		unsigned node = stack[depth - 1], back = next_back(m, node, &at[node]);

		if (back == POSTDOMINATOR_NONE) {
			depth--;
			m->place[node] = m->count;
			m->order[m->count++] = node;
		} else if (!seen[back]) {
			seen[back] = true;
			stack[depth++] = back;
		}
	}
}

static unsigned common(struct builder *m, unsigned a, unsigned b)
{
	while (a != b && m->steps++ < m->max_steps) {
		if (m->place[a] < m->place[b])
			a = m->postdominator[a];
		else
			b = m->postdominator[b];
	}
	return a;
}

static unsigned postdominator_of(struct builder *m, const struct block *b)
{
	unsigned up = leaves(b) ? m->end : POSTDOMINATOR_NONE;

	m->steps += b->succ_count;
	for (unsigned k = 0; k < b->succ_count; k++) {
		unsigned s = b->succs[k]->order;

		if (m->postdominator[s] != POSTDOMINATOR_NONE)
			up = up == POSTDOMINATOR_NONE ? s : common(m, up, s);
	}
	return up;
}

unsigned *postdominator_build(struct function *function, const struct cfg *cfg)
{
	struct arena *arena = function->arena;
	struct builder m = {.cfg = cfg, .end = cfg->count};
	unsigned n = cfg->count + 1;
	bool changed = true;

	m.postdominator = arena_array(arena, n, sizeof(*m.postdominator));
	m.place = arena_array(arena, n, sizeof(*m.place));
	m.order = arena_array(arena, n, sizeof(*m.order));
	number(&m, arena);
	for (unsigned k = 0; k < n; k++) {
		m.postdominator[k] = POSTDOMINATOR_NONE;
		m.max_steps += BUDGET;
		if (k < cfg->count)
			m.max_steps += (uint64_t)BUDGET * cfg->order[k]->succ_count;
	}
	m.postdominator[m.end] = m.end;
	while (changed && m.steps < m.max_steps) {
		changed = false;
		for (unsigned k = m.count - 1; k-- > 0;) {
			unsigned node = m.order[k], up = postdominator_of(&m, cfg->order[node]);

			changed = changed || up != m.postdominator[node];
			m.postdominator[node] = up;
		}
	}
	return m.steps < m.max_steps ? m.postdominator : NULL;
}
