/* Mnemonics: the first word of an instruction, looked up in opcodes.def. */
#pragma once

#include "syntax/ir.h"

/* The mnemonic spelled @text; created at first use. NULL: more than MODIFIER_MAX modifiers. */
const struct mnemonic *opcode_mnemonic(struct module *module, const char *text, size_t len);
