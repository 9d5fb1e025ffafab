/* What libweir and a loop tell each other. Without libweir in the process these functions do
 * nothing. */
#pragma once

#include "loop/inside.h"

/* Before all others. It takes some microseconds, which a run should not. */
void governed_find(struct weir_loop *loop);

void governed_begin(struct weir_loop *loop);
void governed_end(struct weir_loop *loop);

/* Before each launch: a gate in front of it, and the words that the kernel looks at. */
void governed_launch(struct weir_loop *loop, struct weir_loop_args *args);

/* The kernel has left, and is not launched again at once. */
void governed_left(struct weir_loop *loop);

/* True: the kernel must leave, and be launched again with the words that hold now. */
bool governed_changed(struct weir_loop *loop, uint64_t now);
