/* First what each register may be the address of, whatever the order of instructions; then the
 * usual data-flow equations on blocks. All sets only grow. What needs more than ROUND_MAX rounds
 * counts as escaped. */
#include "passes/save/shared-live.h"

#include "passes/callee.h"

#include <string.h>

#define ROUND_MAX 64u
#define OTHERS    (1u << SHARED_LIVE_MAX)
#define ALL       (2 * OTHERS - 1)

struct finder {
	struct shared_live *shared;
	const struct cfg *cfg;
	uint32_t *derived; /* by reg->id: what the value may be the address of */
	uint32_t escaped;
	uint32_t *reads, *writes; /* by block->order */
};

uint32_t shared_live_bit(const struct shared_live *shared, const struct variable *variable)
{
	for (unsigned k = 0; k < shared->n; k++)
		if (shared->list[k] == variable ||
		    (variable->space == SPACE_SHARED && !variable->size && !shared->list[k]->size))
			return 1u << k;
	return OTHERS;
}

/* The variables whose addresses an operand is made of. */
static uint32_t named(const struct finder *finder, const struct operand *operand)
{
	uint32_t set = 0;

	if (operand->kind == OPERAND_REGISTER)
		return finder->derived[operand->reg->id];
	if (operand->kind == OPERAND_VARIABLE)
		return shared_live_bit(finder->shared, operand->variable);
	for (size_t k = 0; k < operand_items(operand); k++)
		set |= named(finder, &operand->items[k]);
	return set;
}

/* Those of all operands that are only read. With @addresses only of those in brackets, without it
 * only of others. */
static uint32_t named_by(const struct finder *finder, const struct instruction *i, bool addresses)
{
	uint32_t set = 0;

	for (size_t k = 0; k < i->operand_count; k++) {
		const struct operand *o = &i->operands[k];

		if ((o->kind == OPERAND_ADDRESS) == addresses &&
		    (k > 0 || !(i->mnemonic->flags & OP_WRITES_0)))
			set |= named(finder, o);
	}
	return set;
}

static bool names_shared(const struct mnemonic *m)
{
	for (const char *const *modifier = m->modifiers; *modifier; modifier++)
		if (!strncmp(*modifier, "shared", strlen("shared")))
			return true;
	return false;
}

/* What the instruction may access. A generic address that is made of no variable's comes from
 * memory, and can only be that of one that escaped. */
static uint32_t accessed(const struct finder *finder, const struct instruction *i)
{
	uint32_t set = named_by(finder, i, true);

	return set || !names_shared(i->mnemonic) ? set : ALL;
}

static bool derive(struct finder *finder, const struct operand *result, uint32_t set)
{
	bool changed = false;

	if (result->kind == OPERAND_REGISTER) {
		uint32_t *derived = &finder->derived[result->reg->id];

		changed = set & ~*derived;
		*derived |= set;
	}
	for (size_t k = 0; k < operand_items(result); k++)
		changed |= derive(finder, &result->items[k], set);
	return changed;
}

/* True: nothing more to find. */
static bool find_addresses(struct finder *finder, struct function *f)
{
	bool changed = true;

	for (unsigned round = 0; changed && round < ROUND_MAX; round++) {
		changed = false;
		for_each_instruction (i, f)
			if (i->mnemonic->op_class == OP_PLAIN && i->operand_count)
				changed |=
					derive(finder, &i->operands[0], named_by(finder, i, false));
	}
	return !changed;
}

static bool is_simple(const struct mnemonic *m)
{
	return name_is(m->name, "ld", "st", "atom", "red");
}

/* What the instruction lets escape. */
static uint32_t released(const struct finder *finder, const struct instruction *i)
{
	const struct mnemonic *m = i->mnemonic;

	switch (m->op_class) {
	case OP_UNKNOWN:
	case OP_CLUSTER:
		return ALL;
	case OP_CALL:
		return calls_driver(i) ? 0 : ALL;
	case OP_PLAIN: /* a generic address of an unknown variable */
		return name_is(m->name, "cvta") && !mnemonic_has(m, "to") && names_shared(m) &&
				       !named_by(finder, i, false)
			       ? ALL
			       : 0;
	case OP_MEMORY:
	case OP_ATOMIC:
		return named_by(finder, i, false) | (is_simple(m) ? 0 : accessed(finder, i));
	case OP_WARP:
	case OP_ASYNC:
		return named_by(finder, i, false) | accessed(finder, i);
	default:
		return 0;
	}
}

static void look_at(struct finder *finder, const struct block *b)
{
	for (const struct instruction *i = b->first; i; i = i->next) {
		finder->escaped |= released(finder, i);
		if (!is_simple(i->mnemonic))
			continue;
		if (!name_is(i->mnemonic->name, "st"))
			finder->reads[b->order] |= accessed(finder, i);
		if (!name_is(i->mnemonic->name, "ld"))
			finder->writes[b->order] |= accessed(finder, i);
	}
}

static bool grow(uint32_t *set, uint32_t by)
{
	bool grows = by & ~*set;

	*set |= by;
	return grows;
}

static bool flow_back(struct finder *finder, const struct block *b, const struct block *end)
{
	uint32_t set = finder->reads[b->order];

	for (unsigned k = 0; k < b->succ_count && b != end; k++)
		set |= finder->shared->live[b->succs[k]->order];
	return grow(&finder->shared->live[b->order], set);
}

static bool flow_on(struct finder *finder, const struct block *b, const struct block *end)
{
	uint32_t set = 0;

	for (unsigned k = 0; k < b->pred_count && b != end; k++)
		set |= finder->shared->written[b->preds[k]->order] |
		       finder->writes[b->preds[k]->order];
	return grow(&finder->shared->written[b->order], set);
}

/* True: nothing more to find. */
static bool find_flow(struct finder *finder, const struct block *end)
{
	const struct cfg *cfg = finder->cfg;
	bool changed = true;

	for (unsigned round = 0; changed && round < ROUND_MAX; round++) {
		changed = false;
		for (unsigned k = 0; k < cfg->count; k++) {
			changed |= flow_on(finder, cfg->order[k], end);
			changed |= flow_back(finder, cfg->order[cfg->count - 1 - k], end);
		}
	}
	return !changed;
}

void shared_live_build(struct shared_live *shared, struct function *f, const struct cfg *cfg,
		       const struct block *end)
{
	struct finder finder = {.shared = shared, .cfg = cfg};

	finder.derived = arena_array(f->arena, f->reg_count, sizeof(uint32_t));
	finder.reads = arena_array(f->arena, cfg->count, sizeof(uint32_t));
	finder.writes = arena_array(f->arena, cfg->count, sizeof(uint32_t));
	shared->live = arena_array(f->arena, cfg->count, sizeof(uint32_t));
	shared->written = arena_array(f->arena, cfg->count, sizeof(uint32_t));
	if (!find_addresses(&finder, f))
		finder.escaped = ALL;
	for (unsigned k = 0; k < cfg->count; k++)
		look_at(&finder, cfg->order[k]);
	if (!find_flow(&finder, end))
		finder.escaped = ALL;
	for (unsigned k = 0; k < cfg->count; k++) {
		shared->live[k] |= finder.escaped | OTHERS;
		shared->written[k] |= finder.escaped | OTHERS;
	}
}
