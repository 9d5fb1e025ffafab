/* weirctl profile: what the agent knows of kernels. A line of JSON is a profile. */
#pragma once

#include "weirctl/ask.h"

#define PROFILE_VERBS "list, export, import or forget"

/* Runs the verb that is the operand. Returns the exit status. */
int profile_run(struct arguments *arguments);
