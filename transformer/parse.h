/* PTX text to IR. */
#pragma once

#include "edit.h"
#include "ir.h"

/* Reads what stands outside bodies. @text must outlive the module. 0, or a negative errno with the
 * diag filled: -EINVAL for what is no PTX, -ENOMEM. */
int parse_module(struct module *module, struct arena *arena, struct diag *diag, const char *text,
		 size_t len);

/* Reads the body of @function into @arena. 0, or a negative errno with the diag filled. */
int parse_body(struct function *function, struct arena *arena, struct diag *diag);

/* A second function with the same head and body under another name, not read yet, and already
 * listed in module->added. */
struct function *parse_copy(struct function *function, const char *name);
