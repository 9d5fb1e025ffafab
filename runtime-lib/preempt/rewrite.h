/* The request of a kernel to the compile service, and the loading of the answer. On the worker,
 * with the client's context current. */
#pragma once

#include "autotune/autotuner.h"
#include "preempt/image.h"
#include "shim/driver.h"

#include "weir/object.h"
#include "weir/preempt-abi.h"
#include "weir/transform.h"

#define SYMBOLS_MAX    256
#define PARAMETERS_MAX 1024
#define PACKED_MAX     2048 /* bytes of parameters, the hidden ones included */

/* A kernel in one form, in the client's context. */
struct variant {
	CUfunction function; /* NULL: not in this form */
	uint32_t save_fixed, save_per_thread;
};

/* A constant variable: its bytes are copied before each launch. */
struct constant_copy {
	CUdeviceptr to, from;
	size_t size;
};

/* Immutable once published. */
struct rewritten {
	struct variant variants[WEIR_FORM_COUNT][BUILDS_MAX];
	size_t n_params; /* the program's own, before the hidden one */
	const struct weir_object_param *params;
	size_t n_symbols; /* addresses behind the hidden struct; at most SYMBOLS_MAX */
	const uint64_t *symbols;
	size_t n_constants; /* at most SYMBOLS_MAX */
	const struct constant_copy *constants;
	CUmodule module;  /* ours, with the variants */
	bool is_partial;  /* not all forms were built: the object says nothing about some */
	bool is_straight; /* WEIR_OBJECT_IS_STRAIGHT */
};

/* Where a kernel comes from. */
struct origin {
	CUfunction handle;           /* as launched: may be a CUkernel */
	_Atomic(const void *) owner; /* its module or library; NULL: not known */
	bool library;                /* a library; the handle is a CUkernel */
	_Atomic int cache_config;    /* CUfunc_cache; NONE: the program did not say */
};

/* The sealed file of a request (struct weir_compile_file) for an image that is PTX alone, or a
 * negative errno. @registers: of a thread of the native kernel; 0: not known. @flags:
 * WEIR_COMPILE_SOONEST or 0. */
int rewrite_request(const struct image *image, const char *kernel, unsigned sm, unsigned registers,
		    uint32_t flags);

#define REWRITE_TEXT 512

/* Loads the object in @file beside the program's code. NULL: no form can be used. @text says why,
 * or which forms there are. */
const struct rewritten *rewrite_load(const struct origin *origin, const char *kernel, unsigned sm,
				     int file, char text[REWRITE_TEXT]);

/* The CUfunction of the kernel in this context, about which the driver can be asked. NULL: not
 * known. */
CUfunction rewrite_original(const struct origin *origin);

/* Gives the variants the attributes of the program's kernel. False: one cannot have them, or the
 * kernel is launched in clusters. */
bool rewrite_follow(const struct origin *origin, const struct rewritten *rewritten);

/* @module: unloads the module, too. The record stays readable for a while, for a launch that has
 * just found it. NULL is fine. */
void rewrite_unload(const struct rewritten *rewritten, bool module);

/* In a forked child. */
void rewrite_fork(void);
