#include "passes/hidden.h"

#include <stdio.h>

static struct operand load(struct cursor *at, struct rewrite *rewrite, enum type_id type,
			   unsigned offset)
{
	struct reg *reg = edit_register(rewrite->function, type);
	char ptx[64];

	snprintf(ptx, sizeof(ptx), "ld.param.%s %%0, [%%1+%u];", types[type].name, offset);
	edit_code(at, ptx, op_reg(reg), op_variable(rewrite->hidden));
	return op_reg(reg);
}

struct operand hidden32(struct cursor *at, struct rewrite *rewrite, unsigned offset)
{
	return load(at, rewrite, TYPE_b32, offset);
}

struct operand hidden64(struct cursor *at, struct rewrite *rewrite, unsigned offset)
{
	return load(at, rewrite, TYPE_b64, offset);
}

struct operand hidden_dealt(struct cursor *at, struct rewrite *rewrite)
{
	struct reg *reg;

	if (rewrite->safe)
		return op_int(0);
	reg = edit_register(rewrite->function, TYPE_b32);
	edit_code(at, "mov.u32 %0, %nctaid.x;", op_reg(reg));
	return op_reg(reg);
}

void hidden_poll(struct cursor *at, struct rewrite *rewrite, struct operand words,
		 struct operand next, struct operand otherwise)
{
	struct operand demand = hidden64(at, rewrite, HIDDEN(demand));
	struct operand hold = hidden64(at, rewrite, HIDDEN(hold));
	struct operand period = hidden32(at, rewrite, HIDDEN(period));
	struct reg *asked = edit_register(rewrite->function, TYPE_b64);

	edit_code(at,
		  "{ .reg .pred %p; .reg .b64 %now, %after, %old;"
		  "  setp.eq.u64 %p, %0, 0; @%p bra %1;"
		  "  mov.u64 %now, %globaltimer; setp.lt.u64 %p, %now, %2; @%p bra %1;"
		  "  cvt.u64.u32 %after, %3; add.u64 %after, %now, %after;"
		  "  atom.global.cas.b64 %old, [%4], %2, %after;"
		  "  setp.ne.u64 %p, %old, %2; @%p bra %1; }",
		  demand, otherwise, next, period, words);
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %held; .reg .b64 %held64;"
		  "  ld.volatile.global.u64 %0, [%1];"
		  "  mov.u32 %held, 0; setp.ne.u64 %p, %2, 0;"
		  "  @%p ld.volatile.global.u32 %held, [%2];"
		  "  cvt.u64.u32 %held64, %held; or.b64 %0, %0, %held64;"
		  "  setp.eq.u64 %p, %0, 0; @%p bra %3; }",
		  op_reg(asked), demand, hold, otherwise);
	edit_code(at,
		  "{ .reg .pred %p; .reg .b32 %old;"
		  "  atom.global.or.b32 %old, [%0+16], 0x80000000; setp.ge.s32 %p, %old, 0;"
		  "  add.u32 %old, %old, %1; @%p st.volatile.global.u32 [%0+20], %old; }",
		  words, hidden_dealt(at, rewrite));
}
static_assert(offsetof(struct weir_words, ticket) == 16, "in the templates");
static_assert(offsetof(struct weir_words, restart) == 20, "in the templates");
