/* Effects of calling a function that matter to the forms. They include the effects of its callees.
 */
#pragma once

#include "syntax/ir.h"

enum callee_effect {
	CALLEE_INDEX = 1,       /* reads %ctaid or %nctaid */
	CALLEE_BARRIER = 2,     /* waits for other threads of the block */
	CALLEE_EXIT = 4,        /* ends the thread */
	CALLEE_UNSUPPORTED = 8, /* contains something that passes/eligible.c refuses */
	CALLEE_EXTERNAL = 16,   /* is defined in another module, or cannot be parsed */
	CALLEE_POINTER = 32,    /* calls through a pointer, which may reach any function */
	CALLEE_WARP = 64,       /* waits for lanes that its mask names, even if they have exited */
	CALLEE_SHARED = 128,    /* has shared memory of its own */
};
#define CALLEE_EFFECTS 8

struct rewrite;

/* The function that @call names. NULL: the call uses a pointer. */
struct function *callee_of(const struct instruction *call);
/* Whether @i calls malloc(), free() or vprintf(): functions of the driver that wait for no thread
 * outside of them. */
bool calls_driver(const struct instruction *i);

/* Refuses the kernel if @call may have @effect: "@what FUNCTION, which @why", where FUNCTION is
 * what causes the effect. */
void callee_refuse(struct rewrite *rewrite, const struct instruction *call,
		   enum callee_effect effect, const char *what, const char *why);
