/* weirctl profile: what the agent knows of kernels. A line of JSON is a profile, or
 * a set of kernels that ran at the same time. */
#pragma once

#include "weirctl/ask.h"

#define PROFILE_VERBS "list, sets, export, import or forget"

/* Runs the verb that is the operand. Returns the exit status. */
int profile_run(struct arguments *arguments);
