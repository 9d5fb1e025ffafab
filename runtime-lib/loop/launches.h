/* The launches of a loop's kernel: parameters, reports, and time on the GPU. */
#pragma once

#include "loop/inside.h"

/* Also says which words the kernel must look at. */
int launches_begin(struct weir_loop *loop, void **params);

/* Where the last launch writes its report. */
__attribute__((returns_nonnull)) const struct weir_loop_report *
launches_last(const struct weir_loop *loop);
/* Any thread. NULL: the kernel has not left. */
const struct weir_loop_report *launches_report(const struct weir_loop *loop);

/* A kernel may stay for hours, so its time is reported meanwhile, by the host's clock. True: it has
 * begun since the last call; before, it waited at its gate. */
bool launches_watch(struct weir_loop *loop, uint64_t now);
/* The kernel has left; @report says how long it ran. */
void launches_left(struct weir_loop *loop, const struct weir_loop_report *report);
/* A kernel that left because all blocks waited is wanted back at @now, or as soon as it had left.
 */
void launches_back(struct weir_loop *loop, uint64_t now);
