/* IR to PTX. */
#pragma once

#include "ir.h"
#include "text.h"

/* The module: its own text, functions that were changed printed in their places, and the added
 * ones behind. */
void emit_module(struct text *out, const struct module *module);
void emit_function(struct text *out, const struct function *function);
void emit_instruction(struct text *out, const struct instruction *instruction);
