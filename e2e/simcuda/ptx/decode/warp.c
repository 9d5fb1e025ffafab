/* Decoders of instructions for which the lanes of a warp synchronise. */
#include "simcuda/ptx/decode/decode.h"

#include "simcuda/ptx/execute/executors.h"
#include "simcuda/ptx/execute/sync.h"
#include "simcuda/ptx/execute/warp.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int take_sync(struct ptx_parser *p, struct ptx_statement *s)
{
	if (ptx_take(s, "sync"))
		return 0;
	return ptx_unknown(p, &s->opcode, "%.*s without .sync", PTX_SHOW(&s->opcode));
}

int ptx_decode_shfl(struct ptx_parser *p, struct ptx_statement *s)
{
	static const char *const modes[] = {"up", "down", "bfly", "idx"};
	static const uint8_t variants[] = {PTX_SHFL_UP, PTX_SHFL_DOWN, PTX_SHFL_BFLY, PTX_SHFL_IDX};
	struct ptx_insn insn = {.exec = ptx_exec_sync, .sync = {.kind = PTX_SYNC_SHFL}};
	size_t mode = ptx_take_one_of(s, modes, COUNT(modes));
	int r = take_sync(p, s);

	if (r)
		return r;
	if (mode == COUNT(modes) || !ptx_take(s, "b32"))
		return ptx_unknown(p, &s->opcode, "this form of shfl");
	insn.sync.variant = variants[mode];
	insn.op[PTX_SYNC_SECOND] = PTX_NO_ROW;
	if ((r = ptx_no_more(p, s)) || (r = ptx_want(p, s, 5, 5)) ||
	    (r = ptx_destination(p, s, &s->operands[0], 4, &insn.op[PTX_SYNC_RESULT])) ||
	    (r = ptx_source(p, s, &s->operands[1], PTX_b32, &insn.op[PTX_SYNC_A])) ||
	    (r = ptx_source(p, s, &s->operands[2], PTX_b32, &insn.op[PTX_SYNC_B])) ||
	    (r = ptx_source(p, s, &s->operands[3], PTX_b32, &insn.op[PTX_SYNC_C])) ||
	    (r = ptx_source(p, s, &s->operands[4], PTX_b32, &insn.op[PTX_SYNC_MEMBERS])))
		return r;
	if (s->operands[0].also &&
	    (r = ptx_destination(p, s, s->operands[0].also, 0, &insn.op[PTX_SYNC_SECOND])))
		return r;
	return ptx_emit(p, s, &insn);
}

int ptx_decode_vote(struct ptx_parser *p, struct ptx_statement *s)
{
	static const char *const modes[] = {"all", "any", "uni", "ballot"};
	static const uint8_t variants[] = {PTX_VOTE_ALL, PTX_VOTE_ANY, PTX_VOTE_UNI,
					   PTX_VOTE_BALLOT};
	struct ptx_insn insn = {.exec = ptx_exec_sync, .sync = {.kind = PTX_SYNC_VOTE}};
	size_t mode = ptx_take_one_of(s, modes, COUNT(modes));
	bool negated;
	int r = take_sync(p, s);

	if (r)
		return r;
	if (mode == COUNT(modes) || !ptx_take(s, mode == 3 ? "b32" : "pred"))
		return ptx_unknown(p, &s->opcode, "this form of vote");
	insn.sync.variant = variants[mode];
	if ((r = ptx_no_more(p, s)) || (r = ptx_want(p, s, 3, 3)) ||
	    (r = ptx_destination(p, s, &s->operands[0], mode == 3 ? 4 : 0,
				 &insn.op[PTX_SYNC_RESULT])) ||
	    (r = ptx_predicate(p, s, &s->operands[1], &insn.op[PTX_SYNC_A], &negated)) ||
	    (r = ptx_source(p, s, &s->operands[2], PTX_b32, &insn.op[PTX_SYNC_MEMBERS])))
		return r;
	insn.sync.negated = negated;
	return ptx_emit(p, s, &insn);
}

int ptx_decode_match(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn insn = {.exec = ptx_exec_sync, .sync = {.kind = PTX_SYNC_MATCH}};
	bool any = ptx_take(s, "any"), all = ptx_take(s, "all"), wide = ptx_take(s, "b64");
	int r = take_sync(p, s);

	if (r)
		return r;
	if (any == all || (!wide && !ptx_take(s, "b32")))
		return ptx_unknown(p, &s->opcode, "this form of match");
	insn.sync.variant = any ? PTX_MATCH_ANY : PTX_MATCH_ALL;
	insn.sync.count = wide;
	insn.op[PTX_SYNC_SECOND] = PTX_NO_ROW;
	if ((r = ptx_no_more(p, s)) || (r = ptx_want(p, s, 3, 3)) ||
	    (r = ptx_destination(p, s, &s->operands[0], 4, &insn.op[PTX_SYNC_RESULT])) ||
	    (r = ptx_source(p, s, &s->operands[1], wide ? PTX_b64 : PTX_b32,
			    &insn.op[PTX_SYNC_A])) ||
	    (r = ptx_source(p, s, &s->operands[2], PTX_b32, &insn.op[PTX_SYNC_MEMBERS])))
		return r;
	if (s->operands[0].also &&
	    (r = ptx_destination(p, s, s->operands[0].also, 0, &insn.op[PTX_SYNC_SECOND])))
		return r;
	return ptx_emit(p, s, &insn);
}

int ptx_decode_redux(struct ptx_parser *p, struct ptx_statement *s)
{
	static const struct {
		const char *operation, *type;
		uint8_t variant;
	} forms[] = {
		{"add", "u32", PTX_REDUX_ADD},   {"add", "s32", PTX_REDUX_ADD},
		{"min", "u32", PTX_REDUX_MIN_U}, {"min", "s32", PTX_REDUX_MIN_S},
		{"max", "u32", PTX_REDUX_MAX_U}, {"max", "s32", PTX_REDUX_MAX_S},
		{"and", "b32", PTX_REDUX_AND},   {"or", "b32", PTX_REDUX_OR},
		{"xor", "b32", PTX_REDUX_XOR},
	};
	struct ptx_insn insn = {.exec = ptx_exec_sync, .sync = {.kind = PTX_SYNC_REDUX}};
	int r = take_sync(p, s);
	size_t k;

	for (k = 0; !r && k < COUNT(forms); k++)
		if (s->n_modifiers == 2 &&
		    ptx_token_is(&s->modifiers[0], PTX_TOKEN_DOT, forms[k].operation) &&
		    ptx_token_is(&s->modifiers[1], PTX_TOKEN_DOT, forms[k].type))
			break;
	if (r)
		return r;
	if (k == COUNT(forms))
		return ptx_unknown(p, &s->opcode, "this form of redux");
	insn.sync.variant = forms[k].variant;
	if ((r = ptx_want(p, s, 3, 3)) ||
	    (r = ptx_destination(p, s, &s->operands[0], 4, &insn.op[PTX_SYNC_RESULT])) ||
	    (r = ptx_source(p, s, &s->operands[1], PTX_b32, &insn.op[PTX_SYNC_A])) ||
	    (r = ptx_source(p, s, &s->operands[2], PTX_b32, &insn.op[PTX_SYNC_MEMBERS])))
		return r;
	return ptx_emit(p, s, &insn);
}

int ptx_decode_elect(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn insn = {.exec = ptx_exec_sync, .sync = {.kind = PTX_SYNC_ELECT}};
	int r = take_sync(p, s);

	if (r || (r = ptx_no_more(p, s)) || (r = ptx_want(p, s, 2, 2)))
		return r;
	if (!s->operands[0].also)
		return ptx_fail_at(p, &s->opcode, "elect.sync without a predicate");
	if ((r = ptx_destination(p, s, &s->operands[0], 4, &insn.op[PTX_SYNC_RESULT])) ||
	    (r = ptx_destination(p, s, s->operands[0].also, 0, &insn.op[PTX_SYNC_SECOND])) ||
	    (r = ptx_source(p, s, &s->operands[1], PTX_b32, &insn.op[PTX_SYNC_MEMBERS])))
		return r;
	return ptx_emit(p, s, &insn);
}

int ptx_decode_activemask(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn insn = {.exec = ptx_exec_activemask};
	int r;

	ptx_take(s, "b32");
	if ((r = ptx_no_more(p, s)) || (r = ptx_want(p, s, 1, 1)) ||
	    (r = ptx_destination(p, s, &s->operands[0], 4, &insn.op[0])))
		return r;
	return ptx_emit(p, s, &insn);
}

int ptx_decode_nanosleep(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn insn = {.exec = ptx_exec_pause};
	int r;

	ptx_take(s, "u32");
	if ((r = ptx_no_more(p, s)) || (r = ptx_want(p, s, 1, 1)) ||
	    (r = ptx_source(p, s, &s->operands[0], PTX_u32, &insn.op[0])))
		return r;
	return ptx_emit(p, s, &insn);
}
