/* A kernel with its arguments, and what is known of it while it is run in forms. */
#pragma once

#include "simcuda/ptx/ptx.h"

#include "weir/object.h"
#include "weir/preempt-abi.h"
#include "weir/transform.h"

struct problem {
	const char *ptx, *kernel;
	struct ptx_dim grid, block;
	uint32_t dynamic_shared;
	uint32_t out_words; /* compared; zeroed before */
	const char *global; /* the module's variable that the kernel writes; NULL: the first
			       parameter */
	const uint32_t *in; /* second parameter, if the kernel has one */
	uint32_t n;         /* third parameter */
	bool detached;      /* the forms are in a module of their own */
};

#define RUN_MESSAGE_MAX 512

struct run {
	const struct problem *problem;
	struct ptx_module *module;  /* the program's module; with the forms unless detached */
	struct ptx_module *own;     /* with the forms if detached, from ... */
	struct weir_object *object; /* ... this object */
	uint32_t *want;             /* output of the native kernel */
	uint64_t random;
	unsigned evictions; /* so far */
	unsigned saves;     /* of those with saved blocks */
	unsigned drains;    /* blocks that were finished rather than saved */
	unsigned partial;   /* launches from which workers left by a quota */
	unsigned returns;   /* of those that were closed to bring them back */
	unsigned workers;   /* of the current launch, and */
	uint32_t serial;    /* its serial */
	uint32_t save_fixed, save_per_thread;
	bool has[WEIR_FORM_COUNT];
	char message[RUN_MESSAGE_MAX]; /* what failed, or why a form is missing */
};
