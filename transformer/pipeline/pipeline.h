/* Parses a module once. For each kernel and form it parses a copy, runs the form's passes over it
 * and prints it. */
#pragma once

#include "passes/pass.h"
#include "syntax/text.h"

struct detached;

struct pipeline {
	const struct weir_transform_options *options; /* dumps and verdicts */
	struct arena arena, body_arena;               /* of the module; of the current function */
	struct arena scratch;                         /* for verify_function() */
	struct diag diag;
	struct module module;
	struct text out;
	struct detached *detached; /* the kernel gets a module of its own (detach.h), or NULL */
};

/* Parses the module; errors are in the diag. Call pipeline_close() in any case. */
int pipeline_open(struct pipeline *p, const char *ptx, size_t len,
		  const struct weir_transform_options *options);
void pipeline_close(struct pipeline *p);

/* One rewritten version of a kernel. */
struct build {
	const struct form *form;
	const char *
		suffix; /* of the kernel's name, before the form's suffix; "" for the first build */
	unsigned registers_max; /* per thread; 0: no limit */
};

/* Prints the kernel @f in this build, or refuses it and says so in the verdict. Other errors stop
 * it (diag.h). */
void pipeline_rewrite(struct pipeline *p, struct function *f, const struct build *build);

/* Stops with the error of `out`, if it has one. */
void pipeline_finish(struct pipeline *p);

/* Copies the diag's error to the library's caller. */
int pipeline_report(const struct diag *diag, struct weir_error *error);
