/* The maker of a mask and its user are a pair if the maker dominates the user, the user
 * post-dominates the maker, and a thread that executes one of them again has executed the other
 * in between. */
#include "analysis/warp-pair.h"

#include "analysis/postdominator.h"
#include "analysis/warp-mask.h"

#include <string.h>

#define BUDGET     64u /* steps per block and edge */
#define COPIES_MAX 8u  /* longer chains of copies have no known maker */

struct warp_pairs {
	const struct cfg *cfg;
	const unsigned *postdominator;         /* NULL: nothing is certain */
	const struct instruction **definition; /* by register: the only one */
	bool *is_ambiguous;                    /* by register: has several */
	unsigned *seen, *stack;                /* by block */
	unsigned walks;
	uint64_t steps, max_steps;
};

struct defining {
	struct warp_pairs *pairs;
	const struct instruction *instruction;
};

static void define(void *data, struct register_use use)
{
	struct defining *d = data;
	const struct instruction **definition = &d->pairs->definition[use.reg->id];

	if (!use.written)
		return;
	if (*definition && *definition != d->instruction)
		d->pairs->is_ambiguous[use.reg->id] = true;
	*definition = d->instruction;
}

struct warp_pairs *warp_pairs_find(struct function *function, const struct cfg *cfg)
{
	struct arena *arena = function->arena;
	struct warp_pairs *pairs = arena_new(arena, struct warp_pairs);
	unsigned place = 0;

	*pairs = (struct warp_pairs){.cfg = cfg};
	pairs->postdominator = postdominator_build(function, cfg);
	pairs->definition =
		arena_array(arena, function->reg_count, sizeof(const struct instruction *));
	pairs->is_ambiguous = arena_array(arena, function->reg_count, sizeof(*pairs->is_ambiguous));
	pairs->seen = arena_array(arena, cfg->count, sizeof(*pairs->seen));
	pairs->stack = arena_array(arena, cfg->count, sizeof(*pairs->stack));
	for (unsigned k = 0; k < cfg->count; k++)
		pairs->max_steps += (uint64_t)BUDGET * (1 + cfg->order[k]->succ_count);
	for_each_instruction (i, function) {
		i->place = place++;
		instruction_registers(function, i, define, &(struct defining){pairs, i});
	}
	return pairs;
}

static bool post_dominates(struct warp_pairs *pairs, unsigned below, unsigned above)
{
	while (above != below && pairs->steps++ < pairs->max_steps) {
		if (above == POSTDOMINATOR_NONE || above == pairs->cfg->count)
			return false;
		above = pairs->postdominator[above];
	}
	return above == below;
}

/* Whether a path leads from the end of @block to its start that does not pass @other. Over budget
 * it is true. */
static bool comes_again(struct warp_pairs *pairs, const struct block *block,
			const struct block *other)
{
	unsigned n = 0, walk = ++pairs->walks;
	const struct block *b = block;

	for (;;) {
		for (unsigned k = 0; k < b->succ_count; k++) {
			const struct block *s = b->succs[k];

			if (s == block || pairs->steps++ >= pairs->max_steps)
				return true;
			if (s == other || pairs->seen[s->order] == walk)
				continue;
			pairs->seen[s->order] = walk;
			pairs->stack[n++] = s->order;
		}
		if (!n)
			return false;
		b = pairs->cfg->order[pairs->stack[--n]];
	}
}

static bool is_pair(struct warp_pairs *pairs, const struct instruction *maker,
		    const struct instruction *user)
{
	const struct block *from = maker->block, *to = user->block;

	if (maker->guard || from->order == CFG_UNREACHED)
		return false;
	if (from == to)
		return maker->place <= user->place;
	return cfg_dominates(from, to) && post_dominates(pairs, to->order, from->order) &&
	       !comes_again(pairs, to, from) && !comes_again(pairs, from, to);
}

/* The instruction that wrote the register, if there is only one. */
static const struct instruction *definition_of(const struct warp_pairs *pairs,
					       const struct operand *operand)
{
	if (operand->kind != OPERAND_REGISTER || operand->suffix || operand->sign ||
	    pairs->is_ambiguous[operand->reg->id])
		return NULL;
	return pairs->definition[operand->reg->id];
}

/* Whether the lanes that @operand names are some of those that executed a maker which is the pair
 * of @user. */
static bool names_pair(struct warp_pairs *pairs, const struct operand *operand,
		       const struct instruction *user, unsigned copies)
{
	const struct instruction *i = definition_of(pairs, operand);

	if (!i)
		return false;
	if (warp_makes_mask(i))
		return is_pair(pairs, i, user);
	if (!copies || i->guard)
		return false;
	if (!strcmp(i->mnemonic->name, "mov") && i->operand_count == 2)
		return names_pair(pairs, &i->operands[1], user, copies - 1);
	return !strcmp(i->mnemonic->name, "and") && i->operand_count == 3 &&
	       (names_pair(pairs, &i->operands[1], user, copies - 1) ||
		names_pair(pairs, &i->operands[2], user, copies - 1));
}

bool warp_is_paired(struct warp_pairs *pairs, const struct instruction *user)
{
	return pairs->postdominator && !user->guard && user->block->order != CFG_UNREACHED &&
	       warp_has_mask(user) &&
	       names_pair(pairs, &user->operands[user->operand_count - 1], user, COPIES_MAX);
}
