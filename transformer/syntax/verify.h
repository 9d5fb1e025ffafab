/* Checks a function's IR between passes. */
#pragma once

#include "syntax/ir.h"

/* Stops with -EINVAL at the first violation. Uses @scratch, which is reset. */
void verify_function(const struct function *function, struct arena *scratch);
