/* Checks a function's IR between passes. */
#pragma once

#include "syntax/ir.h"

/* 0, or -EINVAL with the first violation in @diag. */
int verify_function(const struct function *function, struct diag *diag);
