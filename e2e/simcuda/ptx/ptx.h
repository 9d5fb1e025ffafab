/* The PTX interpreter. It loads PTX text and executes blocks. It does not know the driver API,
 * streams or other processes. Device addresses are addresses of this process.
 *
 * A module is parsed and checked once, compiled to an internal form, and executed block by block.
 * An unknown directive, instruction or modifier is an error with a line number, never a wrong
 * result. The threads of a block run on one CPU thread, warp by warp, in a fixed order between
 * barriers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ptx_module;
struct ptx_kernel;

struct ptx_error {
	int line; /* 1-based line of the PTX text, 0: not about a line */
	char message[256];
	bool asserted; /* an assertion of the program failed */
};

struct ptx_param {
	uint32_t offset; /* in the parameter buffer */
	uint32_t size;
};

struct ptx_dim {
	uint32_t x, y, z;
};

/* What griddepcontrol does; the thread that runs the block calls it. */
struct ptx_dependence {
	void (*permit)(void *data); /* once in a block: the next grid may start */
	void (*wait)(void *data);   /* returns when the grids before are complete */
	void *data;
};

/* The memory that kernels allocate themselves. Called by threads that run blocks. */
struct ptx_heap {
	void *(*allocate)(void *data, uint64_t size); /* NULL: there is no room */
	void (*release)(void *data, void *memory);    /* what it gave, or NULL */
	void *data;
};

#define PTX_WORKSPACE_BYTES 16

/* One launch, the same for all its blocks. */
struct ptx_launch {
	struct ptx_dim grid, block;
	uint32_t dynamic_shared; /* bytes */
	const void *params; /* ptx_kernel_param_bytes() bytes, laid out by ptx_kernel_param() */
	uint32_t sm_count;  /* %nsmid */
	uint64_t grid_id;   /* %gridid */
	uint64_t max_instructions; /* a warp's instructions that one block may execute; 0: no limit.
				      Beyond it the block ends with -ETIME. */
	const struct ptx_dependence *dependence; /* NULL: griddepcontrol does nothing */
	const struct ptx_heap *heap;             /* NULL: it is full */
	/* The address in %envreg1 (high half) and %envreg2, where the blocks of a cooperative grid
	 * wait for each other: PTX_WORKSPACE_BYTES, zeroed. NULL: none. */
	void *workspace;
};

/* Is [@address, @address + @size) memory that kernels may touch? Threads that run blocks call it
 * for every global or generic access outside the module's variables and the block's own memory and
 * parameters, often once for a whole warp. It must be fast. */
typedef bool ptx_address_check(uintptr_t address, size_t size);

/* For the whole process; NULL, the default: every address is tried. */
void ptx_set_address_check(ptx_address_check *check);

/* Called on every thread that runs a block, at least once in some ten thousand instructions. It may
 * sleep: the block is then in the middle of its work. */
typedef void ptx_pause(void);

void ptx_set_pause(ptx_pause *pause); /* for the whole process; NULL, the default: none */

/* @text: @len bytes, need not be NUL-terminated, may be hostile. 0, or -EINVAL with @error filled,
 * or -ENOMEM. Module-scope variables are allocated and initialised here and live as long as the
 * module. */
int ptx_module_load(struct ptx_module **out, const char *text, size_t len, struct ptx_error *error);
void ptx_module_free(struct ptx_module *module);

struct ptx_kernel *ptx_module_kernel(struct ptx_module *module, const char *name); /* NULL: none */
struct ptx_kernel *ptx_module_kernel_at(struct ptx_module *module,
					size_t index); /* NULL: past the end */
/* A .global or .const variable. False: none of this name. */
bool ptx_module_global(struct ptx_module *module, const char *name, void **address, size_t *size);

/* The range that holds all variables of the module. Kernels may always touch their own module's
 * variables; for other modules' the address check decides. Size 0: there are none. */
void ptx_module_memory(struct ptx_module *module, void **address, size_t *size);

/* 0: the kernel can run. An unknown instruction is no error at load. It makes the kernels that
 * contain it, or call a function that does, unusable: this and ptx_run_block() then return -ENOTSUP
 * and fill @error. */
int ptx_kernel_check(const struct ptx_kernel *kernel, struct ptx_error *error);

const char *ptx_kernel_name(const struct ptx_kernel *kernel);
size_t ptx_kernel_param_count(const struct ptx_kernel *kernel);
struct ptx_param ptx_kernel_param(const struct ptx_kernel *kernel, size_t index);
size_t ptx_kernel_param_bytes(const struct ptx_kernel *kernel);
uint32_t ptx_kernel_static_shared(const struct ptx_kernel *kernel);
uint32_t ptx_kernel_local_bytes(const struct ptx_kernel *kernel);
uint32_t
ptx_kernel_registers(const struct ptx_kernel *kernel); /* an estimate: 16 to 255 of 32 bits */
uint32_t ptx_kernel_max_threads(const struct ptx_kernel *kernel); /* .maxntid, or 1024 */

/* Runs block @index (x fastest) of @launch to its end on the calling thread. Safe to call for
 * different blocks from several threads. @sm: %smid. @stop: when it becomes non-zero the block is
 * abandoned with -EINTR within some ten thousand instructions (a process that ends). -EFAULT: an
 * address no memory is behind, a trap, or a barrier that can never be met; @error says which, with
 * the line. -EINVAL: the launch does not fit the kernel. @error may be NULL. @wrote: whether the
 * block wrote to global memory; may be NULL. */
int ptx_run_block(const struct ptx_kernel *kernel, const struct ptx_launch *launch, uint64_t index,
		  uint32_t sm, const volatile int *stop, struct ptx_error *error, bool *wrote);
