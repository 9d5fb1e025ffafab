/* IR to PTX. */
#pragma once

#include "syntax/ir.h"
#include "syntax/text.h"

/* The function must have been read. */
void emit_function(struct text *out, const struct function *function);
void emit_declaration(struct text *out, const struct function *function); /* its head alone */
void emit_instruction(struct text *out, const struct function *function,
		      const struct instruction *instruction);
