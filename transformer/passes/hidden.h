/* Code that reads what the launcher tells (weir/preempt-abi.h, struct weir_persistent). */
#pragma once

#include "passes/pass.h"

#define HIDDEN(member) (unsigned)offsetof(struct weir_persistent, member)
#define WORDS(member)  (unsigned)offsetof(struct weir_words, member)

/* A value of the hidden parameter, in a new register. */
struct operand hidden32(struct cursor *at, struct rewrite *rewrite, unsigned offset);
struct operand hidden64(struct cursor *at, struct rewrite *rewrite, unsigned offset);

/* How many of the first tickets are dealt to the workers, so that nobody draws them. */
struct operand hidden_dealt(struct cursor *at, struct rewrite *rewrite);

/* Is it time to look whether somebody wants us to leave, and does he? Then the words are closed,
 * and control goes on behind; else to @otherwise. @next: words.next_poll as it was read. */
void hidden_poll(struct cursor *at, struct rewrite *rewrite, struct operand words,
		 struct operand next, struct operand otherwise);
