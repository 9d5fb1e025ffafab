/* Loop unrolling. */
#pragma once

#include "analysis/cfg.h"

/* Makes @copies of the loop's blocks, the original included. Each back edge goes to the head of the
 * next copy; the last copy's goes to the original head. Code in the original head then runs once in
 * @copies iterations. The loop must not contain branch tables. The cfg is not updated. */
void unroll_loop(struct function *function, const struct loop *loop, unsigned copies);
