#include "analysis/async.h"

#include "analysis/cfg.h"
#include <string.h>

#define WITH_MAX 3

static const char pair[] = "works for two blocks of a cluster";
static const char tensor_memory[] = "uses tensor memory, which no form gives back between blocks";
static const char unknown[] = "starts asynchronous work that may outlast the block";

/* The first row with the mnemonic's name applies whose modifiers all occur. */
static const struct {
	const char *name, *with[WITH_MAX];
	struct async_use use;
} rows[] = {
	{"cp", {"cta_group::1"}, {ASYNC_OTHER, pair}},
	{"cp", {"cta_group::2"}, {ASYNC_OTHER, pair}},
	{"cp", {"bulk", "prefetch"}, {ASYNC_HINT, NULL}},
	{"cp", {"bulk", "bulk_group"}, {ASYNC_STORE, NULL}},
	{"cp", {"bulk", "commit_group"}, {ASYNC_STORE, NULL}},
	{"cp", {"bulk", "wait_group"}, {ASYNC_STORE, NULL}},
	{"cp", {"bulk", "mbarrier::complete_tx::bytes"}, {ASYNC_LOAD, NULL}},
	{"cp", {"bulk"}, {ASYNC_OTHER, unknown}},
	{"cp", {"mbarrier"}, {ASYNC_MBARRIER, NULL}},
	{"cp", {"async"}, {ASYNC_COPY, NULL}},
	{"fence", {"mbarrier_init"}, {ASYNC_MBARRIER, NULL}},
	{"mbarrier", {NULL}, {ASYNC_MBARRIER, NULL}},
	{"wgmma", {NULL}, {ASYNC_MATRIX, NULL}},
	{"st", {"async"}, {ASYNC_LOAD, NULL}},
	{"red", {"async"}, {ASYNC_LOAD, NULL}},
	{"tcgen05", {NULL}, {ASYNC_OTHER, tensor_memory}},
};

static bool has_all(const struct mnemonic *m, const char *const *with)
{
	for (unsigned k = 0; k < WITH_MAX && with[k]; k++)
		if (!mnemonic_has(m, with[k]))
			return false;
	return true;
}

struct async_use async_use_of(const struct mnemonic *m)
{
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
		if (!strcmp(rows[k].name, m->name) && has_all(m, rows[k].with))
			return rows[k].use;
	return (struct async_use){ASYNC_OTHER, unknown};
}

bool async_has(const struct function *function, enum async_kind kind)
{
	for_each_instruction (i, function)
		if (i->mnemonic->op_class == OP_ASYNC && async_use_of(i->mnemonic).kind == kind)
			return true;
	return false;
}

/* Whether products may be under way behind @i, if they may be in front of it. */
static bool step(const struct instruction *i, bool may)
{
	if (strcmp(i->mnemonic->name, "wgmma") != 0)
		return may;
	if (mnemonic_has(i->mnemonic, "mma_async"))
		return true;
	return may &&
	       !(mnemonic_has(i->mnemonic, "wait_group") && !i->guard && i->operand_count == 1 &&
		 i->operands[0].kind == OPERAND_IMMEDIATE && i->operands[0].value == 0);
}

/* Adds the successors of @b, at whose end products may be under way, to the list. */
static unsigned add_successors(const struct block *b, bool *may, struct block **todo, unsigned n)
{
	for (unsigned k = 0; k < b->succ_count; k++) {
		if (may[b->succs[k]->order])
			continue;
		may[b->succs[k]->order] = true;
		todo[n++] = b->succs[k];
	}
	return n;
}

static bool at_end(const struct block *b, bool may)
{
	for (const struct instruction *i = b->first; i; i = i->next)
		may = step(i, may);
	return may;
}

const struct instruction *async_unawaited_exit(const struct function *function,
					       const struct cfg *cfg)
{
	bool *may = arena_array(function->arena, cfg->count, sizeof(*may));
	struct block **todo = arena_array(function->arena, cfg->count, sizeof(struct block *));
	unsigned n = 0;

	for (unsigned k = 0; k < cfg->count; k++)
		if (at_end(cfg->order[k], false))
			n = add_successors(cfg->order[k], may, todo, n);
	while (n) {
		const struct block *b = todo[--n];

		if (at_end(b, true))
			n = add_successors(b, may, todo, n);
	}
	for (unsigned k = 0; k < cfg->count; k++) {
		const struct block *b = cfg->order[k];

		if (b->last && b->last->mnemonic->op_class == OP_EXIT && at_end(b, may[k]))
			return b->last;
	}
	return NULL;
}
