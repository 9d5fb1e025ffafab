/* Decoders of conversions between state spaces, fences, and asynchronous copies. */
#include "simcuda/ptx/decode/decode.h"

#include "simcuda/ptx/execute/executors.h"
#include "simcuda/ptx/execute/warp.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int ptx_decode_cvta(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn insn = {.exec = ptx_exec_to_generic};
	int r;

	if (ptx_take(s, "to"))
		insn.exec = ptx_exec_from_generic;
	insn.access.space = ptx_take_space(s);
	if (insn.access.space == PTX_SPACE_GENERIC || !ptx_take(s, "u64"))
		return ptx_unknown(p, &s->opcode, "this form of cvta");
	if ((r = ptx_no_more(p, s)) || (r = ptx_want(p, s, 2, 2)) ||
	    (r = ptx_destination(p, s, &s->operands[0], 8, &insn.op[0])))
		return r;
	const struct ptx_operand *from = &s->operands[1];
	struct ptx_variable *v = from->kind == PTX_OPERAND_VARIABLE ? from->symbol->variable : NULL;
	if (v && v->space == PTX_SPACE_LOCAL) {
		/* Its offset first, in the destination. */
		struct ptx_insn offset = {.exec = ptx_exec_frame_address};
		offset.access.row_bytes = 8;
		offset.imm = (int64_t)v->offset + from->addend;
		offset.op[0] = insn.op[1] = insn.op[0];
		if (ptx_emit(p, s, &offset))
			return p->result;
	} else if ((r = ptx_source(p, s, from, PTX_u64, &insn.op[1]))) {
		return r;
	}
	if (insn.access.space == PTX_SPACE_PARAM && !p->function->is_kernel)
		insn.access.space = PTX_SPACE_LOCAL;
	return ptx_emit(p, s, &insn);
}

int ptx_decode_isspacep(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn insn = {.exec = ptx_exec_is_space};
	int r;

	insn.access.space = ptx_take_space(s);
	/* Constants lie among the global variables; no program can tell. */
	if (insn.access.space == PTX_SPACE_GENERIC || insn.access.space == PTX_SPACE_CONST)
		return ptx_unknown(p, &s->opcode, "isspacep of this space");
	if ((r = ptx_no_more(p, s)) || (r = ptx_want(p, s, 2, 2)) ||
	    (r = ptx_destination(p, s, &s->operands[0], 0, &insn.op[0])) ||
	    (r = ptx_source(p, s, &s->operands[1], PTX_u64, &insn.op[1])))
		return r;
	return ptx_emit(p, s, &insn);
}

/* All fences are the strongest one. */
int ptx_decode_fence(struct ptx_parser *p, struct ptx_statement *s)
{
	static const char *const words[] = {"cta",
					    "cluster",
					    "gpu",
					    "sys",
					    "gl",
					    "sc",
					    "acq_rel",
					    "acquire",
					    "release",
					    "proxy",
					    "alias",
					    "async",
					    "mbarrier_init",
					    "sync_restrict::shared::cta",
					    "sync_restrict::shared::cluster",
					    "async.global",
					    "async::global",
					    "async::shared::cta",
					    "global",
					    "shared::cta"};
	struct ptx_insn insn = {.exec = ptx_exec_fence};
	int r;

	while (ptx_take_one_of(s, words, COUNT(words)) < COUNT(words)) {
	}
	if ((r = ptx_no_more(p, s)) || (r = ptx_want(p, s, 0, 0)))
		return r;
	return ptx_emit(p, s, &insn);
}

/* cp.async copies at once: no program may read the destination before the wait. */
static int decode_copy(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn insn = {.exec = ptx_exec_copy};
	struct ptx_operand *size = &s->operands[2];
	struct ptx_variable *variable;
	bool policy = ptx_drop_cache_hints(s);
	int r;

	if (!ptx_take(s, "shared"))
		ptx_take_one_of(s, (const char *const[]){"shared::cta", "shared::cluster"}, 2);
	if (!ptx_take(s, "global"))
		return ptx_unknown(p, &s->opcode, "this form of cp.async");
	if ((r = ptx_no_more(p, s)) || (r = ptx_want(p, s, 3 + policy, 4 + policy)))
		return r;
	if (size->kind != PTX_OPERAND_INTEGER ||
	    (size->bits != 4 && size->bits != 8 && size->bits != 16))
		return ptx_fail_at(p, &s->opcode, "cp.async of an odd size");
	insn.access.space = PTX_SPACE_SHARED;
	insn.access.bytes = (uint8_t)size->bits;
	insn.access.count = 1;
	if ((r = ptx_decode_address(p, s, &s->operands[0], &insn, &variable)))
		return r;
	/* The source: its own base and offset. */
	const struct ptx_operand *from = &s->operands[1];
	if (from->kind != PTX_OPERAND_ADDRESS || !from->symbol ||
	    from->symbol->kind != PTX_SYMBOL_REGISTER || from->symbol->bytes != 8)
		return ptx_unknown(p, &s->opcode, "this source of cp.async");
	insn.op[1] = from->symbol->row;
	insn.op[2] = ptx_constant(p, (uint64_t)from->addend, 8, NULL);
	insn.op[3] = PTX_NO_ROW;
	if (s->n == 4 + (uint32_t)policy) {
		/* Optional: copy fewer bytes and zero the rest, or a predicate that copies none. */
		const struct ptx_operand *less = &s->operands[3];
		if (less->kind == PTX_OPERAND_REGISTER && less->symbol->bytes == 0)
			return ptx_unknown(p, &s->opcode, "cp.async with ignore-src");
		if ((r = ptx_source(p, s, less, PTX_u32, &insn.op[3])))
			return r;
	}
	return ptx_emit_memory(p, s, &insn, variable);
}

int ptx_decode_cp(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn nothing = {.exec = ptx_exec_nothing};

	if (!ptx_take(s, "async") || !s->n_modifiers)
		return ptx_unknown(p, &s->opcode, "this form of cp");
	if (ptx_take(s, "bulk"))
		return ptx_decode_bulk(p, s);
	if (ptx_take(s, "mbarrier"))
		return ptx_take(s, "arrive") ? ptx_decode_copy_arrive(p, s)
					     : ptx_unknown(p, &s->opcode, "this form of cp.async");
	if (s->n_modifiers > 1)
		return decode_copy(p, s);
	if (!ptx_take(s, "commit_group") && !ptx_take(s, "wait_group") && !ptx_take(s, "wait_all"))
		return ptx_unknown(p, &s->opcode, "this form of cp.async");
	return ptx_emit(p, s, &nothing);
}

/* An address of the same memory in block 0 of the cluster, which is this block: a move. */
int ptx_decode_mapa(struct ptx_parser *p, struct ptx_statement *s)
{
	uint32_t rank;
	int r = ptx_want(p, s, 3, 3);

	if (r || (r = ptx_source(p, s, &s->operands[2], PTX_u32, &rank)))
		return r;
	ptx_take(s, "shared::cluster");
	s->n = 2;
	s->opcode.text = "mov";
	s->opcode.len = 3;
	return ptx_decode_mov(p, s);
}
