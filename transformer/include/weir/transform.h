/* The transformer: PTX in, PTX out, with kernels in forms that can leave while they run.
 *
 * The original kernels stay as they are, byte for byte; rewritten ones stand behind them in the
 * same module, so that globals and constants are shared. A kernel `k` in the form persistent is
 * called `k__weir_persistent`. What a launcher must know about rewritten kernels is in
 * preempt-abi.h.
 *
 * As a library it never exits, prints or keeps state between calls; memory and time are linear in
 * the size of the input. Safe to call from several threads.
 */
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

/* The limit with which as many blocks of a rewritten kernel fit on an SM as of the original, which
 * has @native registers a thread: they are given out in eights, and 32 are there for every thread.
 */
static inline unsigned weir_registers_max(unsigned native)
{
	return native <= 32 ? 32 : (native + 7) / 8 * 8;
}

/* That of a further build, with fewer of its blocks on an SM; 0: there is none. */
static inline unsigned weir_registers_wide(unsigned native)
{
	return weir_registers_max(native) + 8 > 255 ? 0 : weir_registers_max(native) + 8;
}

#define WEIR_REASON_MAX 256

/* What became of one kernel in one form. */
struct weir_verdict {
	const char *kernel;
	enum weir_form form;
	bool eligible;
	uint32_t line;      /* of the text, 0: none to blame */
	const char *reason; /* of a refusal, "" otherwise; both strings live during the call */
	/* Resumable: a worker's save is save_fixed + save_per_thread * threads + dynamic shared
	 * memory; both 0: nothing is ever saved. */
	uint32_t save_fixed, save_per_thread;
};

struct weir_transform_options {
	unsigned forms;         /* bits 1 << enum weir_form */
	const char *kernel;     /* only this one; NULL: all */
	size_t output_max;      /* 0: a fixed multiple of the input */
	unsigned registers_max; /* of a thread, in rewritten kernels; 0: no limit */
	bool reprint;           /* print every function anew, for tests of the printer */
	const char *dump_after; /* name of a pass: call dump behind it */
	void (*dump)(void *data, const char *pass, const char *ptx, size_t len);
	void (*verdict)(void *data, const struct weir_verdict *verdict);
	void *data;
};

struct weir_error {
	uint32_t line, column; /* 0: no place of the text */
	char message[WEIR_REASON_MAX];
};

/* PTX to PTX. *@out is for free(). 0, or a negative errno with @error filled: -EINVAL for what is
 * no PTX, -ENOMEM, -EFBIG for an output beyond the maximum. */
int weir_transform(char **out, size_t *out_len, const char *ptx, size_t len,
		   const struct weir_transform_options *options, struct weir_error *error);

/* The same for PTX, a fatbinary container, or several behind each other. Each PTX entry is
 * rewritten, other entries are kept; the result is of the same kind as the input. */
int weir_transform_image(void **out, size_t *out_len, const void *image, size_t len,
			 const struct weir_transform_options *options, struct weir_error *error);

/* One kernel of an image, in forms, as a file of weir/object.h. */
struct weir_object_request {
	const void *image; /* PTX, or fatbinary containers */
	size_t len;
	const char *kernel;
	unsigned sm;    /* 90: compute capability 9.0 */
	unsigned forms; /* bits 1 << enum weir_form */
	/* Of a thread of the kernel as it is; 0: not known. If it is, the form persistent is built
	 * two times more: so that as many of its blocks fit on an SM, and with more registers. */
	unsigned registers;
	/* Makes machine code of the new module's PTX, which ends with NUL behind @len; *@image is
	 * for free(). 0, or a negative errno with @error filled. NULL: the object holds the PTX. */
	int (*assemble)(void *data, const char *ptx, size_t len, unsigned sm, void **image,
			size_t *image_len, struct weir_error *error);
	void *data;
};

/* *@out is for free(). A kernel that is refused in every form makes an object without entries, for
 * the reasons in it. 0, or a negative errno with @error filled: -ENOENT: no PTX for @sm, or no such
 * kernel; -EINVAL, -ENOMEM, -EFBIG as above; what assemble() returned. */
int weir_object_build(void **out, size_t *out_len, const struct weir_object_request *request,
		      struct weir_error *error);

/* The PTX in an image that suits a device of compute capability @sm (90: 9.0) best. *@out is for
 * free(). -ENOENT: none. */
int weir_image_ptx(char **out, size_t *out_len, const void *image, size_t len, unsigned sm,
		   struct weir_error *error);
