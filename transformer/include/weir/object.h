/* A compiled kernel in its forms: the reply of the agent's compile service, and a file in the
 * node's cache. The file has this header, tables, names, and an image for cuModuleLoadData.
 *
 * The kernel is in a module of its own, and the program's module stays as it was. The kernel
 * reaches variables of that module by address. The launcher finds their addresses
 * (cuModuleGetGlobal) and puts them behind the hidden struct, in the order of the symbol table:
 * entry k at k * 8. Only variables in global memory have such an address; they come first in the
 * table. A variable in constant memory has a copy in the new module. The launcher fills it from the
 * program's variable in front of each launch, in the same stream.
 *
 * Offsets count from the file's start; names end with NUL. Little endian, fixed widths. A reader
 * calls weir_object_check() first. */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_OBJECT_MAGIC   0x424f5745u /* "EWOB" */
#define WEIR_OBJECT_VERSION 1u
#define WEIR_OBJECT_MAX     (64u << 20)
/* Limit of a kernel's parameter bytes. */
#define WEIR_OBJECT_PARAMS_MAX 32768u

enum weir_object_space {
	WEIR_OBJECT_GLOBAL = 1,
	WEIR_OBJECT_CONSTANT = 2,
};

enum weir_object_flags {
	WEIR_OBJECT_IS_PTX =
		1u << 0, /* the image is PTX with a final NUL; otherwise machine code */
};
#define WEIR_OBJECT_FLAGS WEIR_OBJECT_IS_PTX /* all flags of this version */

/* What is known of the kernel. A reader ignores bits that it does not know, and finds none in the
 * object of an older maker. */
enum weir_object_traits {
	WEIR_OBJECT_IS_STRAIGHT = 1u << 0, /* weir_verdict.is_straight */
};

struct weir_object {
	uint32_t magic, version;
	uint32_t size; /* of the whole file */
	uint32_t flags;
	uint32_t abi; /* WEIR_PREEMPT_ABI */
	uint32_t sm;  /* 90: compute capability 9.0 */
	uint32_t image, image_size;
	uint32_t forms, n_forms; /* struct weir_object_form; one or more for each requested form */
	uint32_t params, n_params;   /* struct weir_object_param: the program's own parameters */
	uint32_t symbols, n_symbols; /* struct weir_object_symbol */
	uint32_t kernel;             /* name of the program's kernel */
	uint32_t traits;             /* enum weir_object_traits */
	uint32_t reserved[16];
};
static_assert(sizeof(struct weir_object) == 128, "layout");

struct weir_object_form {
	uint32_t form;   /* enum weir_form */
	uint32_t entry;  /* name of the rewritten kernel; 0: refused */
	uint32_t reason; /* why it was refused; 0: it was not */
	uint32_t line;   /* of the PTX, for a refusal; 0: unknown */
	/* Resumable: a worker's save has save_fixed + save_per_thread * threads bytes plus dynamic
	 * shared memory. */
	uint32_t save_fixed, save_per_thread;
	uint32_t max_threads; /* from .maxntid or .reqntid; 0: unknown */
	uint32_t registers;   /* register limit per thread; 0: none */
};
static_assert(sizeof(struct weir_object_form) == 32, "layout");

struct weir_object_param {
	uint32_t offset, size; /* as cuFuncGetParamInfo reports for the program's kernel */
};
static_assert(sizeof(struct weir_object_param) == 8, "layout");

struct weir_object_symbol {
	uint64_t size;  /* 0: a global variable that another module defines */
	uint32_t name;  /* in the program's module */
	uint32_t copy;  /* WEIR_OBJECT_CONSTANT: name in the new module; else 0 */
	uint32_t space; /* enum weir_object_space */
	uint32_t reserved;
};
static_assert(sizeof(struct weir_object_symbol) == 24, "layout");

/* 0: the object is valid. @size is its size. Tables, names and the image lie inside; all but names
 * are aligned to 8. Names are terminated and not empty. Each form has an entry (then there is an
 * image) or a reason. Parameters are in order, symbols as described above. -EINVAL: not valid.
 * -ENOTSUP: another version of this file or of preempt-abi.h. Uses libc only; @object must be
 * aligned to 8. */
int weir_object_check(const void *object, size_t size);
