/* Runs a kernel natively and in its forms on the interpreter, as a launcher would on a GPU, and
 * says whether memory ends the same.
 *
 * The interpreter runs a block from start to end on the calling thread; workers of a persistent
 * launch run on several threads, while the demand comes at random moments.
 */
#pragma once

#include "simcuda/ptx/ptx.h"

#include "weir/object.h"
#include "weir/transform.h"

struct problem {
	const char *ptx, *kernel;
	struct ptx_dim grid, block;
	uint32_t dynamic_shared;
	uint32_t out_words; /* compared; zero before */
	const char *global; /* the module's variable that they are, or NULL: the first parameter */
	const uint32_t *in; /* for the second parameter, if the kernel has one */
	uint32_t n;         /* for the third */
	bool detached;      /* the forms stand in a module of their own */
};

#define RUN_MESSAGE_MAX 512

struct run {
	const struct problem *problem;
	struct ptx_module *module;  /* the program's; also with the forms, if not detached */
	struct ptx_module *own;     /* with the forms, if detached, and ... */
	struct weir_object *object; /* ... what it came in */
	uint32_t *want;             /* what the native kernel left */
	uint64_t random;
	unsigned evictions; /* so far */
	unsigned saves;     /* of them with saved blocks */
	unsigned workers;   /* of the launch at hand */
	uint32_t save_fixed, save_per_thread;
	bool has[WEIR_FORM_COUNT];
	char message[RUN_MESSAGE_MAX]; /* what went wrong, or why a form is missing */
};

/* Transforms, loads, and runs the native kernel. False: see the message. */
bool run_init(struct run *run, const struct problem *problem, uint64_t seed);
void run_deinit(struct run *run);

/* One more random schedule of the form. False: see the message. */
bool run_form(struct run *run, enum weir_form form);
