/* PTX text to IR. */
#pragma once

#include "syntax/edit.h"
#include "syntax/ir.h"

/* Parses the text outside of bodies. @text must outlive the module. 0, or a negative errno with the
 * diag of @arena filled: -EINVAL: not PTX; -ENOMEM. */
int parse_module(struct module *module, struct arena *arena, const char *text, size_t len);

/* Parses the body of @function into @arena. An error stops it (diag.h). */
void parse_body(struct function *function, struct arena *arena);

/* A second function with the same head and body under another name. Its body is not parsed yet. It
 * is in no list of the module; the caller prints it. */
struct function *parse_copy(struct function *function, const char *name);
