#include "passes/unroll.h"

#include "syntax/edit.h"

#include <string.h>

struct unrolling {
	struct function *f;
	const struct loop *loop;
	struct block **blocks; /* of the loop, in the order of the text */
	unsigned count;
	struct block ***copies; /* by index in `blocks` */
	unsigned copy_count;
	struct block *last; /* the last one in the text, new ones included */
};

/* The target of a jump to @target from copy @copy. */
static struct block *target_of(const struct unrolling *u, struct block *target, unsigned copy)
{
	if (target == u->loop->head)
		copy = (copy + 1) % u->copy_count;
	for (unsigned k = 0; k < u->count; k++)
		if (u->blocks[k] == target)
			return u->copies[copy][k];
	return target;
}

static void find_blocks(struct unrolling *u)
{
	struct function *f = u->f;
	unsigned n = 0;

	for (struct block *b = f->entry; b; b = b->next)
		n += loop_contains(u->loop, b);
	u->blocks = arena_array(f->arena, n, sizeof(struct block *));
	u->copies = arena_array(f->arena, u->copy_count, sizeof(*u->copies));
	for (struct block *b = f->entry; b; b = b->next) {
		if (!loop_contains(u->loop, b))
			continue;
		u->blocks[u->count++] = b;
		u->last = b;
	}
	for (unsigned c = 0; c < u->copy_count; c++)
		u->copies[c] = arena_array(f->arena, n, sizeof(struct block *));
	memcpy(u->copies[0], u->blocks, n * sizeof(struct block *));
}

/* Adds explicit jumps, so that blocks may stand in any order. */
static void make_jumps(struct unrolling *u)
{
	for (unsigned k = 0; k < u->count; k++) {
		struct cursor at = cursor_end(u->f, u->blocks[k]);

		if (!block_falls_through(u->blocks[k]))
			continue;
		edit_code(&at, "bra %0;", op_block(u->blocks[k]->next));
		if (u->blocks[k] == u->last)
			u->last = at.block;
	}
}

static void copy_instruction(struct unrolling *u, struct cursor *at, const struct instruction *i,
			     unsigned copy)
{
	struct instruction *clone = arena_new(u->f->arena, struct instruction);
	struct operand *operands = arena_array(u->f->arena, i->operand_count, sizeof(*operands));

	*clone = *i;
	clone->operands = operands;
	if (i->operand_count)
		memcpy(operands, i->operands, i->operand_count * sizeof(*operands));
	if (i->mnemonic->op_class == OP_BRANCH)
		operands[0].block = target_of(u, operands[0].block, copy);
	cursor_insert(at, clone);
}

/* A jump that make_jumps() put behind a branch has a block of its own. */
static void copy_block(struct unrolling *u, unsigned index, unsigned copy)
{
	const struct block *from = u->blocks[index];
	struct cursor at = cursor_end(u->f, u->copies[copy][index]);

	for (const struct block *b = from; b; b = block_falls_through(b) ? b->next : NULL)
		for (const struct instruction *i = b->first; i; i = i->next)
			copy_instruction(u, &at, i, copy);
}

static void turn_back_edges(struct unrolling *u)
{
	for (unsigned k = 0; k < u->count; k++) {
		for (struct block *b = u->blocks[k]; b;
		     b = block_falls_through(b) ? b->next : NULL) {
			struct instruction *i = b->last;

			if (i && i->mnemonic->op_class == OP_BRANCH &&
			    i->operands[0].block == u->loop->head)
				i->operands[0].block = target_of(u, u->loop->head, 0);
		}
	}
}

void unroll_loop(struct function *function, const struct loop *loop, unsigned copies)
{
	struct unrolling u = {.f = function, .loop = loop, .copy_count = copies};

	find_blocks(&u);
	make_jumps(&u);
	for (unsigned c = 1; c < copies; c++) {
		for (unsigned k = 0; k < u.count; k++) {
			u.copies[c][k] = edit_block(function, u.last, "round");
			u.last = u.copies[c][k];
		}
	}
	for (unsigned c = 1; c < copies; c++)
		for (unsigned k = 0; k < u.count; k++)
			copy_block(&u, k, c);
	turn_back_edges(&u);
}
