/* Immediate post-dominators: the first block that every path from a block to the end passes. */
#pragma once

#include "analysis/cfg.h"

#define POSTDOMINATOR_NONE (~0u) /* every path ends in a trap or never ends */

/* By block order: the order of the post-dominator; cfg->count stands for the kernel's end. In the
 * function's arena. NULL: the graph needs more steps than its size allows. */
unsigned *postdominator_build(struct function *function, const struct cfg *cfg);
