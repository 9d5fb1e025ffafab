#include "analysis/warp-mask.h"

#include <string.h>

#define ROUND_MAX 8u /* longer chains of copies stay unknown */
#define ALL_LANES 0xffffffffu

bool warp_has_mask(const struct instruction *i)
{
	return i->mnemonic->op_class == OP_WARP && i->operand_count &&
	       mnemonic_has(i->mnemonic, "sync") &&
	       name_is(i->mnemonic->name, "shfl", "vote", "match", "redux", "elect", "bar");
}

bool warp_makes_mask(const struct instruction *i)
{
	const struct mnemonic *m = i->mnemonic;

	return !strcmp(m->name, "activemask") || !strcmp(m->name, "match") ||
	       (!strcmp(m->name, "vote") && mnemonic_has(m, "ballot"));
}

static enum mask_kind kind_of(const struct operand *operand, const uint8_t *masks)
{
	if (operand->kind == OPERAND_IMMEDIATE)
		return (uint32_t)operand->value == ALL_LANES ? MASK_ALL : MASK_UNKNOWN;
	if (operand->kind == OPERAND_REGISTER && !operand->suffix && !operand->sign)
		return masks[operand->reg->id];
	return MASK_UNKNOWN;
}

/* The mask that the instruction leaves in its first operand. */
static enum mask_kind result_of(const struct instruction *i, const uint8_t *masks)
{
	const struct mnemonic *m = i->mnemonic;
	enum mask_kind a, b;

	if (warp_makes_mask(i))
		return MASK_LIVE;
	if (!strcmp(m->name, "mov") && i->operand_count == 2)
		return kind_of(&i->operands[1], masks);
	if (strcmp(m->name, "and") != 0 || i->operand_count != 3)
		return MASK_UNKNOWN;
	a = kind_of(&i->operands[1], masks);
	b = kind_of(&i->operands[2], masks);
	return a == MASK_LIVE || b == MASK_LIVE ? MASK_LIVE : MASK_UNKNOWN;
}

struct writing {
	uint8_t *masks;
	enum mask_kind kind;
	const struct reg *first; /* the register that `kind` describes */
	bool changed;
};

static void join(void *data, struct register_use use)
{
	struct writing *w = data;
	uint8_t *mask = &w->masks[use.reg->id], kind = w->kind;

	if (!use.written)
		return;
	if (use.reg != w->first)
		kind = MASK_UNKNOWN;
	if (*mask != MASK_NONE && *mask != kind)
		kind = MASK_UNKNOWN;
	w->changed = w->changed || *mask != kind;
	*mask = kind;
}

/* `d`, or the `d` of `d|p` */
static const struct reg *first_register(const struct instruction *i)
{
	const struct operand *o = i->operand_count ? &i->operands[0] : NULL;

	if (o && o->kind == OPERAND_PAIR && o->item_count)
		o = &o->items[0];
	return o && o->kind == OPERAND_REGISTER ? o->reg : NULL;
}

/* An instruction whose sources are not known yet waits for the next round. */
static bool look_at_all(const struct function *f, uint8_t *masks)
{
	struct writing w = {.masks = masks};

	for_each_instruction (i, f) {
		w.kind = result_of(i, masks);
		w.first = first_register(i);
		if (w.kind != MASK_NONE)
			instruction_registers(f, i, join, &w);
	}
	return w.changed;
}

uint8_t *warp_masks(struct function *function)
{
	uint8_t *masks = arena_array(function->arena, function->reg_count, sizeof(*masks));
	unsigned round = 0;

	while (round < ROUND_MAX && look_at_all(function, masks))
		round++;
	if (round == ROUND_MAX)
		memset(masks, MASK_UNKNOWN, function->reg_count);
	return masks;
}

enum mask_kind warp_mask_of(const struct instruction *i, const uint8_t *masks)
{
	enum mask_kind kind;

	if (!warp_has_mask(i))
		return MASK_NONE;
	kind = kind_of(&i->operands[i->operand_count - 1], masks);
	return kind == MASK_NONE ? MASK_UNKNOWN : kind;
}
