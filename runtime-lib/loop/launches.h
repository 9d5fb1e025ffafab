/* The launches of a loop's kernel: what they begin with, what they report, how long they run. */
#pragma once

#include "loop/inside.h"

/* Also says which words the kernel must look at. */
int launches_begin(struct weir_loop *loop, void **params);

/* Where the last launch reports, or has. */
__attribute__((returns_nonnull)) const struct weir_loop_report *
launches_last(const struct weir_loop *loop);
/* Any thread. NULL: the kernel has not left. */
const struct weir_loop_report *launches_report(const struct weir_loop *loop);

/* A kernel may stay for hours. How long it has run is told meanwhile, by the host's clock. */
void launches_watch(struct weir_loop *loop, uint64_t now);
/* It has left, and says how long it ran. */
void launches_left(struct weir_loop *loop, const struct weir_loop_report *report);
