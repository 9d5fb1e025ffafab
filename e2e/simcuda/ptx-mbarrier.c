/* mbarrier: a barrier that is a word in shared memory. The word is opaque to programs; here it
 *counts in its upper bits the phases that are over, and below that the arrivals that this phase
 *still waits for and those that each phase expects.
 *
 *	63       40 39     20 19       0
 *	[  phase   | pending | expected ]
 *
 * Copies are done before anyone can look (ptx-memory.c), so nothing is ever in flight: a wait that
 *finds its phase not over says so, and the program asks again.
 */
#include "ptx-decode.h"

#include "ptx-memory.h"

#define COUNT_MASK 0xfffffu

enum operation { INIT, INVAL, ARRIVE, DROP, WAIT, WAIT_PARITY };

struct word {
	uint32_t expected, pending, phase;
};

static struct word unpack(uint64_t bits)
{
	return (struct word){(uint32_t)bits & COUNT_MASK, (uint32_t)(bits >> 20) & COUNT_MASK,
			     (uint32_t)(bits >> 40)};
}

static uint64_t pack(struct word word)
{
	return (uint64_t)(word.phase & 0xffffff) << 40 | (uint64_t)word.pending << 20 |
	       word.expected;
}

/* False: more arrivals than it waits for. */
static bool arrive(struct word *word, uint32_t count, bool drop)
{
	if (count > word->pending || (drop && count > word->expected))
		return false;
	word->expected -= drop ? count : 0;
	word->pending -= count;
	if (word->pending == 0) {
		word->pending = word->expected;
		word->phase++;
	}
	return true;
}

/* One lane's turn; the result is the state before, or whether the wait is over. */
static bool operate(const struct ptx_insn *i, uint64_t *at, uint64_t operand, uint64_t *result)
{
	struct word word = unpack(*at);

	*result = *at;
	switch ((enum operation)i->access.variant) {
	case INIT:
		word = (struct word){(uint32_t)operand, (uint32_t)operand, 0};
		if (operand == 0 || operand > COUNT_MASK)
			return false;
		break;
	case INVAL:
		word = (struct word){0};
		break;
	case ARRIVE:
	case DROP:
		if (!arrive(&word, (uint32_t)operand, i->access.variant == DROP))
			return false;
		break;
	case WAIT:
		*result = word.phase != unpack(operand).phase;
		break;
	case WAIT_PARITY:
		*result = (word.phase & 1) != (operand & 1);
		break;
	}
	*at = pack(word);
	return true;
}

/* op: the word, result, operand. */
static enum ptx_flow exec_mbarrier(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask)
{
	bool waits = i->access.variant == WAIT || i->access.variant == WAIT_PARITY;
	uint8_t *host[PTX_LANES];
	uint64_t result;

	if (!ptx_resolve(w, i, mask, sizeof(uint64_t), host))
		return PTX_FAULT;
	for (; mask; mask &= mask - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(mask);
		const void *row = ptx_row(w, i->op[2]);
		uint64_t operand = i->access.row_bytes == 8 ? ((const uint64_t *)row)[lane]
							    : ((const uint32_t *)row)[lane];
		if (!operate(i, (uint64_t *)(void *)host[lane], operand, &result))
			return ptx_fault(w, i, "mbarrier: a count of %llu that is out of range",
					 (unsigned long long)operand);
		if (i->op[1] == PTX_NO_ROW)
			continue;
		uint32_t *word = ptx_row(w, i->op[1]);
		if (waits)
			*word = (*word & ~(1u << lane)) | (uint32_t)result << lane;
		else
			((uint64_t *)(void *)word)[lane] = result;
	}
	return PTX_NEXT;
}

static const struct {
	const char *word;
	uint8_t operation;
	bool has_result;
} forms[] = {
	{"init", INIT, false},       {"inval", INVAL, false},   {"arrive", ARRIVE, true},
	{"arrive_drop", DROP, true}, {"test_wait", WAIT, true}, {"try_wait", WAIT, true},
};

/* What an operation takes: a state, a parity, or a count that is 1 if it is not said. */
static int decode_operand(struct ptx_parser *p, struct ptx_statement *s, uint32_t at,
			  struct ptx_insn *insn)
{
	bool state = insn->access.variant == WAIT;

	insn->access.row_bytes = state ? 8 : 4;
	if (at < s->n)
		return ptx_source(p, s, &s->operands[at], state ? PTX_b64 : PTX_u32, &insn->op[2]);
	insn->op[2] = ptx_constant(p, 1, 4, NULL);
	return p->result;
}

static int decode_result(struct ptx_parser *p, struct ptx_statement *s, struct ptx_insn *insn)
{
	bool waits = insn->access.variant == WAIT || insn->access.variant == WAIT_PARITY;

	if (s->operands[0].kind == PTX_OPERAND_SINK)
		return 0;
	return ptx_destination(p, s, &s->operands[0], waits ? 0 : 8, &insn->op[1]);
}

int ptx_decode_mbarrier(struct ptx_parser *p, struct ptx_statement *s)
{
	static const char *const meaningless[] = {"release", "acquire", "relaxed",
						  "cta",     "cluster", "noComplete"};
	struct ptx_insn insn = {.exec = exec_mbarrier, .op = {[1] = PTX_NO_ROW}};
	struct ptx_variable *variable;
	size_t k = 0;
	int r;

	while (k < sizeof(forms) / sizeof(forms[0]) && !ptx_take(s, forms[k].word))
		k++;
	if (k == sizeof(forms) / sizeof(forms[0]))
		return ptx_unknown(p, &s->opcode, "this form of mbarrier");
	insn.access.writes = true;
	insn.access.variant = forms[k].operation;
	if (insn.access.variant == WAIT && ptx_take(s, "parity"))
		insn.access.variant = WAIT_PARITY;
	ptx_take_one_of(s, meaningless, 6);
	ptx_take_one_of(s, meaningless, 6);
	insn.access.space = ptx_take_space(s);
	uint32_t at = forms[k].has_result;
	/* A wait's time limit is not looked at: it looks once. */
	if (!ptx_take(s, "b64"))
		return ptx_unknown(p, &s->opcode, "this form of mbarrier");
	if ((r = ptx_no_more(p, s)) || (r = ptx_want(p, s, at + 1, at + 3)) ||
	    (at && (r = decode_result(p, s, &insn))) ||
	    (r = ptx_decode_address(p, s, &s->operands[at], &insn, &variable)) ||
	    (r = decode_operand(p, s, at + 1, &insn)))
		return r;
	return ptx_emit_memory(p, s, &insn, variable);
}

/* cp.async.mbarrier.arrive: when this thread's copies are done, which they are. Without .noinc it
 * adds the arrival that it makes. */
int ptx_decode_copy_arrive(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn insn = {.exec = exec_mbarrier, .op = {[1] = PTX_NO_ROW}};
	struct ptx_variable *variable;
	int r;

	insn.access.writes = true;
	insn.access.variant = ARRIVE;
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
