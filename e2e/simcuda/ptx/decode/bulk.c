/* Decodes cp.async.bulk: copies of bytes and of tensor tiles between shared and global memory, and
 * the groups of those that leave shared memory. */
#include "simcuda/ptx/decode/decode.h"

#include "simcuda/ptx/execute/executors.h"
#include "simcuda/ptx/execute/sync.h"
#include "simcuda/ptx/tensor-map.h"

/* An address as two rows: a register or a variable, and what is added to it. */
static int decode_place(struct ptx_parser *p, struct ptx_statement *s,
			const struct ptx_operand *operand, enum ptx_type type, uint32_t *rows)
{
	struct ptx_operand base = {.token = operand->token, .symbol = operand->symbol};

	if (operand->kind != PTX_OPERAND_ADDRESS || !operand->symbol)
		return ptx_unknown(p, &s->opcode, "this address of a bulk copy");
	base.kind = operand->symbol->kind == PTX_SYMBOL_VARIABLE ? PTX_OPERAND_VARIABLE
								 : PTX_OPERAND_REGISTER;
	rows[1] = ptx_constant(p, (uint64_t)operand->addend, ptx_types[type].bytes, NULL);
	return ptx_source(p, s, &base, type, &rows[0]);
}

static int decode_coordinates(struct ptx_parser *p, struct ptx_statement *s,
			      const struct ptx_operand *operand, struct ptx_insn *insn)
{
	int r = 0;

	if (operand->n_elements != insn->access.count)
		return ptx_unknown(p, &s->opcode, "another number of coordinates");
	for (uint32_t k = 0; !r && k < operand->n_elements; k++)
		r = ptx_source(p, s, &operand->elements[k], PTX_s32, &insn->op[PTX_BULK_AT + k]);
	return r;
}

static int decode_groups(struct ptx_parser *p, struct ptx_statement *s)
{
	/* An empty group is a store of nothing. */
	struct ptx_insn insn = {.exec = ptx_exec_bulk_commit,
				.access = {.variant = PTX_BULK_STORE}};
	int r;

	if (!ptx_take(s, "commit_group")) {
		ptx_take(s, "wait_group");
		ptx_take(s, "read");
		insn.exec = ptx_exec_bulk_wait;
		if ((r = ptx_want(p, s, 1, 1)))
			return r;
		if (s->operands[0].kind != PTX_OPERAND_INTEGER || s->operands[0].bits > INT32_MAX)
			return ptx_fail_at(p, &s->opcode, "a number of groups is expected");
		insn.imm = (int64_t)s->operands[0].bits;
	}
	r = ptx_no_more(p, s);
	return r ? r : ptx_emit(p, s, &insn);
}

/* The dimensions of a tensor copy; 0: of bytes. */
static uint8_t take_dimensions(struct ptx_statement *s)
{
	static const char *const words[PTX_TENSOR_RANK_MAX] = {"1d", "2d", "3d", "4d", "5d"};
	size_t k;

	if (!ptx_take(s, "tensor"))
		return 0;
	k = ptx_take_one_of(s, words, PTX_TENSOR_RANK_MAX);
	ptx_take(s, "tile");
	return k < PTX_TENSOR_RANK_MAX ? (uint8_t)(k + 1) : 0;
}

/* [shared], [global], size, [mbarrier]   or   [global], [shared], size */
static int decode_operands(struct ptx_parser *p, struct ptx_statement *s, bool is_load,
			   struct ptx_insn *insn)
{
	const struct ptx_operand *shared = &s->operands[!is_load], *global = &s->operands[is_load];
	bool is_tensor = insn->access.count;
	uint32_t barrier = is_tensor ? 2 : 3;
	int r;

	if ((r = decode_place(p, s, shared, PTX_b32, &insn->op[PTX_BULK_SHARED])) ||
	    (r = decode_place(p, s, global, PTX_b64, &insn->op[PTX_BULK_GLOBAL])) ||
	    (r = is_tensor ? decode_coordinates(p, s, global, insn)
			   : ptx_source(p, s, &s->operands[2], PTX_u32, &insn->op[PTX_BULK_SIZE])))
		return r;
	return is_load ? decode_place(p, s, &s->operands[barrier], PTX_b32,
				      &insn->op[PTX_BULK_BARRIER])
		       : 0;
}

static int decode_copy(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn insn = {.exec = ptx_exec_bulk};
	bool policy = ptx_drop_cache_hints(s);
	bool is_load = ptx_take(s, "mbarrier::complete_tx::bytes");
	bool is_shared = ptx_take(s, "shared::cta") || (is_load && ptx_take(s, "shared::cluster"));
	uint32_t n;
	int r;

	insn.access.count = take_dimensions(s);
	if (!is_shared || !ptx_take(s, "global") || (!is_load && !ptx_take(s, "bulk_group")))
		return ptx_unknown(p, &s->opcode, "this form of cp.async.bulk");
	insn.access.variant = insn.access.count ? is_load ? PTX_TENSOR_LOAD : PTX_TENSOR_STORE
			      : is_load         ? PTX_BULK_LOAD
						: PTX_BULK_STORE;
	n = 2 + is_load + !insn.access.count + policy;
	if ((r = ptx_no_more(p, s)) || (r = ptx_want(p, s, n, n)) ||
	    (r = decode_operands(p, s, is_load, &insn)))
		return r;
	return ptx_emit(p, s, &insn);
}

int ptx_decode_bulk(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn nothing = {.exec = ptx_exec_nothing};

	if (ptx_take(s, "prefetch"))
		return ptx_emit(p, s, &nothing);
	for (uint32_t k = 0; k < s->n_modifiers; k++)
		if (ptx_token_is(&s->modifiers[k], PTX_TOKEN_DOT, "commit_group") ||
		    ptx_token_is(&s->modifiers[k], PTX_TOKEN_DOT, "wait_group"))
			return decode_groups(p, s);
	return decode_copy(p, s);
}
