/* Decodes mbarrier and cp.async.mbarrier.arrive. */
#include "simcuda/ptx/decode/decode.h"

#include "simcuda/ptx/execute/executors.h"
#include "simcuda/ptx/execute/sync.h"

static const struct {
	const char *word;
	uint8_t operation;
	bool has_result;
} forms[] = {
	{"init", PTX_MBARRIER_INIT, false},        {"inval", PTX_MBARRIER_INVAL, false},
	{"arrive", PTX_MBARRIER_ARRIVE, true},     {"arrive_drop", PTX_MBARRIER_DROP, true},
	{"expect_tx", PTX_MBARRIER_EXPECT, false}, {"complete_tx", PTX_MBARRIER_COMPLETE, false},
	{"test_wait", PTX_MBARRIER_WAIT, true},    {"try_wait", PTX_MBARRIER_WAIT, true},
};

/* The operand: a state, a parity, or a count (default 1). */
static int decode_operand(struct ptx_parser *p, struct ptx_statement *s, uint32_t at,
			  struct ptx_insn *insn)
{
	bool state = insn->access.variant == PTX_MBARRIER_WAIT;

	insn->access.row_bytes = state ? 8 : 4;
	if (at < s->n)
		return ptx_source(p, s, &s->operands[at], state ? PTX_b64 : PTX_u32, &insn->op[2]);
	insn->op[2] = ptx_constant(p, 1, 4, NULL);
	return p->result;
}

static int decode_result(struct ptx_parser *p, struct ptx_statement *s, struct ptx_insn *insn)
{
	bool waits = insn->access.variant == PTX_MBARRIER_WAIT ||
		     insn->access.variant == PTX_MBARRIER_WAIT_PARITY;

	if (s->operands[0].kind == PTX_OPERAND_SINK)
		return 0;
	return ptx_destination(p, s, &s->operands[0], waits ? 0 : 8, &insn->op[1]);
}

int ptx_decode_mbarrier(struct ptx_parser *p, struct ptx_statement *s)
{
	static const char *const meaningless[] = {"release", "acquire", "relaxed",
						  "cta",     "cluster", "noComplete"};
	struct ptx_insn insn = {.exec = ptx_exec_mbarrier, .op = {[1] = PTX_NO_ROW}};
	struct ptx_variable *variable;
	size_t k = 0;
	int r;

	while (k < sizeof(forms) / sizeof(forms[0]) && !ptx_take(s, forms[k].word))
		k++;
	if (k == sizeof(forms) / sizeof(forms[0]))
		return ptx_unknown(p, &s->opcode, "this form of mbarrier");
	insn.access.writes = true;
	insn.access.variant = forms[k].operation;
	if (insn.access.variant == PTX_MBARRIER_WAIT && ptx_take(s, "parity"))
		insn.access.variant = PTX_MBARRIER_WAIT_PARITY;
	if (insn.access.variant == PTX_MBARRIER_ARRIVE && ptx_take(s, "expect_tx"))
		insn.access.variant = PTX_MBARRIER_ARRIVE_EXPECT;
	ptx_take_one_of(s, meaningless, 6);
	ptx_take_one_of(s, meaningless, 6);
	insn.access.space = ptx_take_space(s);
	uint32_t at = forms[k].has_result;
	/* A wait's time limit is ignored: it looks once. */
	if (!ptx_take(s, "b64"))
		return ptx_unknown(p, &s->opcode, "this form of mbarrier");
	if ((r = ptx_no_more(p, s)) || (r = ptx_want(p, s, at + 1, at + 3)) ||
	    (at && (r = decode_result(p, s, &insn))) ||
	    (r = ptx_decode_address(p, s, &s->operands[at], &insn, &variable)) ||
	    (r = decode_operand(p, s, at + 1, &insn)))
		return r;
	return ptx_emit_memory(p, s, &insn, variable);
}

/* cp.async.mbarrier.arrive: arrives when this thread's copies are done, so at once. Without .noinc
 * it first adds one expected arrival, so nothing changes. */
int ptx_decode_copy_arrive(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn insn = {.exec = ptx_exec_mbarrier, .op = {[1] = PTX_NO_ROW}};
	struct ptx_variable *variable;
	int r;

	insn.access.writes = true;
	insn.access.variant = PTX_MBARRIER_ARRIVE;
	if (!ptx_take(s, "noinc"))
		insn.exec = ptx_exec_nothing;
	insn.access.space = ptx_take_space(s);
	if (!ptx_take(s, "b64") || s->n_modifiers)
		return ptx_unknown(p, &s->opcode, "this form of cp.async.mbarrier");
	if ((r = ptx_want(p, s, 1, 1)) ||
	    (r = ptx_decode_address(p, s, &s->operands[0], &insn, &variable)) ||
	    (r = decode_operand(p, s, 1, &insn)))
		return r;
	return ptx_emit_memory(p, s, &insn, variable);
}
