/* What must hold of a function's IR between any two passes; for tests and --verify. */
#pragma once

#include "syntax/ir.h"

/* 0, or -EINVAL with the first thing that is wrong in @diag. */
int verify_function(const struct function *function, struct diag *diag);
