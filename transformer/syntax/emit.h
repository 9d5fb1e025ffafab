/* IR to PTX. */
#pragma once

#include "syntax/ir.h"
#include "syntax/text.h"

/* The module: its own text, with the functions that were read and changed printed in their places.
 */
void emit_module(struct text *out, const struct module *module);
/* From the IR, whether changed or not; it must have been read. */
void emit_function(struct text *out, const struct function *function);
void emit_declaration(struct text *out, const struct function *function); /* its head alone */
void emit_instruction(struct text *out, const struct function *function,
		      const struct instruction *instruction);
