/* PTX text to IR. */
#pragma once

#include "syntax/edit.h"
#include "syntax/ir.h"

/* Reads what stands outside bodies. @text must outlive the module. 0, or a negative errno with the
 * diag filled: -EINVAL for what is no PTX, -ENOMEM. */
int parse_module(struct module *module, struct arena *arena, struct diag *diag, const char *text,
		 size_t len);

/* Reads the body of @function into @arena. 0, or a negative errno with @diag filled, which edits of
 * the module report to from then on. */
int parse_body(struct function *function, struct arena *arena, struct diag *diag);

/* A second function with the same head and body under another name, not read yet, and in no list of
 * the module: whoever made it also prints it. NULL: no memory, said in the module's diag. */
struct function *parse_copy(struct function *function, const char *name);
