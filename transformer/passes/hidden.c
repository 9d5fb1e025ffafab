#include "passes/hidden.h"

#include <stdio.h>

/* @type: of the register. @from: of the value. */
static struct operand load(struct cursor *at, struct rewrite *rewrite, enum type_id type,
			   enum type_id from, unsigned offset)
{
	struct reg *reg = edit_register(rewrite->function, type);
	char ptx[64];

	snprintf(ptx, sizeof(ptx), "ld.param.%s %%0, [%%1+%u];", types[from].name, offset);
	edit_code(at, ptx, op_reg(reg), op_variable(rewrite->hidden));
	return op_reg(reg);
}

struct operand hidden16(struct cursor *at, struct rewrite *rewrite, unsigned offset)
{
	return load(at, rewrite, TYPE_b32, TYPE_u16, offset);
}

struct operand hidden32(struct cursor *at, struct rewrite *rewrite, unsigned offset)
{
	return load(at, rewrite, TYPE_b32, TYPE_b32, offset);
}

struct operand hidden64(struct cursor *at, struct rewrite *rewrite, unsigned offset)
{
	return load(at, rewrite, TYPE_b64, TYPE_b64, offset);
}

struct operand hidden_dealt(struct cursor *at, struct rewrite *rewrite)
{
	return rewrite->safe ? op_int(0) : hidden32(at, rewrite, HIDDEN(dealt));
}
