/* What calling a function may do that matters to the forms, callees of callees included. */
#pragma once

#include "syntax/ir.h"

enum callee_effect {
	CALLEE_INDEX = 1,       /* reads %ctaid or %nctaid */
	CALLEE_BARRIER = 2,     /* waits for other threads of the block */
	CALLEE_EXIT = 4,        /* ends the thread */
	CALLEE_UNSUPPORTED = 8, /* something that passes/eligible.c refuses in kernels */
	CALLEE_EXTERNAL = 16,   /* is not in this module, or cannot be read */
	CALLEE_POINTER = 32,    /* calls through a pointer that may be anybody's */
	CALLEE_WARP = 64,       /* waits for threads of its warp that it names, there or not */
	CALLEE_SHARED = 128,    /* has shared memory of its own */
};
#define CALLEE_EFFECTS 8

struct callee;

/* The function that @call calls, NULL: through a pointer. */
struct function *callee_of(const struct instruction *call);

/* Whether a call there may have @effect, or -ENOMEM. @culprit: a function that is to blame. */
int callee_has(const struct instruction *call, struct module *module, enum callee_effect effect,
	       const char **culprit);
