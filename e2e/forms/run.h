/* Runs a kernel natively and in its forms on the interpreter, as a launcher does on a GPU, and
 * compares the memory.
 *
 * The interpreter runs a block from start to end on the calling thread. Workers of a persistent
 * launch run on several threads, and the demand comes at random moments. */
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

/* Transforms and loads the kernel and runs it natively. False: see the message. */
bool run_init(struct run *run, const struct problem *problem, uint64_t seed);
void run_deinit(struct run *run);

/* Runs the form once with a random schedule. False: see the message. */
bool run_form(struct run *run, enum weir_form form);

/* One worker of the resumable form that is asked to leave at its first block, which may run on for
 * @drain ns. @n_long of the last 16 tickets took @took ns, the others 1 ns; @took 0: there were
 * none. @words: as the launch leaves them. False: see the message. */
bool run_asked(struct run *run, uint32_t n_long, uint32_t took, uint32_t drain,
	       struct weir_words *words);
