/* One kernel in the forms that can leave, compiled: what the agent's compile service gives a
 * client, and what lies in the node's cache. A file: this header, tables, names, and an image for
 * cuModuleLoadData.
 *
 * The kernel stands in a module of its own, so the module that the program loaded stays as it was.
 * Variables of that module are reached by address: the launcher looks them up there
 * (cuModuleGetGlobal) and puts the addresses behind the hidden struct, in the order of the table,
 * where variables in global memory come first: entry k of it stands at k * 8 behind the struct, and
 * only they have one.
 * A variable in constant memory is copied: the new module has its own under `copy`, which the
 * launcher fills from the program's in front of each launch, in the same stream.
 *
 * Offsets count from the file's start, names end with NUL. Little endian, fixed widths. A reader
 * checks with weir_object_check() before it looks at anything.
 */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_OBJECT_MAGIC   0x424f5745u /* "EWOB" */
#define WEIR_OBJECT_VERSION 1u
#define WEIR_OBJECT_MAX     (64u << 20)
/* Bytes that a kernel's parameters take, at most. */
#define WEIR_OBJECT_PARAMS_MAX 32768u

enum weir_object_space {
	WEIR_OBJECT_GLOBAL = 1,
	WEIR_OBJECT_CONSTANT = 2,
};

enum weir_object_flags {
	WEIR_OBJECT_IS_PTX = 1u << 0, /* the image is PTX, ending with NUL; else machine code */
};
#define WEIR_OBJECT_FLAGS WEIR_OBJECT_IS_PTX /* all that this version knows */

struct weir_object {
	uint32_t magic, version;
	uint32_t size; /* of the whole file */
	uint32_t flags;
	uint32_t abi; /* WEIR_PREEMPT_ABI */
	uint32_t sm;  /* 90: compute capability 9.0 */
	uint32_t image, image_size;
	uint32_t forms, n_forms; /* struct weir_object_form; one or more for each form asked for */
	uint32_t params, n_params;   /* struct weir_object_param: the program's own parameters */
	uint32_t symbols, n_symbols; /* struct weir_object_symbol */
	uint32_t kernel;             /* name: the program's kernel */
	uint32_t reserved[17];
};
static_assert(sizeof(struct weir_object) == 128, "layout");

struct weir_object_form {
	uint32_t form;   /* enum weir_form */
	uint32_t entry;  /* name of the rewritten kernel; 0: refused */
	uint32_t reason; /* of the refusal; 0 */
	uint32_t line;   /* of the PTX, of the refusal */
	/* Resumable: a worker's save is fixed + per_thread * threads + dynamic shared memory. */
	uint32_t save_fixed, save_per_thread;
	uint32_t max_threads; /* from .maxntid or .reqntid, 0: not said */
	uint32_t registers;   /* that a thread of it may have; 0: no limit */
};
static_assert(sizeof(struct weir_object_form) == 32, "layout");

struct weir_object_param {
	uint32_t offset, size; /* as cuFuncGetParamInfo says of the program's kernel */
};
static_assert(sizeof(struct weir_object_param) == 8, "layout");

struct weir_object_symbol {
	uint64_t size;  /* 0: of a variable in global memory that another module defines */
	uint32_t name;  /* in the program's module */
	uint32_t copy;  /* WEIR_OBJECT_CONSTANT: name in this one; else 0 */
	uint32_t space; /* enum weir_object_space */
	uint32_t reserved;
};
static_assert(sizeof(struct weir_object_symbol) == 24, "layout");

/* 0: @size is the object's; all tables, names and the image lie inside, aligned to 8 (names are
 * not); every name ends and is not empty; each form has an entry, and then there is an image, or a
 * reason; parameters are in order; symbols are as said above. -EINVAL: not so. -ENOTSUP: another
 * version of this, or of preempt-abi.h. Needs libc only; @object is aligned to 8. */
int weir_object_check(const void *object, size_t size);
