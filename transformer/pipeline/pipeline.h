/* A module on its way through: parsed once, and for each kernel and form a copy that goes through
 * the form's passes and is printed.
 */
#pragma once

#include "passes/pass.h"
#include "syntax/text.h"

struct detached;

struct pipeline {
	const struct weir_transform_options *options; /* dumps and verdicts */
	struct arena arena, body_arena;               /* of the module; of the function at hand */
	struct diag diag;
	struct module module;
	struct text out;
	struct detached *detached; /* the kernel leaves its module (detach.h), or NULL */
};

/* Reads the module; see the diag. To be closed in any case. */
int pipeline_open(struct pipeline *p, const char *ptx, size_t len,
		  const struct weir_transform_options *options);
void pipeline_close(struct pipeline *p);

/* One of the kernels that a kernel is rewritten into. */
struct build {
	const struct form *form;
	const char *suffix;     /* of the name, before the form's; "" but for further builds */
	unsigned registers_max; /* of a thread; 0: no limit */
};

/* Prints the kernel @f so, or refuses it; the verdict says which. Not 0: see the diag. */
int pipeline_rewrite(struct pipeline *p, struct function *f, const struct build *build);

/* What was printed, for free(); NULL: see the diag. */
char *pipeline_take(struct pipeline *p, size_t *len);

/* The error of the diag, told to whoever called the library. */
int pipeline_report(const struct diag *diag, struct weir_error *error);
