/* Copies of a loop's body. */
#pragma once

#include "analysis/cfg.h"

/* Lays @copies of the loop's blocks out one behind the other, the original included: each back edge
 * goes to the next copy's head, those of the last to the first's. So what is put at the original
 * head is run once in as many rounds. The loop must not have tables of targets. The cfg is as it
 * was, and does not know the new blocks. 0 or -ENOMEM. */
int unroll_loop(struct function *function, const struct loop *loop, unsigned copies);
