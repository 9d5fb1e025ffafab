/* Runs a kernel natively and in its forms on the interpreter, as a launcher does on a GPU, and
 * compares the memory.
 *
 * The interpreter runs a block from start to end on the calling thread. Workers of a persistent
 * launch run on several threads, and the demand comes at random moments. */
#pragma once

#include "problem.h"

/* Transforms and loads the kernel and runs it natively. False: see the message. */
bool run_init(struct run *run, const struct problem *problem, uint64_t seed);
void run_deinit(struct run *run);

/* Runs the form once with a random schedule. False: see the message. */
bool run_form(struct run *run, enum weir_form form);
