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
	return rewrite->safe ? op_int(0) : hidden32(at, rewrite, HIDDEN(dealt));
}
