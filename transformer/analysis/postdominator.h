/* Where the ways from a block meet again, at the latest: its immediate post-dominator. */
#pragma once

#include "analysis/cfg.h"

#define POSTDOMINATOR_NONE (~0u) /* no way leads to an end, except by a trap */

/* By the order of the blocks: the order of the meeting point; cfg->count: the kernel's end. Into
 * the function's arena. 0, -ENOMEM, or -E2BIG. */
int postdominator_build(struct function *function, const struct cfg *cfg, unsigned **out);
