/* Decoders of cvt and mov. */
#include "simcuda/ptx/decode/decode.h"

#include "simcuda/ptx/execute/executors.h"
#include "simcuda/ptx/execute/warp.h"

#define NAME_MAX_    64
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const integral_rounds[] = {
	[PTX_RN] = "rni", [PTX_RZ] = "rzi", [PTX_RM] = "rmi", [PTX_RP] = "rpi"};

static int take_conversion(struct ptx_parser *p, struct ptx_statement *s, struct ptx_convert *c)
{
	enum ptx_type from, to;
	int r = ptx_take_last_type(p, s, &from);

	if (r || (r = ptx_take_last_type(p, s, &to)))
		return r;
	size_t round = ptx_take_one_of(s, ptx_rounds, PTX_ROUNDS);
	size_t integral = ptx_take_one_of(s, integral_rounds, COUNT(integral_rounds));
	bool float_from = ptx_types[from].class == PTX_FLOAT;
	bool float_to = ptx_types[to].class == PTX_FLOAT || to == PTX_tf32;
	*c = (struct ptx_convert){.to = to, .from = from};
	c->to_integral = integral < COUNT(integral_rounds);
	c->round = c->to_integral       ? (uint8_t)integral
		   : round < PTX_ROUNDS ? (uint8_t)round
					: PTX_RN;
	c->ftz = ptx_take(s, "ftz");
	c->sat = ptx_take(s, "sat");
	c->relu = ptx_take(s, "relu");
	bool integer_from =
		ptx_types[from].class == PTX_SIGNED || ptx_types[from].class == PTX_UNSIGNED;
	bool integer_to = ptx_types[to].class == PTX_SIGNED || ptx_types[to].class == PTX_UNSIGNED;
	bool half_pair = from == PTX_f16x2 || to == PTX_f16x2 || from == PTX_bf16x2 ||
			 to == PTX_bf16x2 || from == PTX_u16x2 || from == PTX_s16x2 ||
			 to == PTX_u16x2 || to == PTX_s16x2;
	if (half_pair || !(float_from || integer_from) || !(float_to || integer_to))
		return ptx_unknown(p, &s->opcode, "cvt.%s.%s", ptx_types[to].name,
				   ptx_types[from].name);
	/* A float to an integer has to say how; nearest away from zero is for tf32 alone. */
	if ((float_from && integer_to && !c->to_integral) ||
	    (c->round == PTX_RNA && to != PTX_tf32) || (to == PTX_tf32 && from != PTX_f32) ||
	    (c->relu && integer_to))
		return ptx_unknown(p, &s->opcode, "this rounding of cvt.%s.%s", ptx_types[to].name,
				   ptx_types[from].name);
	return ptx_no_more(p, s);
}

/* Two floats to a pair of halves: cvt.rn.f16x2.f32 d, high, low. */
static int decode_cvt_pair(struct ptx_parser *p, struct ptx_statement *s)
{
	static const char *const pairs[] = {"f16x2", "bf16x2"};
	struct ptx_insn insn = {.exec = ptx_exec_convert};
	size_t kind = ptx_take_one_of(s, pairs, COUNT(pairs));
	size_t round = ptx_take_one_of(s, ptx_rounds, 2);
	int r;

	insn.convert.relu = ptx_take(s, "relu");
	insn.convert.sat = ptx_take(s, "satfinite");
	if (kind == COUNT(pairs) || round == 2 || !ptx_take(s, "f32") || insn.convert.sat)
		return ptx_unknown(p, &s->opcode, "this cvt of a pair");
	if ((r = ptx_no_more(p, s)))
		return r;
	insn.convert.round = (uint8_t)round;
	insn.convert.from = PTX_f32;
	insn.convert.to = kind == 0 ? PTX_f16x2 : PTX_bf16x2;
	if ((r = ptx_source(p, s, &s->operands[1], PTX_f32, &insn.op[1])) ||
	    (r = ptx_source(p, s, &s->operands[2], PTX_f32, &insn.op[2])) ||
	    (r = ptx_destination(p, s, &s->operands[0], 4, &insn.op[0])))
		return r;
	return ptx_emit(p, s, &insn);
}

/* cvt's registers may be wider than its types. */
static int convert_operands(struct ptx_parser *p, struct ptx_statement *s, struct ptx_insn *insn)
{
	struct ptx_convert *c = &insn->convert;
	const struct ptx_operand *to = &s->operands[0], *from = &s->operands[1];
	uint8_t least = ptx_types[c->to].bytes == 1 ? 2 : ptx_types[c->to].bytes;
	int r;

	c->to_row = to->kind == PTX_OPERAND_REGISTER && to->symbol->bytes > least
			    ? (uint8_t)to->symbol->bytes
			    : least;
	r = ptx_destination(p, s, to, c->to_row, &insn->op[0]);
	if (r)
		return r;
	least = ptx_types[c->from].bytes == 1 ? 2 : ptx_types[c->from].bytes;
	c->from_row = from->kind == PTX_OPERAND_REGISTER && from->symbol->bytes > least
			      ? (uint8_t)from->symbol->bytes
			      : least;
	if (c->from_row == least)
		return ptx_source(p, s, from, c->from, &insn->op[1]);
	if (from->negated)
		return ptx_fail_at(p, &s->opcode, "a negated register");
	insn->op[1] = from->symbol->row;
	return 0;
}

int ptx_decode_cvt(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn insn = {.exec = ptx_exec_convert};
	const struct ptx_plain *plain;
	char name[NAME_MAX_];
	bool named = ptx_full_name(s, name, sizeof(name));
	int r;

	if (s->n == 3)
		return decode_cvt_pair(p, s);
	if ((r = ptx_want(p, s, 2, 2)) || (r = take_conversion(p, s, &insn.convert)) ||
	    (r = convert_operands(p, s, &insn)))
		return r;
	/* The frequent ones have a loop of their own. */
	plain = named ? ptx_plain_find(name) : NULL;
	if (plain && plain->bytes[0] == insn.convert.to_row &&
	    plain->bytes[1] == insn.convert.from_row)
		insn.exec = plain->exec;
	return ptx_emit(p, s, &insn);
}

/* mov.b32 {a, b}, c and its like; `_` is no element of a source. */
static int decode_unpack(struct ptx_parser *p, struct ptx_statement *s, enum ptx_type type)
{
	struct ptx_insn insn = {.exec = ptx_exec_unpack};
	const struct ptx_operand *vector = &s->operands[0];
	uint32_t bytes = ptx_types[type].bytes;
	int r = ptx_source(p, s, &s->operands[1], type, &insn.op[0]);

	insn.access.row_bytes = (uint8_t)bytes;
	insn.access.count = (uint8_t)vector->n_elements;
	insn.access.bytes = (uint8_t)(bytes / vector->n_elements);
	for (uint32_t k = 0; !r && k < vector->n_elements; k++)
		r = ptx_destination(p, s, &vector->elements[k],
				    insn.access.bytes == 1 ? 2 : insn.access.bytes,
				    &insn.op[k + 1]);
	return r ? r : ptx_emit(p, s, &insn);
}

static int decode_pack(struct ptx_parser *p, struct ptx_statement *s, enum ptx_type type)
{
	struct ptx_insn insn = {.exec = ptx_exec_pack};
	const struct ptx_operand *vector = &s->operands[1];
	uint32_t bytes = ptx_types[type].bytes;
	int r = ptx_destination(p, s, &s->operands[0], bytes, &insn.op[0]);

	insn.access.row_bytes = (uint8_t)bytes;
	insn.access.count = (uint8_t)vector->n_elements;
	insn.access.bytes = (uint8_t)(bytes / vector->n_elements);
	enum ptx_type element = insn.access.bytes == 4   ? PTX_b32
				: insn.access.bytes == 2 ? PTX_b16
							 : PTX_b8;
	for (uint32_t k = 0; !r && k < vector->n_elements; k++)
		r = ptx_source(p, s, &vector->elements[k], element, &insn.op[k + 1]);
	return r ? r : ptx_emit(p, s, &insn);
}

static bool splits(const struct ptx_operand *vector, enum ptx_type type)
{
	uint32_t n = vector->n_elements, bytes = ptx_types[type].bytes;

	return ptx_types[type].class == PTX_BITS && (n == 2 || n == 4) && bytes / n >= 1 &&
	       bytes <= 8;
}

/* The address of a variable in the frame, which differs from lane to lane and call to call. */
static int decode_frame_address(struct ptx_parser *p, struct ptx_statement *s, enum ptx_type type)
{
	struct ptx_insn insn = {.exec = ptx_exec_frame_address};
	uint32_t bytes = ptx_types[type].bytes;
	int r = ptx_destination(p, s, &s->operands[0], bytes, &insn.op[0]);

	if (!r && bytes < 4)
		return ptx_fail_at(p, &s->opcode, "an address in a register of 16 bits");
	insn.access.row_bytes = (uint8_t)bytes;
	insn.imm = (int64_t)s->operands[1].symbol->variable->offset + s->operands[1].addend;
	return r ? r : ptx_emit(p, s, &insn);
}

/* Clocks are no rows: each reading differs. */
static int decode_clock(struct ptx_parser *p, struct ptx_statement *s, enum ptx_type type,
			const struct ptx_symbol *special)
{
	struct ptx_insn insn = {.exec = ptx_exec_clock};
	uint32_t bytes = ptx_types[type].bytes;

	if (bytes != special->bytes)
		return ptx_fail_at(p, &s->opcode, "this special register has another width");
	insn.imm = (int64_t)special->count;
	insn.access.row_bytes = (uint8_t)bytes;
	int r = ptx_destination(p, s, &s->operands[0], bytes, &insn.op[0]);
	return r ? r : ptx_emit(p, s, &insn);
}

/* A special register may be read into a register of another width. */
static int decode_special(struct ptx_parser *p, struct ptx_statement *s, enum ptx_type type,
			  const struct ptx_symbol *special)
{
	struct ptx_insn insn = {.exec = ptx_exec_convert};
	uint8_t bytes = ptx_types[type].bytes;

	if (bytes < 2 || bytes > 8)
		return ptx_unknown(p, &s->opcode, "a special register in %u bits", bytes * 8u);
	insn.convert.from = special->bytes == 8 ? PTX_u64 : PTX_u32;
	insn.convert.from_row = (uint8_t)special->bytes;
	insn.convert.to = bytes == 8 ? PTX_u64 : bytes == 4 ? PTX_u32 : PTX_u16;
	insn.convert.to_row = bytes;
	insn.op[1] = special->row;
	int r = ptx_destination(p, s, &s->operands[0], bytes, &insn.op[0]);
	return r ? r : ptx_emit(p, s, &insn);
}

int ptx_decode_mov(struct ptx_parser *p, struct ptx_statement *s)
{
	enum ptx_type type = ptx_last_type(s);
	int r = ptx_want(p, s, 2, 2);

	if (r)
		return r;
	if (type == PTX_TYPES || s->n_modifiers != 1)
		return ptx_unknown(p, &s->opcode, "this form of mov");
	const struct ptx_operand *to = &s->operands[0], *from = &s->operands[1];
	if (to->kind == PTX_OPERAND_VECTOR && splits(to, type))
		return decode_unpack(p, s, type);
	if (from->kind == PTX_OPERAND_VECTOR && splits(from, type))
		return decode_pack(p, s, type);
	if (to->kind == PTX_OPERAND_VECTOR || from->kind == PTX_OPERAND_VECTOR)
		return ptx_unknown(p, &s->opcode, "this form of mov");
	if (from->kind == PTX_OPERAND_VARIABLE && from->symbol->variable->space == PTX_SPACE_LOCAL)
		return decode_frame_address(p, s, type);
	if (from->kind == PTX_OPERAND_REGISTER && from->symbol->kind == PTX_SYMBOL_SPECIAL &&
	    from->symbol->row == PTX_NO_ROW)
		return decode_clock(p, s, type, from->symbol);
	if (from->kind == PTX_OPERAND_REGISTER && from->symbol->kind == PTX_SYMBOL_SPECIAL &&
	    from->symbol->bytes != ptx_types[type].bytes)
		return decode_special(p, s, type, from->symbol);
	return ptx_decode_plain(p, s);
}
