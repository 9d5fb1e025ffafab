/* A form is a list of passes over a copy of a kernel.
 *
 * A pass either does its work completely, or refuses the kernel: then the copy is thrown away, and
 * the refusal is what `weir-transform --list` shows. Between two passes the IR must verify.
 */
#pragma once

#include "cfg.h"
#include "edit.h"
#include "ir.h"
#include "live.h"

#include "weir/preempt-abi.h"
#include "weir/transform.h"

enum pass_outcome {
	PASS_DONE,
	PASS_REFUSED,
};

/* A kernel on its way into a form; what one pass leaves for the next. */
struct rewrite {
	struct function *function;
	const struct form *form;
	struct diag refusal; /* why, with PASS_REFUSED */
};

struct pass {
	const char *name;
	int (*run)(struct rewrite *rewrite); /* enum pass_outcome, or a negative errno */
};

struct form {
	enum weir_form id;
	const char *name;                 /* "persistent" */
	const char *suffix;               /* of the rewritten kernel's name */
	const struct pass *const *passes; /* up to a NULL */
};

extern const struct form forms[];
extern const size_t form_count;

/* Returns PASS_REFUSED. @at: the place in the text that is to blame. */
int pass_refuse(struct rewrite *rewrite, struct position at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* One line for each pass: extern const struct pass pass_NAME; */
