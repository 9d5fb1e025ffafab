/* Whether the threads of a block take the same path. */
#pragma once

#include "analysis/cfg.h"

/* Whether all threads reach the same barriers in the same order. *@out is true only if that is
 * certain; over budget it is false. Ignores barriers inside called functions. 0 or -ENOMEM. */
int uniform_barriers(struct function *function, const struct cfg *cfg, bool *out);

/* Places where lanes of a warp may already have exited, or will exit without coming there. */
struct uniform_exited {
	const bool *blocks;    /* by order; NULL: any block */
	const bool *divergent; /* by register: threads may find different values in it */
};

int uniform_find_exited(struct function *function, const struct cfg *cfg,
			struct uniform_exited *out);
bool uniform_has_exited(const struct uniform_exited *left, const struct instruction *instruction);
