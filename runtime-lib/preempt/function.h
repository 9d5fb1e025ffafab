/* Kernels whose forms are wanted, found by the handle of the launch. Records live in a fixed table
 * until their code is unloaded or their client ends.
 *
 * The launch path reads `rewritten`, which the worker fills in (forms.h). Until then, and for ever
 * if anything fails, the kernel runs natively.
 *
 * A program may not unload code while it launches it. So a launching thread may use the record, and
 * its `rewritten`, until the launch returns. */
#pragma once

#include "client/client.h"
#include "client/subsystem.h"
#include "preempt/rewrite.h"

#define FUNCTIONS_MAX 4096
enum function_state {
	FUNCTION_FREE,      /* or a thread is making the record */
	FUNCTION_NATIVE,    /* no forms are wanted yet */
	FUNCTION_WANTED,    /* the worker will ask */
	FUNCTION_REQUESTED, /* at the agent */
	FUNCTION_READY,     /* `rewritten` is there */
	FUNCTION_REFUSED,   /* no forms ever: no PTX, or not eligible */
	FUNCTION_GONE,      /* its code is being unloaded */
};

struct function {
	_Atomic uint64_t key; /* of handle and client; 0: free */
	_Atomic int state;    /* enum function_state */
	struct client *client;
	struct origin origin;
	_Atomic(const struct rewritten *) rewritten;
	_Atomic(const struct rewritten *) soonest;  /* stays when all forms are there */
	_Atomic(struct kernel_profiles *) profiles; /* NULL: not known; there before the code */

	/* Once there is code: the handle, or the CUfunction of a CUkernel in this context. */
	CUfunction _Atomic original;
	_Atomic uint32_t changes; /* of the kernel's attributes by the program */

	/* Worker; after worker_grace() the thread that unloads the code. */
	uint32_t request;      /* its number; */
	bool asks_soonest;     /* it is for the form that leaves soonest; */
	bool soonest_asked;    /* one was; */
	_Atomic bool is_ahead; /* nobody has launched it yet */
	/* All forms, and the soonest one: to be unloaded; may be withdrawn already. */
	const struct rewritten *loaded[2];
};

extern struct function function_table[FUNCTIONS_MAX];
#define function_for_each(f) \
	for (struct function * (f) = function_table; (f) < function_table + FUNCTIONS_MAX; (f)++)

/* With the client's context current: finds or makes the record. No lock, no allocation, no system
 * call. NULL: the table is full. */
struct function *function_find(struct client *client, CUfunction handle);

/* Another thread is making the record: nothing can be asked of it yet. */
static inline bool function_is_being_made(const struct function *function)
{
	return atomic_load(&function->state) == FUNCTION_FREE;
}

/* There will be no forms. */
static inline bool function_is_hopeless(const struct function *function)
{
	int state = atomic_load(&function->state);

	return state == FUNCTION_REFUSED || state == FUNCTION_GONE;
}

/* Launch path: such code may still be launched. */
static inline bool function_has(const struct function *function, const struct rewritten *rewritten)
{
	return load_acquire(&function->rewritten) == rewritten ||
	       load_acquire(&function->soonest) == rewritten;
}

/* Worker: from state to state. False: it is not in @from. */
bool function_move(struct function *function, int from, enum function_state to);
/* Worker, when there is code of its forms: fills in `original`. */
void function_know_original(struct function *function);
/* Any thread: its forms get its attributes, or are withdrawn if they cannot have them. */
void function_follow(struct function *function);

/* Any thread: the program has changed attributes of a kernel. Its forms follow. */
void function_changed(struct client *client, CUfunction handle);
void function_prefers(struct client *client, CUfunction handle, CUfunc_cache config);

/* Any thread, before a module or library is unloaded: unloads the forms of its kernels. No thread
 * of ours uses it after the return. */
void function_unload(const void *owner);

/* Columns of the table. */
void function_forget(struct client *client);
void function_fork(void);
