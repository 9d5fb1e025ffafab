/* Kernels and what the compile service made of them. A record for each kernel that this process
 * launches often or long enough to be worth it, found by the handle it is launched with. Records
 * live in a fixed table until their module, or their client, is gone.
 *
 * The launch path finds a record and reads `rewritten`; it asks for a rewriting by function_want().
 * The worker resolves the handle (name, module, the image that it came from: module.h), has the
 * link ask the agent (WEIR_COMPILE), loads what comes back, and publishes it. Until then, and for
 * ever if anything fails, the kernel runs as it is.
 */
#pragma once

#include "client.h"

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

/* Immutable once published; not freed while a launch may still read it. */
struct rewritten {
	struct variant variants[WEIR_FORM_COUNT];
	size_t n_params; /* the program's own; the hidden one comes behind */
	const struct weir_object_param *params;
	size_t n_symbols; /* behind the hidden struct */
	uint64_t symbols[SYMBOLS_MAX];
	size_t n_constants;
	struct constant_copy constants[SYMBOLS_MAX];
};

enum function_state {
	FUNCTION_FREE,
	FUNCTION_NATIVE,    /* nobody asked yet */
	FUNCTION_WANTED,    /* the worker is to see to it */
	FUNCTION_REQUESTED, /* at the agent */
	FUNCTION_READY,     /* `rewritten` is there */
	FUNCTION_REFUSED,   /* never: no PTX, not eligible in any form, no service; said once */
};

struct function {
	_Atomic uint64_t key; /* of handle and client; 0: free */
	_Atomic int state;    /* enum function_state */
	CUfunction handle;    /* as launched: may be a CUkernel */
	struct client *client;
	_Atomic(const struct rewritten *) rewritten;
};

/* Launch path: no lock, no allocation, no system call. NULL: the table is full. */
struct function *function_find(struct client *client, CUfunction handle);

/* Launch path: asks once; later calls cost one load. */
void function_want(struct function *function);

/* Worker, with the client's context current: does what is to be done for this client. True: there
 * was something. */
bool function_work(struct client *client);

/* The client, or a module, goes: no thread of ours uses its records after the return. */
void function_forget(struct client *client);
