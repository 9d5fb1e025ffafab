/* Do all threads of a block come by the same barriers, in the same order? */
#pragma once

#include "cfg.h"

/* *@out: surely. 0 or -ENOMEM. Conservative: where finding out would take too long, the answer is
 * no. Barriers inside called functions are not looked at. */
int uniform_barriers(struct function *function, const struct cfg *cfg, bool *out);
