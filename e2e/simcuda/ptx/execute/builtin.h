/* Device functions that the system provides. */
#pragma once

#include "simcuda/ptx/program/program.h"

/* The implementation of a function that is declared but not defined; NULL: there is none. */
ptx_exec *ptx_builtin_find(const struct ptx_function *f);
