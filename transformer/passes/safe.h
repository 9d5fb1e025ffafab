/* Safe points: places inside a block that its threads can leave from, and go on at later.
 *
 * Whoever leaves at a loop head does so alone, and tells the others at the next barrier: there each
 * barrier of a kernel with safe points is a vote about whether somebody has left. If so, all who
 * came leave as well, in front of that barrier, and come to it again when they go on. Threads that
 * are done vote, too. What leaving means is save.c's affair.
 *
 * Those who are done vote only if some may come by a barrier that others miss. How is in
 * exit-barrier.h.
 */
#pragma once

#include "passes/pass.h"

struct safe_point {
	struct block *at;           /* where they go on */
	struct block *leave;        /* where they go to leave: ends with a trap, for save.c */
	bool is_common;             /* all threads come to `leave`, from votes */
	struct block *head, *check; /* of a loop, which goes there from time to time; or NULL */
	struct safe_point *next;
};

/* What the passes of the form resumable leave for each other. */
struct safe {
	struct safe_point *points, **points_end;
	unsigned count;
	bool is_uniform;        /* all threads come by the same barriers */
	struct variable *watch; /* shared memory: leave, looked, the launch's number, - */
	struct reg *since;      /* through the body: %clock at the last check */

	/* Of tickets.c. */
	struct block *enter, *draw, *given, *leave;
	struct variable *slots;
	struct reg *ticket, *drawn;
	struct reg *exit_count; /* what leave adds to words.left */
	struct reg *saved;      /* by the last worker: how many blocks are saved */
};

/* A save begins with the serial of the launch, if there is something in it. Behind that, in the
 * save of the first worker of each group, stand the group's words: flag, and the time when it next
 * looks whether the host is to be asked (64 bits). */
#define SAFE_GROUP 16u

/* What stands for a ticket, besides those that are none. */
#define SAFE_RESUME 0xffffffffu /* a saved block is to go on */
#define SAFE_REDRAW 0xfffffffeu /* the one there was is of an earlier launch, which was closed */

/* Who has closed the launch sets the flags of all groups to @id, the launch's number. */
void safe_tell(struct cursor *at, struct rewrite *rewrite, struct operand id);

/* A point at @at. The code that leaves there goes to the end of `leave`, in front of its trap. */
struct safe_point *safe_point_new(struct rewrite *rewrite, struct block *at, bool is_common);
struct cursor safe_point_leaving(struct rewrite *rewrite, struct safe_point *point);

/* A barrier for all threads that have not left, and a point in front of it. */
struct safe_point *safe_barrier(struct cursor *at, struct rewrite *rewrite);
/* Of one who is done, at a barrier of the others. The predicate: there are none. */
struct reg *safe_barrier_absent(struct cursor *at, struct rewrite *rewrite);
/* The same where threads are done with a block. */
void safe_barrier_done(struct cursor *at, struct rewrite *rewrite);
