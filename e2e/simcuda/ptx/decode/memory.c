/* Decoders of ld, st, atom and red. */
#include "simcuda/ptx/decode/decode.h"

#include "simcuda/ptx/execute/executors.h"
#include "simcuda/ptx/execute/warp.h"

#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	const char *word;
	enum ptx_space space;
} spaces[] = {
	{"global", PTX_SPACE_GLOBAL},      {"shared", PTX_SPACE_SHARED},
	{"shared::cta", PTX_SPACE_SHARED}, {"shared::cluster", PTX_SPACE_SHARED},
	{"const", PTX_SPACE_CONST},        {"local", PTX_SPACE_LOCAL},
	{"param", PTX_SPACE_PARAM},        {"param::entry", PTX_SPACE_PARAM},
	{"param::func", PTX_SPACE_PARAM},
};

enum ptx_space ptx_take_space(struct ptx_statement *s)
{
	for (size_t k = 0; k < COUNT(spaces); k++)
		if (ptx_take(s, spaces[k].word))
			return spaces[k].space;
	return PTX_SPACE_GENERIC;
}

static const char *const scopes[] = {"cta", "cluster", "gpu", "sys"};

/* Modifiers that only affect caches or other GPUs. */
static bool is_cache_hint(const struct ptx_token *word)
{
	static const char *const words[] = {"ca", "cg",   "cs",      "lu",       "cv",   "wb", "wt",
					    "nc", "weak", "relaxed", "volatile", "mmio", "uni"};

	for (size_t k = 0; k < COUNT(words); k++)
		if (ptx_token_is(word, PTX_TOKEN_DOT, words[k]))
			return true;
	return word->len > 4 &&
	       (memcmp(word->text, "L1::", 4) == 0 || memcmp(word->text, "L2::", 4) == 0);
}

/* True: an operand with a cache policy follows. */
bool ptx_drop_cache_hints(struct ptx_statement *s)
{
	bool policy = false;

	for (uint32_t k = 0; k < s->n_modifiers;) {
		if (!is_cache_hint(&s->modifiers[k])) {
			k++;
			continue;
		}
		policy |= ptx_token_is(&s->modifiers[k], PTX_TOKEN_DOT, "L2::cache_hint");
		memmove(&s->modifiers[k], &s->modifiers[k + 1],
			(--s->n_modifiers - k) * sizeof(s->modifiers[0]));
	}
	return policy;
}

static uint8_t take_order(struct ptx_statement *s, uint8_t otherwise)
{
	static const char *const words[] = {"relaxed", "acquire", "release", "acq_rel"};
	static const uint8_t orders[] = {PTX_WEAK, PTX_ACQUIRE, PTX_RELEASE, PTX_ACQ_REL};
	size_t k = ptx_take_one_of(s, words, COUNT(words));

	ptx_take_one_of(s, scopes, COUNT(scopes));
	return k < COUNT(words) ? orders[k] : otherwise;
}

static bool same_space(enum ptx_space asked, enum ptx_space has)
{
	/* A function's parameters, and arguments of a call, are in its frame. */
	return asked == PTX_SPACE_GENERIC || asked == has ||
	       (asked == PTX_SPACE_PARAM && has == PTX_SPACE_LOCAL);
}

static int variable_address(struct ptx_parser *p, const struct ptx_operand *operand,
			    struct ptx_insn *insn, struct ptx_variable **variable)
{
	struct ptx_variable *v = operand->symbol->variable;

	if (!same_space(insn->access.space, v->space))
		return ptx_fail_at(p, &operand->token, "%s is in another state space", v->name);
	insn->access.space = v->space;
	if (v->dynamic) {
		insn->op[0] = PTX_SPECIAL_REF(dynamic_shared);
		return ptx_use(p, v, SIZE_MAX);
	}
	if (v->space == PTX_SPACE_LOCAL || v->space == PTX_SPACE_PARAM)
		insn->imm += (int64_t)v->offset;
	insn->access.in_frame = v->space == PTX_SPACE_LOCAL;
	*variable = v;
	return 0;
}

int ptx_decode_address(struct ptx_parser *p, struct ptx_statement *s,
		       const struct ptx_operand *operand, struct ptx_insn *insn,
		       struct ptx_variable **variable)
{
	*variable = NULL;
	if (operand->n_elements)
		return ptx_unknown(p, &s->opcode, "coordinates of %.*s", PTX_SHOW(&s->opcode));
	if (operand->kind != PTX_OPERAND_ADDRESS)
		return ptx_fail_at(p, &s->opcode, "operand %.*s of %.*s is no address",
				   PTX_SHOW(&operand->token), PTX_SHOW(&s->opcode));
	insn->op[0] = PTX_NO_ROW;
	insn->imm = operand->addend;
	if (!operand->symbol)
		return 0;
	if (operand->symbol->kind == PTX_SYMBOL_VARIABLE)
		return variable_address(p, operand, insn, variable);
	if (operand->symbol->bytes != 4 && operand->symbol->bytes != 8)
		return ptx_fail_at(p, &operand->token, "an address of %u bits",
				   operand->symbol->bytes * 8);
	insn->op[0] = operand->symbol->row;
	insn->access.address_wide = operand->symbol->bytes == 8;
	/* A function's parameters are in its frame; `mov` takes their addresses. */
	if (insn->access.space == PTX_SPACE_PARAM && !p->function->is_kernel)
		insn->access.space = PTX_SPACE_LOCAL;
	return 0;
}

/* .v4.f32 and the operand with as many registers. */
static int take_elements(struct ptx_parser *p, struct ptx_statement *s, enum ptx_type *type,
			 struct ptx_access *access)
{
	static const char *const vectors[] = {"v2", "v4", "v8"};
	static const uint8_t counts[] = {2, 4, 8, 1};

	access->count = counts[ptx_take_one_of(s, vectors, COUNT(vectors))];
	*type = ptx_take_type(s);
	if (*type == PTX_TYPES || *type == PTX_pred || ptx_types[*type].bytes > 8)
		return ptx_unknown(p, &s->opcode, "%.*s of this type", PTX_SHOW(&s->opcode));
	access->bytes = ptx_types[*type].bytes;
	access->sign = ptx_types[*type].class == PTX_SIGNED;
	return ptx_no_more(p, s);
}

/* The registers may be wider than what is moved. */
static int element_operands(struct ptx_parser *p, struct ptx_statement *s,
			    const struct ptx_operand *operand, enum ptx_type type,
			    struct ptx_insn *insn, bool is_load)
{
	const struct ptx_operand *elements = operand;
	uint8_t count = insn->access.count;
	uint32_t least = insn->access.bytes == 1 ? 2 : insn->access.bytes, row = least;

	if (operand->kind == PTX_OPERAND_VECTOR)
		elements = operand->elements;
	if ((operand->kind == PTX_OPERAND_VECTOR ? operand->n_elements : 1) != count)
		return ptx_fail_at(p, &s->opcode, "%.*s of %u elements needs as many registers",
				   PTX_SHOW(&s->opcode), count);
	for (uint32_t k = 0; k < count; k++)
		if (elements[k].kind == PTX_OPERAND_REGISTER && elements[k].symbol->bytes > row)
			row = elements[k].symbol->bytes;
	insn->access.row_bytes = (uint8_t)row;
	if (row > 8)
		return ptx_unknown(p, &s->opcode, "registers of 128 bits");
	for (uint32_t k = 0; k < count; k++) {
		enum ptx_type wide = row == least ? type : row == 8 ? PTX_b64 : PTX_b32;
		int r = is_load ? ptx_destination(p, s, &elements[k], row, &insn->op[k + 1])
				: ptx_source(p, s, &elements[k], wide, &insn->op[k + 1]);
		if (r)
			return r;
	}
	return 0;
}

static int take_policy(struct ptx_parser *p, struct ptx_statement *s, uint32_t operands)
{
	bool policy = ptx_drop_cache_hints(s);

	return ptx_want(p, s, operands + policy, operands + policy);
}

int ptx_decode_ld(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn insn = {.exec = ptx_exec_load};
	struct ptx_variable *variable;
	enum ptx_type type;
	int r;

	insn.access.order = take_order(s, PTX_WEAK);
	insn.access.space = ptx_take_space(s);
	if ((r = take_policy(p, s, 2)) || (r = take_elements(p, s, &type, &insn.access)) ||
	    (r = ptx_decode_address(p, s, &s->operands[1], &insn, &variable)) ||
	    (r = element_operands(p, s, &s->operands[0], type, &insn, true)))
		return r;
	if (insn.access.space == PTX_SPACE_PARAM && insn.op[0] == PTX_NO_ROW)
		insn.exec = ptx_exec_load_param;
	return ptx_emit_memory(p, s, &insn, variable);
}

int ptx_decode_st(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn insn = {.exec = ptx_exec_store, .access = {.writes = true}};
	struct ptx_variable *variable;
	enum ptx_type type;
	int r;

	insn.access.order = take_order(s, PTX_WEAK);
	insn.access.space = ptx_take_space(s);
	if ((r = take_policy(p, s, 2)) || (r = take_elements(p, s, &type, &insn.access)) ||
	    (r = ptx_decode_address(p, s, &s->operands[0], &insn, &variable)) ||
	    (r = element_operands(p, s, &s->operands[1], type, &insn, false)))
		return r;
	if (insn.access.space == PTX_SPACE_PARAM || insn.access.space == PTX_SPACE_CONST)
		return ptx_fail_at(p, &s->opcode, "a store to memory that is read only");
	return ptx_emit_memory(p, s, &insn, variable);
}

/* op: address, destination, b, c. */
static int decode_atomic(struct ptx_parser *p, struct ptx_statement *s, bool has_result)
{
	struct ptx_insn insn = {.op = {[1] = PTX_NO_ROW}, .access = {.writes = true}};
	struct ptx_variable *variable;
	char name[32] = "";
	enum ptx_type type;
	uint32_t at = has_result;
	int r;

	insn.access.order = take_order(s, PTX_WEAK);
	insn.access.space = ptx_take_space(s);
	ptx_take(s, "noftz");
	bool policy = ptx_drop_cache_hints(s);
	type = ptx_take_type(s);
	if (type != PTX_TYPES && s->n_modifiers == 1 && s->modifiers[0].len < 16)
		snprintf(name, sizeof(name), "%.*s_%s", PTX_SHOW(&s->modifiers[0]),
			 ptx_types[type].name);
	insn.exec = ptx_atomic_find(name);
	if (!insn.exec)
		return ptx_unknown(p, &s->opcode, "unknown modifiers of %.*s",
				   PTX_SHOW(&s->opcode));
	bool swap = strncmp(name, "cas", 3) == 0;
	if ((r = ptx_want(p, s, at + 2 + swap + policy, at + 2 + swap + policy)))
		return r;
	insn.access.bytes = ptx_types[type].bytes;
	insn.access.count = 1;
	if ((r = ptx_decode_address(p, s, &s->operands[at], &insn, &variable)) ||
	    (r = ptx_source(p, s, &s->operands[at + 1], type, &insn.op[2])))
		return r;
	if (swap && (r = ptx_source(p, s, &s->operands[at + 2], type, &insn.op[3])))
		return r;
	if (has_result && s->operands[0].kind != PTX_OPERAND_SINK &&
	    (r = ptx_destination(p, s, &s->operands[0], insn.access.bytes, &insn.op[1])))
		return r;
	if (insn.access.space != PTX_SPACE_GENERIC && insn.access.space != PTX_SPACE_GLOBAL &&
	    insn.access.space != PTX_SPACE_SHARED)
		return ptx_fail_at(p, &s->opcode, "an atomic operation in this state space");
	return ptx_emit_memory(p, s, &insn, variable);
}

int ptx_decode_atom(struct ptx_parser *p, struct ptx_statement *s)
{
	return decode_atomic(p, s, true);
}

int ptx_decode_red(struct ptx_parser *p, struct ptx_statement *s)
{
	return decode_atomic(p, s, false);
}
