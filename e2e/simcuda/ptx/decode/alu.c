/* Decoders of instructions that compute from registers to registers. */
#include "simcuda/ptx/decode/decode.h"

#include "simcuda/ptx/execute/executors.h"
#include "simcuda/ptx/execute/warp.h"

#include <stdio.h>

#define NAME_MAX_ 64

const char *const ptx_rounds[PTX_ROUNDS] = {
	[PTX_RN] = "rn", [PTX_RZ] = "rz", [PTX_RM] = "rm", [PTX_RP] = "rp", [PTX_RNA] = "rna"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_floating(enum ptx_type type)
{
	return ptx_types[type].class == PTX_FLOAT || type == PTX_f16x2 || type == PTX_bf16x2;
}

/* The last type names the operands: mul.wide.u32, dp4a.u32.s32. */
enum ptx_type ptx_last_type(const struct ptx_statement *s)
{
	for (uint32_t k = s->n_modifiers; k > 0; k--) {
		enum ptx_type type = ptx_type_find(&s->modifiers[k - 1]);
		if (type != PTX_TYPES)
			return type;
	}
	return PTX_TYPES;
}

/* Takes rounding, .ftz and .sat off a floating-point instruction. */
static int take_mode(struct ptx_parser *p, struct ptx_statement *s, enum ptx_type type,
		     struct ptx_float_mode *mode)
{
	size_t round = ptx_take_one_of(s, ptx_rounds, 4);

	*mode = (struct ptx_float_mode){.type = type,
					.round = round == 4 ? PTX_RN : (uint8_t)round};
	mode->ftz = ptx_take(s, "ftz");
	mode->sat = ptx_take(s, "sat");
	bool single = type == PTX_f32, wide = type == PTX_f64;
	bool half = type == PTX_f16 || type == PTX_f16x2;
	bool brain = type == PTX_bf16 || type == PTX_bf16x2;
	/* rcp and rsqrt of .f64 have a .ftz form. */
	if ((mode->round != PTX_RN && !single && !wide) ||
	    (mode->ftz && !single && !half && !brain && !wide) || (mode->sat && !single && !half))
		return ptx_unknown(p, &s->opcode, "a modifier of %.*s.%s that is not known",
				   PTX_SHOW(&s->opcode), ptx_types[type].name);
	return 0;
}

/* The type that an operand of @bytes has where the instruction's type is @type: shift counts are
 * integers whatever is shifted. */
static enum ptx_type operand_type(enum ptx_type type, uint32_t bytes)
{
	if (type != PTX_TYPES && ptx_types[type].bytes == bytes)
		return type;
	return bytes == 8 ? PTX_b64 : bytes == 4 ? PTX_b32 : PTX_b16;
}

static int plain_operands(struct ptx_parser *p, struct ptx_statement *s,
			  const struct ptx_plain *plain, enum ptx_type type, struct ptx_insn *insn)
{
	int r = ptx_want(p, s, plain->n, plain->n);

	for (uint32_t k = 0; !r && k < plain->n; k++) {
		const struct ptx_operand *operand = &s->operands[k];
		if (operand->also)
			return ptx_unknown(p, &s->opcode, "a second destination of %.*s",
					   PTX_SHOW(&s->opcode));
		if (k == 0)
			r = ptx_destination(p, s, operand, plain->bytes[k], &insn->op[k]);
		else if (plain->bytes[k] == 0)
			r = ptx_predicate(p, s, operand, &insn->op[k], NULL);
		else
			r = ptx_source(p, s, operand, operand_type(type, plain->bytes[k]),
				       &insn->op[k]);
	}
	return r;
}

static int emit_plain(struct ptx_parser *p, struct ptx_statement *s, const struct ptx_plain *plain,
		      enum ptx_type type, const struct ptx_float_mode *mode)
{
	struct ptx_insn insn = {.exec = plain->exec};
	int r = plain_operands(p, s, plain, type, &insn);

	if (r)
		return r;
	if (mode && (mode->round != PTX_RN || mode->ftz || mode->sat)) {
		insn.inner = plain->exec;
		insn.exec = ptx_exec_float_mode;
		insn.mode = *mode;
		insn.mode.sources = plain->n - 1;
	}
	return ptx_emit(p, s, &insn);
}

int ptx_decode_plain(struct ptx_parser *p, struct ptx_statement *s)
{
	enum ptx_type type = ptx_last_type(s);
	struct ptx_float_mode mode;
	char name[NAME_MAX_];
	bool floating = type != PTX_TYPES && is_floating(type);
	int r;

	if (floating && (r = take_mode(p, s, type, &mode)))
		return r;
	/* min and max of three are instructions of their own. */
	bool three = s->n == 4 && (ptx_token_is(&s->opcode, PTX_TOKEN_WORD, "min") ||
				   ptx_token_is(&s->opcode, PTX_TOKEN_WORD, "max"));
	const struct ptx_plain *plain = NULL;
	if (ptx_full_name(s, name, sizeof(name))) {
		if (three) {
			memmove(name + 4, name + 3,
				strlen(name + 3) < sizeof(name) - 5 ? strlen(name + 3) + 1 : 1);
			name[3] = '3';
		}
		plain = ptx_plain_find(name);
	}
	if (!plain)
		return ptx_unknown(p, &s->opcode, "unknown modifiers: %s", name);
	return emit_plain(p, s, plain, type, floating ? &mode : NULL);
}

/* The third predicate: .and, .or, .xor with [!]c. */
static int take_combine(struct ptx_parser *p, struct ptx_statement *s, struct ptx_insn *insn)
{
	static const char *const words[] = {"and", "or", "xor"};
	size_t k = ptx_take_one_of(s, words, COUNT(words));
	bool negated = false;

	insn->logic.combine = k == COUNT(words) ? PTX_ALONE : (uint8_t)(PTX_AND + k);
	int r = ptx_want(p, s, k == COUNT(words) ? 3 : 4, k == COUNT(words) ? 3 : 4);
	if (!r && k < COUNT(words))
		r = ptx_predicate(p, s, &s->operands[3], &insn->op[4], &negated);
	insn->logic.negated = negated;
	return r;
}

/* operation.type that is left of the modifiers. */
static int take_comparison(struct ptx_parser *p, struct ptx_statement *s, enum ptx_type type,
			   struct ptx_insn *insn)
{
	char name[NAME_MAX_] = "";

	const char *element = type == PTX_f16x2    ? "f16"
			      : type == PTX_bf16x2 ? "bf16"
						   : ptx_types[type].name;

	insn->logic.pair = type == PTX_f16x2 || type == PTX_bf16x2;
	if (s->n_modifiers == 1 && s->modifiers[0].len < 16)
		snprintf(name, sizeof(name), "%.*s_%s", PTX_SHOW(&s->modifiers[0]), element);
	insn->compare = ptx_compare_find(name);
	if (!insn->compare)
		return ptx_unknown(p, &s->opcode, "unknown comparison of %.*s",
				   PTX_SHOW(&s->opcode));
	if (insn->logic.ftz && type != PTX_f32 && type != PTX_f16x2)
		return ptx_unknown(p, &s->opcode, "%.*s.ftz.%s", PTX_SHOW(&s->opcode),
				   ptx_types[type].name);
	int r = ptx_source(p, s, &s->operands[1], type, &insn->op[2]);
	return r ? r : ptx_source(p, s, &s->operands[2], type, &insn->op[3]);
}

int ptx_take_last_type(struct ptx_parser *p, struct ptx_statement *s, enum ptx_type *type)
{
	*type = ptx_last_type(s);
	if (*type == PTX_TYPES || ptx_type_find(&s->modifiers[s->n_modifiers - 1]) != *type)
		return ptx_unknown(p, &s->opcode, "%.*s has no type", PTX_SHOW(&s->opcode));
	s->n_modifiers--;
	return 0;
}

int ptx_decode_setp(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn insn = {.exec = ptx_exec_setp, .op = {[1] = PTX_NO_ROW}};
	enum ptx_type type;
	int r = ptx_take_last_type(p, s, &type);

	insn.logic.ftz = ptx_take(s, "ftz");
	if (r || (r = take_combine(p, s, &insn)) || (r = take_comparison(p, s, type, &insn)) ||
	    (r = ptx_destination(p, s, &s->operands[0], 0, &insn.op[0])))
		return r;
	if (s->operands[0].also)
		r = ptx_destination(p, s, s->operands[0].also, 0, &insn.op[1]);
	return r ? r : ptx_emit(p, s, &insn);
}

/* Pairs of halves give pairs of the same, or of masks; all else 32 bits. */
static bool set_result(enum ptx_type result, enum ptx_type type, uint8_t *out)
{
	bool pair = type == PTX_f16x2 || type == PTX_bf16x2;

	*out = result == PTX_f32      ? PTX_ONE_F32
	       : result == PTX_f16x2  ? PTX_ONE_F16
	       : result == PTX_bf16x2 ? PTX_ONE_BF16
				      : PTX_ALL_ONES;
	if (result == PTX_u32 || result == PTX_s32)
		return true;
	return pair ? result == type : result == PTX_f32;
}

int ptx_decode_set(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn insn = {.exec = ptx_exec_set};
	enum ptx_type type, result;
	int r = ptx_take_last_type(p, s, &type);

	if (r || (r = ptx_take_last_type(p, s, &result)))
		return r;
	if (!set_result(result, type, &insn.logic.result))
		return ptx_unknown(p, &s->opcode, "set with a result of .%s",
				   ptx_types[result].name);
	insn.logic.ftz = ptx_take(s, "ftz");
	if ((r = take_combine(p, s, &insn)) || (r = take_comparison(p, s, type, &insn)))
		return r;
	r = ptx_destination(p, s, &s->operands[0], 4, &insn.op[0]);
	return r ? r : ptx_emit(p, s, &insn);
}

int ptx_decode_testp(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn insn = {.exec = ptx_exec_setp, .op = {[1] = PTX_NO_ROW}};
	enum ptx_type type;
	int r = ptx_take_last_type(p, s, &type);

	if (r || (r = ptx_want(p, s, 2, 2)))
		return r;
	s->operands[2] = s->operands[1];
	if ((r = take_comparison(p, s, type, &insn)))
		return r;
	r = ptx_destination(p, s, &s->operands[0], 0, &insn.op[0]);
	return r ? r : ptx_emit(p, s, &insn);
}
