/* Shared by all decoders: modifiers, operands, constants, emission. */
#include "simcuda/ptx/decode/decode.h"

#include "simcuda/ptx/execute/warp.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define CONSTANT_BYTES_MAX (256u << 20)

int ptx_unknown(struct ptx_parser *p, const struct ptx_token *at, const char *format, ...)
{
	struct ptx_error *error = &p->function->error;
	va_list args;

	if (p->result)
		return p->result;
	if (error->message[0])
		return -ENOTSUP;
	error->line = at->line;
	va_start(args, format);
	vsnprintf(error->message, sizeof(error->message), format, args);
	va_end(args);
	return -ENOTSUP;
}

ptx_decoder *ptx_decoder_find(const struct ptx_token *opcode)
{
	static const struct {
		const char *name;
		ptx_decoder *decode;
	} opcodes[] = {
#define DECODER(name)
#define OPCODE(opcode, decoder) {#opcode, ptx_decode_##decoder},
#include "simcuda/ptx/decode/opcodes.def"
#undef OPCODE
#undef DECODER
	};

	for (size_t k = 0; k < sizeof(opcodes) / sizeof(opcodes[0]); k++)
		if (ptx_token_is(opcode, PTX_TOKEN_WORD, opcodes[k].name))
			return opcodes[k].decode;
	return NULL;
}

static void remove_modifier(struct ptx_statement *s, uint32_t k)
{
	s->n_modifiers--;
	memmove(&s->modifiers[k], &s->modifiers[k + 1],
		(s->n_modifiers - k) * sizeof(s->modifiers[0]));
}

bool ptx_take(struct ptx_statement *s, const char *modifier)
{
	for (uint32_t k = 0; k < s->n_modifiers; k++) {
		if (ptx_token_is(&s->modifiers[k], PTX_TOKEN_DOT, modifier)) {
			remove_modifier(s, k);
			return true;
		}
	}
	return false;
}

size_t ptx_take_one_of(struct ptx_statement *s, const char *const *words, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (ptx_take(s, words[k]))
			return k;
	return n;
}

enum ptx_type ptx_take_type(struct ptx_statement *s)
{
	for (uint32_t k = 0; k < s->n_modifiers; k++) {
		enum ptx_type type = ptx_type_find(&s->modifiers[k]);
		if (type != PTX_TYPES) {
			remove_modifier(s, k);
			return type;
		}
	}
	return PTX_TYPES;
}

int ptx_no_more(struct ptx_parser *p, struct ptx_statement *s)
{
	if (s->n_modifiers == 0)
		return 0;
	return ptx_unknown(p, &s->opcode, "unknown modifier .%.*s of %.*s",
			   PTX_SHOW(&s->modifiers[0]), PTX_SHOW(&s->opcode));
}

bool ptx_full_name(const struct ptx_statement *s, char *out, size_t room)
{
	size_t n = s->opcode.len;

	if (n >= room)
		return false;
	memcpy(out, s->opcode.text, n);
	for (uint32_t k = 0; k < s->n_modifiers; k++) {
		if (s->modifiers[k].len + 2 > room - n)
			return false;
		out[n++] = '_';
		memcpy(out + n, s->modifiers[k].text, s->modifiers[k].len);
		n += s->modifiers[k].len;
	}
	out[n] = '\0';
	return true;
}

const struct ptx_plain *ptx_plain_find(const char *name)
{
	const struct ptx_plain_table *const tables[] = {&ptx_alu_int, &ptx_alu_float,
							&ptx_alu_logic, &ptx_alu_half};

	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
		for (size_t k = 0; k < tables[t]->n; k++)
			if (tables[t]->rows[k].name[0] == name[0] &&
			    strcmp(tables[t]->rows[k].name, name) == 0)
				return &tables[t]->rows[k];
	return NULL;
}

int ptx_want(struct ptx_parser *p, struct ptx_statement *s, uint32_t least, uint32_t most)
{
	if (s->n >= least && s->n <= most)
		return 0;
	return ptx_fail_at(p, &s->opcode, "%.*s has %u operands", PTX_SHOW(&s->opcode), s->n);
}

static int bad_operand(struct ptx_parser *p, struct ptx_statement *s,
		       const struct ptx_operand *operand, const char *wanted)
{
	if (operand->kind == PTX_OPERAND_NAME)
		return ptx_fail_at(p, &operand->token, "%.*s is not declared",
				   PTX_SHOW(&operand->token));
	return ptx_fail_at(p, &s->opcode, "operand %.*s of %.*s is no %s",
			   PTX_SHOW(&operand->token), PTX_SHOW(&s->opcode), wanted);
}

uint32_t ptx_constant(struct ptx_parser *p, uint64_t bits, uint32_t bytes,
		      struct ptx_variable *variable)
{
	struct ptx_function *f = p->function;
	struct ptx_constant_key key;
	struct ptx_constant *constant;

	memset(&key, 0, sizeof(key));
	key.bits = bytes == 8 || !bytes ? bits : bits & ((1ULL << (8 * bytes)) - 1);
	key.bytes = bytes;
	key.variable = variable;
	HASH_FIND(hh, f->constant_table, &key, sizeof(key), constant);
	if (constant)
		return constant->offset | PTX_CONSTANTS;
	constant = ptx_arena_take(&p->names, sizeof(*constant));
	if (!constant || f->constant_bytes > CONSTANT_BYTES_MAX) {
		ptx_no_memory(p);
		return PTX_NO_ROW;
	}
	constant->key = key;
	constant->offset = f->constant_bytes;
	f->constant_bytes += bytes < 2 ? 64 : bytes * PTX_LANES;
	HASH_ADD(hh, f->constant_table, key, sizeof(key), constant);
	return constant->offset | PTX_CONSTANTS;
}

/* An address as an operand is a constant, except for extern .shared: the launch decides its offset.
 */
static int variable_source(struct ptx_parser *p, struct ptx_statement *s,
			   const struct ptx_operand *operand, enum ptx_type type, uint32_t *ref)
{
	struct ptx_variable *v = operand->symbol->variable;
	uint32_t bytes = ptx_types[type].bytes;

	if (v->space == PTX_SPACE_LOCAL || (v->dynamic && operand->addend) ||
	    (bytes != 8 &&
	     !(bytes == 4 && (v->space == PTX_SPACE_SHARED || v->space == PTX_SPACE_PARAM))))
		return ptx_unknown(p, &s->opcode, "the address of %.*s as an operand here",
				   PTX_SHOW(&operand->token));
	if (v->dynamic) {
		*ref = bytes == 8 ? PTX_SPECIAL_REF(dynamic_shared_wide)
				  : PTX_SPECIAL_REF(dynamic_shared);
		return p->result ? p->result : ptx_use(p, v, SIZE_MAX);
	}
	*ref = ptx_constant(p, (uint64_t)operand->addend, bytes, v);
	return p->result ? p->result : ptx_use(p, v, SIZE_MAX);
}

int ptx_source(struct ptx_parser *p, struct ptx_statement *s, const struct ptx_operand *operand,
	       enum ptx_type type, uint32_t *ref)
{
	static const enum ptx_token_kind literals[] = {
		[PTX_OPERAND_INTEGER] = PTX_TOKEN_INTEGER,
		[PTX_OPERAND_FLOAT] = PTX_TOKEN_FLOAT,
		[PTX_OPERAND_DOUBLE] = PTX_TOKEN_DOUBLE,
	};
	uint32_t bytes = ptx_types[type].bytes;
	uint64_t bits;

	if (operand->negated)
		return bad_operand(p, s, operand, "predicate");
	switch (operand->kind) {
	case PTX_OPERAND_REGISTER:
		if (operand->symbol->bytes != (bytes == 1 ? 2 : bytes))
			break;
		if (operand->symbol->row == PTX_NO_ROW)
			return ptx_unknown(p, &s->opcode, "%.*s as an operand here",
					   PTX_SHOW(&operand->token));
		*ref = operand->symbol->row;
		return 0;
	case PTX_OPERAND_INTEGER:
	case PTX_OPERAND_FLOAT:
	case PTX_OPERAND_DOUBLE:
		if (!ptx_literal(literals[operand->kind], operand->bits, type, &bits))
			break;
		*ref = ptx_constant(p, bits, bytes == 1 ? 2 : bytes, NULL);
		return p->result;
	case PTX_OPERAND_VARIABLE:
		return variable_source(p, s, operand, type, ref);
	case PTX_OPERAND_FUNCTION:
		if (bytes != 8)
			break;
		*ref = ptx_constant(p, (uintptr_t)operand->symbol->function, 8, NULL);
		return p->result;
	default:
		break;
	}
	char wanted[32];
	snprintf(wanted, sizeof(wanted), ".%s", ptx_types[type].name);
	return bad_operand(p, s, operand, wanted);
}

uint32_t ptx_sink(struct ptx_parser *p, uint32_t bytes)
{
	return ptx_new_row(p->function, bytes);
}

int ptx_destination(struct ptx_parser *p, struct ptx_statement *s,
		    const struct ptx_operand *operand, uint32_t bytes, uint32_t *ref)
{
	if (operand->kind == PTX_OPERAND_SINK) {
		*ref = ptx_sink(p, bytes);
		return 0;
	}
	if (operand->kind != PTX_OPERAND_REGISTER || operand->negated ||
	    operand->symbol->kind != PTX_SYMBOL_REGISTER || operand->symbol->bytes != bytes) {
		char wanted[32];
		snprintf(wanted, sizeof(wanted), "register of %u bits", bytes * 8);
		return bad_operand(p, s, operand, bytes ? wanted : "predicate");
	}
	*ref = operand->symbol->row;
	return 0;
}

int ptx_predicate(struct ptx_parser *p, struct ptx_statement *s, const struct ptx_operand *operand,
		  uint32_t *ref, bool *negated)
{
	if (operand->negated && !negated)
		return bad_operand(p, s, operand, "plain predicate");
	if (negated)
		*negated = operand->negated;
	if (operand->kind == PTX_OPERAND_INTEGER) {
		*ref = ptx_constant(p, operand->bits ? UINT32_MAX : 0, 0, NULL);
		return p->result;
	}
	if (operand->kind != PTX_OPERAND_REGISTER || operand->symbol->kind != PTX_SYMBOL_REGISTER ||
	    operand->symbol->bytes != 0)
		return bad_operand(p, s, operand, "predicate");
	*ref = operand->symbol->row;
	return 0;
}

int ptx_emit(struct ptx_parser *p, const struct ptx_statement *s, const struct ptx_insn *insn)
{
	struct ptx_module *module = p->module;

	if (p->result)
		return p->result;
	if (module->n_code == module->code_room) {
		size_t room = module->code_room ? 2 * module->code_room : 1024;
		struct ptx_insn *more =
			room < UINT32_MAX / 2 ? realloc(module->code, room * sizeof(*more)) : NULL;
		if (!more)
			return ptx_no_memory(p);
		module->code = more;
		module->code_room = room;
	}
	struct ptx_insn *out = &module->code[module->n_code++];
	*out = *insn;
	out->function = p->function;
	out->guard = s ? s->guard : PTX_NO_ROW;
	out->guard_negated = s && s->guard_negated;
	if (s)
		out->line = s->opcode.line;
	return 0;
}

int ptx_emit_memory(struct ptx_parser *p, const struct ptx_statement *s,
		    const struct ptx_insn *insn, struct ptx_variable *variable)
{
	int r = ptx_emit(p, s, insn);

	return r || !variable ? r : ptx_use(p, variable, p->module->n_code - 1);
}

int ptx_use(struct ptx_parser *p, struct ptx_variable *variable, size_t insn)
{
	struct ptx_use *use;

	if (variable->space == PTX_SPACE_LOCAL || variable->space == PTX_SPACE_PARAM)
		return 0;
	use = ptx_arena_take(&p->names, sizeof(*use));
	if (!use)
		return ptx_no_memory(p);
	use->variable = variable;
	use->insn = insn;
	use->next = p->function->uses;
	p->function->uses = use;
	return 0;
}

int ptx_pend(struct ptx_parser *p, const struct ptx_token *name, bool is_list)
{
	struct ptx_pending *pending = ptx_arena_take(&p->local, sizeof(*pending));

	if (!pending)
		return ptx_no_memory(p);
	*pending = (struct ptx_pending){.name = *name,
					.scope = p->scope,
					.insn = p->module->n_code - 1,
					.is_list = is_list,
					.next = p->pending};
	p->pending = pending;
	return 0;
}
