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
	struct variable *watch; /* shared memory, see below */
	struct reg *since;      /* live through the body: %clock when the period began */

	/* From tickets.c. */
	struct block *enter, *draw, *given, *leave;
	struct block *next; /* behind the body */
	struct variable *slots;
	struct reg *ticket, *drawn;
	struct reg *exit_count; /* what `leave` adds to words.left */
	struct reg *saved;      /* in the last worker: number of saved blocks */
};

/* A save begins with a header: the serial of its launch if it holds a block (32 bits); at 4 what
 * kept.c notes (32 bits); at 8 how long its ticket has run, in cycles, and the kind of this ticket.
 * In the save of each group's first worker, the group's words are there as well: at 16 the flag, at
 * 24 the time of its next poll (64 bits), and at 32 for each worker the kind and cycles of its last
 * ticket. The kind of a ticket is weir_persistent.kind plus its number of blocks. */
#define SAFE_POINT_GROUP  16u
#define SAFE_POINT_HEADER (32 + 8 * SAFE_POINT_GROUP)

/* A worker's words in shared memory: whether it is to leave; %clock when a warp last looked; the
 * number of the launch; %clock until which the ticket may run on, if it is to be finished; at 16
 * %clock when the ticket began, 0: none has, and its kind; the address of the worker's last ticket
 * in the group's save, less 32 (drain.h). */
#define WATCH_BYTES 32
enum watch_state {               /* only grows during a launch */
		   WATCH_OPEN,   /* as far as is known, the launch is not closed */
		   WATCH_CLOSED, /* a warp of this block has closed it, and sets the flags */
		   WATCH_ASKED,  /* it is closed */
		   WATCH_DRAIN,  /* the ticket is to be finished */
		   WATCH_SAVE,   /* the block is to be saved */
};

/* Special values of a ticket. */
#define SAFE_RESUME 0xffffffffu /* a saved block resumes */
#define SAFE_REDRAW 0xfffffffeu /* the saved ticket was refused by an earlier launch */

/* Now the period that began at the last multiple of weir_persistent.look is the present one. */
void safe_point_begin_period(struct cursor *at, struct rewrite *rewrite);

/* Sets the flag of every @n-th group from @first on to @id, the number of the launch, after it was
 * closed. */
void safe_point_set_flags(struct cursor *at, struct rewrite *rewrite, struct operand id,
			  struct operand first, struct operand n);

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
