/* A compiled module. It is read-only once loaded, so any number of threads may run its kernels.
 * Everything except code, constants and variables lies in the module's arena. */
#pragma once

#include "simcuda/ptx/program/arena.h"
#include "simcuda/ptx/program/insn.h"
#include "simcuda/ptx/ptx.h"

#include <uthash.h>

#define PTX_PARAM_BYTES_MAX    32764
#define PTX_SHARED_BYTES_MAX   (256 * 1024)
#define PTX_LOCAL_BYTES_MAX    (512 * 1024)
#define PTX_MODULE_BYTES_MAX   (4ULL << 30)
#define PTX_REGISTER_BYTES_MAX (64 << 20)
#define PTX_FRAMES_MAX         24 /* nested calls, if recursion or function pointers hide the depth */

struct ptx_variable {
	const char *name;
	enum ptx_space space;
	uint64_t align, size;
	bool dynamic;      /* extern .shared */
	bool is_register;  /* a parameter of a function in .reg space: offset is its row */
	bool in_function;  /* .shared: device functions use it, so it has one offset for all */
	bool placed;       /* .shared: in the kernel that is being laid out */
	bool of_module;    /* declared outside of functions */
	uint32_t number;   /* in the order of declaration */
	uint64_t offset;   /* in the module's memory, shared memory, the frame, or the parameters */
	UT_hash_handle hh; /* module->globals */
};

/* A constant of a function: one row for all its uses. */
struct ptx_constant {
	struct ptx_constant_key {
		uint64_t bits, bytes;
		struct ptx_variable *variable; /* its address is added */
	} key;
	uint32_t offset;
	UT_hash_handle hh;
};

/* An instruction to whose imm a variable's address is added after layout. */
struct ptx_use {
	struct ptx_variable *variable;
	size_t insn; /* SIZE_MAX: none, it was used in a constant */
	struct ptx_use *next;
};

struct ptx_callee {
	struct ptx_function *function;
	struct ptx_callee *next;
};

struct ptx_call {
	struct ptx_function *function; /* NULL: by the address in op[0] */
	uint8_t n_results, n_arguments;
	const struct ptx_argument *results, *arguments; /* of the caller */
};
struct ptx_argument {
	uint32_t at; /* offset in the frame, or a row */
	uint32_t bytes;
	bool is_row;
};

struct ptx_targets {
	uint32_t n;
	uint32_t pc[];
};

/* A kernel or a device function. */
struct ptx_function {
	const char *name;
	struct ptx_module *module;
	bool is_kernel, defined;
	int line;
	struct ptx_variable **params; /* kernels: at their offsets; functions: in the frame */
	struct ptx_variable **results;
	uint32_t n_results;
	uint32_t n_params;
	uint32_t param_bytes;

	uint32_t entry, end;     /* pcs */
	uint32_t register_bytes; /* rows of one frame */
	uint32_t frame_bytes;    /* of a thread: .local and .param variables */
	uint32_t frame_max;      /* while parsing: of all scopes so far */
	uint8_t *constants;      /* one row for each immediate */
	uint32_t constant_bytes;
	struct ptx_constant *constant_table; /* while parsing */
	struct ptx_use *uses;
	struct ptx_callee *callees;
	bool calls_by_address;
	ptx_exec *builtin;      /* not defined, but the system provides it */
	struct ptx_error error; /* message set: it cannot be run */

	/* Including everything that it calls. */
	struct ptx_error unusable;
	bool deep;          /* recursion or calls by address: PTX_FRAMES_MAX frames */
	bool shares;        /* uses .shared variables that functions use */
	uint32_t registers; /* as the hardware would need, about */
	uint32_t static_shared, dynamic_offset, dynamic_align;
	uint32_t total_register_bytes, total_frame_bytes, frames;
	uint32_t max_threads;
	struct ptx_dim max_block, required_block; /* 0: not said */
	uint32_t visit; /* of a walk over the calls: 0 not seen, 1 on the way, 2 done */
	UT_hash_handle hh;
	struct ptx_function *next_kernel;
};

struct ptx_module {
	struct ptx_arena arena;
	struct ptx_insn *code;
	size_t n_code, code_room;
	uint8_t *memory; /* all variables in .global and .const */
	uint64_t memory_bytes;
	struct ptx_variable *globals;   /* hash */
	struct ptx_function *functions; /* hash */
	struct ptx_function *kernels, **last_kernel;
	uint32_t variable_count;
	uint32_t function_shared; /* bytes of .shared variables that functions use */
	uint32_t largest_registers, largest_frame; /* of any function */
};

extern ptx_address_check *_Atomic ptx_check_address;
