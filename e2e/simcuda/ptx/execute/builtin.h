/* Device functions that are not in the text. */
#pragma once

#include "simcuda/ptx/program/program.h"

/* What runs instead of a function that is declared but not defined; NULL: nothing does. */
ptx_exec *ptx_builtin_find(const struct ptx_function *f);
