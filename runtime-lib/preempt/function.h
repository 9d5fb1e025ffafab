/* Kernels and what the compile service made of them. A record for each kernel that this process
 * launches often or long enough to be worth it, found by the handle it is launched with. Records
 * live in a fixed table until the code that their kernel is part of, or their client, is gone.
 *
 * The launch path finds a record and reads `rewritten`; it asks for a rewriting by function_want().
 * The worker finds the image that the kernel came from (module.h), has the link ask the agent
 * (request.h), loads what comes back (rewrite.h), and publishes it. Until then, and for ever if
 * anything fails, the kernel runs as it is.
 *
 * A program may not unload code while it launches it, so who launches a kernel may use its record,
 * and `rewritten` of it, until the launch returns.
 */
#pragma once

#include "client/client.h"
#include "client/subsystem.h"
#include "preempt/rewrite.h"

#define FUNCTIONS_MAX 4096
enum function_state {
	FUNCTION_FREE,
	FUNCTION_NATIVE,    /* nobody asked yet */
	FUNCTION_WANTED,    /* the worker is to see to it */
	FUNCTION_REQUESTED, /* at the agent */
	FUNCTION_READY,     /* `rewritten` is there */
	FUNCTION_REFUSED,   /* never: no PTX, not eligible in any form; said once */
	FUNCTION_GONE,      /* its code is being unloaded */
};

struct function {
	_Atomic uint64_t key; /* of handle and client; 0: free */
	_Atomic int state;    /* enum function_state */
	struct client *client;
	struct origin origin;
	_Atomic(const struct rewritten *) rewritten;

	_Atomic uint32_t changes; /* of the kernel's attributes by the program */

	/* Worker; whoever unloads the code, when the worker has let go of it. */
	uint32_t request;               /* its number */
	const struct rewritten *loaded; /* to be unloaded; may not be published any more */
	CUfunction original;            /* the handle, or the function that a kernel is here */
};

/* Launch path: no lock, no allocation, no system call. NULL: the table is full. With the client's
 * context current; a kernel's first call asks the driver what it belongs to. */
struct function *function_find(struct client *client, CUfunction handle);

/* Launch path: asks once; later calls cost one load. */
void function_want(struct function *function);

/* Any thread: the program has changed attributes of a kernel or function; what was made
 * of it follows. */
void function_changed(struct client *client, CUfunction handle);
void function_prefers(struct client *client, CUfunction handle, CUfunc_cache config);

/* Any thread, before a module or library is unloaded: what was made of its kernels is, too, and no
 * thread of ours uses it after the return. */
void function_unload(const void *owner);

/* Columns of the table. */
void function_look(struct client *client, struct tick *tick);
void function_drive(struct client *client, struct tick *tick);
void function_forget(struct client *client);
void function_fork(void);
