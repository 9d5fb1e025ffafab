/* The transformer rewrites PTX and adds kernels in forms that can leave while they run.
 *
 * The original kernels stay byte for byte. The rewritten ones follow in the same module and share
 * its globals and constants. A kernel `k` in the form persistent is called `k__weir_persistent`.
 * preempt-abi.h is the contract with a launcher.
 *
 * The library never exits, prints or keeps state between calls. Memory and time are linear in the
 * size of the input. Any thread may call it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weir_form {
	WEIR_NATIVE,
	WEIR_SLICED,
	WEIR_PERSISTENT,
	WEIR_RESUMABLE,
	WEIR_FORM_COUNT,
};

/* "native", "sliced" ... */
const char *weir_form_name(enum weir_form form);
const char *weir_form_suffix(enum weir_form form);

/* A register limit under which as many blocks of a rewritten kernel fit on an SM as of the original
 * with @native registers per thread. Registers are allocated in units of eight; every thread can
 * have 32. */
static inline unsigned weir_registers_max(unsigned native)
{
	return native <= 32 ? 32 : (native + 7) / 8 * 8;
}

/* The limit of the wide build, of which fewer blocks fit on an SM; 0: there is none. */
static inline unsigned weir_registers_wide(unsigned native)
{
	return weir_registers_max(native) + 8 > 255 ? 0 : weir_registers_max(native) + 8;
}

#define WEIR_REASON_MAX 256

/* The result for one kernel in one form. */
struct weir_verdict {
	const char *kernel;
	enum weir_form form;
	bool eligible;
	uint32_t line;      /* of the text; 0: unknown */
	const char *reason; /* of a refusal, else ""; both strings are valid during the call only */
	/* Resumable: a worker's save has save_fixed + save_per_thread * threads bytes plus dynamic
	 * shared memory. Both 0: nothing is ever saved. */
	uint32_t save_fixed, save_per_thread;
	/* Bytes of these that are shared memory that need not be saved, as the mean over the loop
	 * heads where a block may begin to leave. */
	uint32_t save_spared;
	/* The kernel has no loops and calls only functions of the driver. So its blocks never wait
	 * for each other, whatever the program's intent. False if it was refused. */
	bool is_straight;
};

struct weir_transform_options {
	unsigned forms;         /* bits 1 << enum weir_form */
	const char *kernel;     /* only this one; NULL: all */
	size_t output_max;      /* 0: a fixed multiple of the input's size */
	unsigned registers_max; /* per thread of rewritten kernels; 0: no limit */
	bool reprint;           /* print every function from its IR, for tests of the printer */
	const char *dump_after; /* name of a pass: call dump behind it; NULL: never */
	void (*dump)(void *data, const char *pass, const char *ptx, size_t len);
	void (*verdict)(void *data, const struct weir_verdict *verdict);
	void *data;
};

struct weir_error {
	uint32_t line, column; /* 0: the error has no place in the text */
	char message[WEIR_REASON_MAX];
};

/* Rewrites a PTX text. The caller frees *@out with free(). 0, or a negative errno with @error
 * filled: -EINVAL: not PTX; -ENOMEM; -EFBIG: the output exceeds its maximum. */
int weir_transform(char **out, size_t *out_len, const char *ptx, size_t len,
		   const struct weir_transform_options *options, struct weir_error *error);

/* The same for an image: PTX, or one or more fatbinary containers. Rewrites each PTX entry and
 * keeps all others. The result is of the same kind as the input. */
int weir_transform_image(void **out, size_t *out_len, const void *image, size_t len,
			 const struct weir_transform_options *options, struct weir_error *error);

/* Builds one kernel of an image, in its forms, as a file of weir/object.h. */
struct weir_object_request {
	const void *image; /* PTX, or fatbinary containers */
	size_t len;
	const char *kernel;
	unsigned sm;    /* 90: compute capability 9.0 */
	unsigned forms; /* bits 1 << enum weir_form */
	/* Per thread of the original kernel; 0: unknown. If known, persistent has two more builds:
	 * one with as many blocks on an SM as the original, one with more registers. */
	unsigned registers;
	/* Only the form that leaves soonest, of those in @forms, in one build: the one with as many
	 * blocks on an SM as the original, if its registers are known. */
	bool soonest;
	/* Compiles the new module's PTX (NUL at @ptx[@len]) to machine code. The caller frees
	 * *@image with free(). 0, or a negative errno with @error filled. NULL: the object contains
	 * the PTX. */
	int (*assemble)(void *data, const char *ptx, size_t len, unsigned sm, void **image,
			size_t *image_len, struct weir_error *error);
	void *data;
};

/* The caller frees *@out with free(). If every form is refused, the object has no entries but the
 * reasons. 0, or a negative errno with @error filled: -ENOENT: no PTX for @sm, or no such kernel;
 * -EINVAL, -ENOMEM, -EFBIG as above; any error of assemble(). */
int weir_object_build(void **out, size_t *out_len, const struct weir_object_request *request,
		      struct weir_error *error);

/* The PTX of an image that suits compute capability @sm (90: 9.0) best. The caller frees *@out with
 * free(). -ENOENT: there is none. */
int weir_image_ptx(char **out, size_t *out_len, const void *image, size_t len, unsigned sm,
		   struct weir_error *error);

/* Bytes that the variables of an image take of a device of compute capability @sm (90: 9.0; 0:
 * any): the most that one of its members that may run there has. Never less than the driver takes
 * for them. WEIR_VARIABLES_UNKNOWN: not such an image, or sizes that are not plain numbers. */
#define WEIR_VARIABLES_UNKNOWN UINT64_MAX
uint64_t weir_image_variables(const void *image, size_t len, unsigned sm);
