/* Barriers of a block at which some threads are done, or have left (safe.h), and do as the others.
 *
 * Each thread counts the barriers that it comes by, which are the same for all: `next` is the
 * number of the one that comes next. Who has left writes it to a word in shared memory, and who is
 * the last to be done to another; then he comes to the barrier. Behind it everybody looks whether a
 * word has the number of the barrier that he is behind. All who have left write the same, as nobody
 * comes by that barrier and stays; and a fast thread that has written the number of the following
 * one says to a slow reader what he would have read before: not this one.
 *
 * No barrier.red: lanes of a warp that come to a barrier at different places are brought together
 * on newer GPUs, and run it by the code of one place. What it returns is lost to the others, if it
 * goes to another register there, or nobody wants to know it.
 */
#pragma once

#include "passes/pass.h"

struct exit_barriers {
	struct reg *next;          /* through the body */
	struct variable *told;     /* shared memory: numbers of barriers: left, all are done */
	struct variable *finished; /* shared memory: threads that are done with the block */
};

/* 0 or -ENOMEM: the kernel has votes. */
int exit_barriers_init(struct rewrite *rewrite);
/* Where the kernel begins, in front of its first barrier. */
void exit_barriers_begin(struct cursor *at, struct rewrite *rewrite);

/* Of one who stands at a barrier; executed where @like is, if that is not NULL. @left: where to go
 * if somebody has left, then the vote counts as one that has not been; NULL: nobody can have. */
void exit_barrier_wait(struct cursor *at, struct rewrite *rewrite, struct block *left,
		       const struct instruction *like);
/* Of one who has left. Nobody stays. */
void exit_barrier_left(struct cursor *at, struct rewrite *rewrite);
/* One thread more is done; once for each, in front of its exit_barrier_absent(). */
void exit_barrier_done(struct cursor *at, struct rewrite *rewrite);
/* Of one who is done, at a barrier of the others. The predicate: there are no others. */
struct reg *exit_barrier_absent(struct cursor *at, struct rewrite *rewrite, struct block *left);
