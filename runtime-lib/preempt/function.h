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

#include "autotune/autotuner.h"
#include "client/client.h"

#include "weir/object.h"
#include "weir/preempt-abi.h"
#include "weir/transform.h"

#define FUNCTIONS_MAX  4096
#define SYMBOLS_MAX    256
#define PARAMETERS_MAX 1024

/* A kernel in one form, in the client's context. */
struct variant {
	CUfunction function; /* NULL: not in this form */
	uint32_t save_fixed, save_per_thread;
};

/* A constant variable: its bytes are copied in front of each launch. */
struct constant_copy {
	CUdeviceptr to, from;
	size_t size;
};

/* Immutable once published. */
struct rewritten {
	struct variant variants[WEIR_FORM_COUNT][BUILDS_MAX];
	size_t n_params; /* the program's own; the hidden one comes behind */
	const struct weir_object_param *params;
	size_t n_symbols; /* behind the hidden struct; at most SYMBOLS_MAX */
	const uint64_t *symbols;
	size_t n_constants; /* at most SYMBOLS_MAX */
	const struct constant_copy *constants;
	CUmodule module; /* ours, with the variants */
};

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
	CUfunction handle;    /* as launched: may be a CUkernel */
	struct client *client;
	_Atomic(const void *) owner; /* the module or library it is part of; NULL: not known */
	bool library;                /* the latter; the handle is a CUkernel */
	_Atomic(const struct rewritten *) rewritten;

	_Atomic uint32_t changes; /* of the kernel's attributes by the program */
	_Atomic int cache_config; /* CUfunc_cache; NONE: the program did not say */

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

/* How often code was unloaded, be it with its context. A handle that was launched is one still, for
 * the worker at work, if that has not changed since before the launch. */
static inline uint32_t function_unloads(void)
{
	extern _Atomic uint32_t function_unloads_;

	return atomic_load(&function_unloads_);
}

/* Worker: is there something to be done for this client? */
bool function_pending(struct client *client);
/* Worker, with the client's context current: does it. */
void function_work(struct client *client);
/* Worker, with the client's context current: while code waits to be loaded, a stream that never
 * runs dry is to show by markers that it moves. */
void function_watch(struct client *client);

/* Any thread: the program has changed attributes of a kernel or function; what was made
 * of it follows. */
void function_changed(struct client *client, CUfunction handle);
void function_prefers(struct client *client, CUfunction handle, CUfunc_cache config);

/* Any thread, before a module or library is unloaded: what was made of its kernels is, too, and no
 * thread of ours uses it after the return. */
void function_unload(const void *owner);
/* @gone is called for each such kernel, before its record is used for another. */
void function_unload_hook(void (*gone)(const struct function *function));

/* The client goes, and its context with it: no thread of ours uses its records after the return. */
void function_forget(struct client *client);

/* In a forked child. */
void function_forget_all(void);
