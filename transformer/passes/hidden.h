/* Generates code that reads the hidden parameter (weir/preempt-abi.h, struct weir_persistent). */
#pragma once

#include "passes/pass.h"

#define HIDDEN(member) (unsigned)offsetof(struct weir_persistent, member)

/* Loads a value of the hidden parameter into a new register. */
struct operand hidden32(struct cursor *at, struct rewrite *rewrite, unsigned offset);
struct operand hidden64(struct cursor *at, struct rewrite *rewrite, unsigned offset);

/* The number of first tickets that workers have without drawing. */
struct operand hidden_dealt(struct cursor *at, struct rewrite *rewrite);

/* Polls if the period is over: if the launch is asked to leave, closes the words and falls through;
 * else goes to @otherwise. @quota: looks for the quota as well, which may close the launch, too. */
void hidden_poll(struct cursor *at, struct rewrite *rewrite, struct operand words, bool quota,
		 struct operand otherwise);
