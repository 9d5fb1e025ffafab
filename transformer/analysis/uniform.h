/* Do all threads of a block go the same way? */
#pragma once

#include "analysis/cfg.h"

/* Do they come by the same barriers, in the same order? *@out: surely. 0 or -ENOMEM. Conservative:
 * where finding out would take too long, the answer is no. Barriers inside called functions are not
 * looked at. */
int uniform_barriers(struct function *function, const struct cfg *cfg, bool *out);

/* Where a thread may find that others of its warp have left the kernel, or will leave it without
 * coming by. */
struct uniform_exited {
	const bool *blocks;    /* by order; NULL: it may be so anywhere */
	const bool *divergent; /* by register: threads may find different values in it */
};

int uniform_find_exited(struct function *function, const struct cfg *cfg,
			struct uniform_exited *out);
bool uniform_has_exited(const struct uniform_exited *left, const struct instruction *instruction);
