/* Whether the threads of a block take the same path. */
#pragma once

#include "analysis/cfg.h"

/* Whether all threads reach the same barriers in the same order. True only if that is certain; over
 * budget it is false. Ignores barriers inside called functions. */
bool uniform_barriers(struct function *function, const struct cfg *cfg);

/* Places where lanes of a warp may already have exited, or will exit without coming there. */
struct uniform_exited {
	const bool *blocks;    /* by order; NULL: any block */
	const bool *divergent; /* by register: threads may find different values in it */
};

struct uniform_exited uniform_find_exited(struct function *function, const struct cfg *cfg);
bool uniform_has_exited(const struct uniform_exited *left, const struct instruction *instruction);
