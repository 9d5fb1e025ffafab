/* Generates code that reads the hidden parameter (weir/preempt-abi.h, struct weir_persistent). */
#pragma once

#include "passes/pass.h"

#define HIDDEN(member) (unsigned)offsetof(struct weir_persistent, member)

/* Loads a value of the hidden parameter into a new register. A value of 16 bits takes 32. */
struct operand hidden16(struct cursor *at, struct rewrite *rewrite, unsigned offset);
struct operand hidden32(struct cursor *at, struct rewrite *rewrite, unsigned offset);
struct operand hidden64(struct cursor *at, struct rewrite *rewrite, unsigned offset);

/* The number of first tickets that workers have without drawing. */
struct operand hidden_dealt(struct cursor *at, struct rewrite *rewrite);
