/* Safe points: places inside a block where its threads may leave and later resume.
 *
 * A thread that leaves at a loop head leaves alone and tells the others at the next barrier. So
 * each barrier of a kernel with safe points is an exit barrier (exit-barrier.h), behind which the
 * threads know whether somebody left. If so, they all leave in front of this barrier and repeat it
 * when they resume. Finished threads take part only if some threads may reach a barrier that others
 * miss. save/save.c implements leaving and resuming. */
#pragma once

#include "passes/pass.h"

struct safe_point {
	unsigned number;            /* in the order of the list */
	struct block *at;           /* where threads resume */
	struct block *leave;        /* code for leaving, ends with a trap that save.c replaces */
	bool is_common;             /* all threads leave here together, at an exit barrier */
	struct block *head, *check; /* the loop's head, and its check; or NULL */
	struct block *resume;       /* save.c: loads the registers and continues at @at */
	struct safe_point *next;
};

/* State that the passes of resumable share. */
struct safe {
	struct safe_point *points, **points_end;
	unsigned count;
	bool is_uniform;        /* all threads reach the same barriers */
	struct variable *watch; /* shared memory: leave, looked, number of the launch, - */
	struct reg *since;      /* live through the body: %clock at the last check */

	/* From tickets.c. */
	struct block *enter, *draw, *given, *leave;
	struct variable *slots;
	struct reg *ticket, *drawn;
	struct reg *exit_count; /* what `leave` adds to words.left */
	struct reg *saved;      /* in the last worker: number of saved blocks */
};

/* A save begins with the serial of its launch if it holds a block. In the save of each group's
 * first worker, the group's words follow: the flag, and the time of its next poll (64 bits). */
#define SAFE_POINT_GROUP 16u

/* Special values of a ticket. */
#define SAFE_RESUME 0xffffffffu /* a saved block resumes */
#define SAFE_REDRAW 0xfffffffeu /* the saved ticket was refused by an earlier launch */

/* Sets the flags of all groups to @id, the number of the launch, after it was closed. */
void safe_point_set_flags(struct cursor *at, struct rewrite *rewrite, struct operand id);

/* A safe point at @at. Code for leaving is inserted in front of the trap that ends `leave`. */
struct safe_point *safe_point_new(struct rewrite *rewrite, struct block *at, bool is_common);
struct cursor safe_point_leaving(struct rewrite *rewrite, struct safe_point *point);

/* An exit barrier, and a safe point in front of it. */
struct safe_point *safe_point_barrier(struct cursor *at, struct rewrite *rewrite);
/* For a finished thread at a barrier of the others. Returns a predicate: all threads have finished.
 */
struct reg *safe_point_barrier_absent(struct cursor *at, struct rewrite *rewrite);
/* For threads that have finished a block. */
void safe_point_barrier_done(struct cursor *at, struct rewrite *rewrite);
