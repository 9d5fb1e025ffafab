/* Barriers that finished threads (done with the block) and threads that left (at a safe point,
 * safe-point.h) take part in, so that the others do not wait for ever.
 *
 * Each thread counts the barriers that it passes. All threads pass the same ones; `next` is the
 * number of the next. A thread that left stores this number in a word of shared memory, and the
 * last thread to finish stores it in another word. Then they come to the barrier. Behind it every
 * thread compares the words with the barrier's number. All threads that left store the same number,
 * because nobody passes that barrier and stays. A fast thread may already have stored the number of
 * the following barrier; a slow reader then concludes correctly that nobody had left at this one.
 *
 * barrier.red cannot be used: on newer GPUs, lanes that reach a barrier at different places execute
 * it together by the code of one place. The result is lost for lanes that want it in another
 * register, or not at all. */
#pragma once

#include "passes/pass.h"

struct exit_barriers {
	struct reg *next; /* live through the body */
	struct variable
		*announced;        /* shared memory, barrier numbers: somebody left; all finished */
	struct variable *finished; /* shared memory: number of finished threads */
};

/* From then on the kernel has exit barriers. */
void exit_barriers_init(struct rewrite *rewrite);
/* At the kernel's start, in front of its first barrier. */
void exit_barriers_begin(struct cursor *at, struct rewrite *rewrite);

/* For a thread at its own barrier, with the guard of @like unless that is NULL. If somebody left,
 * control goes to @left and the barrier does not count; NULL: nobody can have left. */
void exit_barrier_wait(struct cursor *at, struct rewrite *rewrite, struct block *left,
		       const struct instruction *like);
/* For a thread that left. No thread passes this barrier. */
void exit_barrier_left(struct cursor *at, struct rewrite *rewrite);
/* Counts a finished thread. Each calls it once, in front of its exit_barrier_absent(). */
void exit_barrier_done(struct cursor *at, struct rewrite *rewrite);
/* For a finished thread at a barrier of the others. Returns a predicate: all threads have finished.
 */
struct reg *exit_barrier_absent(struct cursor *at, struct rewrite *rewrite, struct block *left);
