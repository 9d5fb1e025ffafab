/* PTX text to IR. */
#pragma once

#include "syntax/edit.h"
#include "syntax/ir.h"

/* Parses the text outside of bodies. @text must outlive the module. 0, or a negative errno with
 * @diag filled: -EINVAL: not PTX; -ENOMEM. */
int parse_module(struct module *module, struct arena *arena, struct diag *diag, const char *text,
		 size_t len);

/* Parses the body of @function into @arena. 0, or a negative errno with @diag filled. From then on
 * edits of the module report errors to @diag. */
int parse_body(struct function *function, struct arena *arena, struct diag *diag);

/* A second function with the same head and body under another name. Its body is not parsed yet. It
 * is in no list of the module; the caller prints it. NULL: out of memory, reported to the module's
 * diag. */
struct function *parse_copy(struct function *function, const char *name);
