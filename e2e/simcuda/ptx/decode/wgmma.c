/* Decodes wgmma: m64nNk16 of half or bfloat16 with sums of floats. */
#include "simcuda/ptx/decode/decode.h"

#include "simcuda/ptx/execute/async/wgmma.h"
#include "simcuda/ptx/execute/executors.h"

#include <stdlib.h>
#include <string.h>

/* N of .m64nNk16; 0: another shape. */
static uint32_t take_columns(struct ptx_statement *s)
{
	static const char before[] = "m64n", after[] = "k16";

	for (uint32_t k = 0; k < s->n_modifiers; k++) {
		const struct ptx_token *word = &s->modifiers[k];
		char text[16] = "", *end;
		unsigned long n;

		if (word->len >= sizeof(text) || word->len < sizeof(before) ||
		    memcmp(word->text, before, sizeof(before) - 1) != 0)
			continue;
		memcpy(text, word->text + sizeof(before) - 1, word->len - (sizeof(before) - 1));
		n = strtoul(text, &end, 10);
		if (strcmp(end, after) != 0 || n < 8 || n > PTX_MATRIX_COLUMNS || n % 8)
			return 0;
		memcpy(text, word->text, word->len);
		text[word->len] = '\0';
		ptx_take(s, text);
		return (uint32_t)n;
	}
	return 0;
}

/* Operand @at must be a number that is @a or @b; returns which. */
static int take_choice(struct ptx_parser *p, struct ptx_statement *s, uint32_t at, int64_t a,
		       int64_t b, bool *is_b)
{
	const struct ptx_operand *operand = &s->operands[at];

	*is_b = (int64_t)operand->bits == b;
	if (operand->kind == PTX_OPERAND_INTEGER && (*is_b || (int64_t)operand->bits == a))
		return 0;
	return ptx_unknown(p, &s->opcode, "operand %u of wgmma", at);
}

static int decode_rows(struct ptx_parser *p, struct ptx_statement *s,
		       const struct ptx_operand *vector, uint32_t n, enum ptx_type type,
		       uint32_t *rows)
{
	int r = 0;

	if (vector->kind != PTX_OPERAND_VECTOR || vector->n_elements != n)
		return ptx_fail_at(p, &s->opcode, "wgmma needs %u registers here", n);
	for (uint32_t k = 0; !r && k < n; k++)
		r = type == PTX_f32 ? ptx_destination(p, s, &vector->elements[k], 4, &rows[k])
				    : ptx_source(p, s, &vector->elements[k], type, &rows[k]);
	return r;
}

/* d, a, b, whether to add, signs of a and b, then whether a (in shared memory) and b are transposed
 */
static int decode_operands(struct ptx_parser *p, struct ptx_statement *s, struct ptx_matrix *m,
			   struct ptx_insn *insn)
{
	bool minus_a = false, minus_b = false, transposed = false;
	uint32_t last;
	int r;

	m->a_in_registers = s->n > 1 && s->operands[1].kind == PTX_OPERAND_VECTOR;
	last = m->a_in_registers ? 6 : 7;
	insn->op[PTX_MATRIX_A] = ptx_constant(p, 0, 8, NULL);
	if ((r = ptx_want(p, s, last + 1, last + 1)) ||
	    (r = decode_rows(p, s, &s->operands[0], m->columns / 2, PTX_f32, m->d)) ||
	    (r = m->a_in_registers
			 ? decode_rows(p, s, &s->operands[1], 4, PTX_b32, m->a)
			 : ptx_source(p, s, &s->operands[1], PTX_b64, &insn->op[PTX_MATRIX_A])) ||
	    (r = ptx_source(p, s, &s->operands[2], PTX_b64, &insn->op[PTX_MATRIX_B])) ||
	    (r = ptx_predicate(p, s, &s->operands[3], &insn->op[PTX_MATRIX_ADD], NULL)) ||
	    (r = take_choice(p, s, 4, 1, -1, &minus_a)) ||
	    (r = take_choice(p, s, 5, 1, -1, &minus_b)))
		return r;
	m->negative = minus_a != minus_b;
	for (uint32_t k = 6; !r && !transposed && k <= last; k++)
		r = take_choice(p, s, k, 0, 1, &transposed);
	if (!r && transposed)
		r = ptx_unknown(p, &s->opcode, "a transposed matrix of wgmma");
	return r;
}

static int decode_product(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_matrix *m = ptx_arena_take(&p->module->arena, sizeof(*m));
	struct ptx_insn insn = {.exec = ptx_exec_wgmma, .matrix = m};
	int r;

	if (!m)
		return ptx_no_memory(p);
	m->columns = take_columns(s);
	m->bfloat = ptx_take(s, "bf16");
	if (!m->columns || !ptx_take(s, "f32") || !ptx_take(s, m->bfloat ? "bf16" : "f16") ||
	    (!m->bfloat && !ptx_take(s, "f16")))
		return ptx_unknown(p, &s->opcode, "this form of wgmma");
	if ((r = ptx_no_more(p, s)) || (r = decode_operands(p, s, m, &insn)))
		return r;
	return ptx_emit(p, s, &insn);
}

int ptx_decode_wgmma(struct ptx_parser *p, struct ptx_statement *s)
{
	struct ptx_insn insn = {.exec = ptx_exec_nothing};

	ptx_take(s, "sync");
	ptx_take(s, "aligned");
	if (ptx_take(s, "mma_async"))
		return decode_product(p, s);
	if (ptx_take(s, "wait_group"))
		insn.exec = ptx_exec_group_wait;
	else if (!ptx_take(s, "fence") && !ptx_take(s, "commit_group"))
		return ptx_unknown(p, &s->opcode, "this form of wgmma");
	return ptx_emit(p, s, &insn);
}
