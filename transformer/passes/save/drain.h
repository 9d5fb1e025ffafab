/* Drain or save: whether a worker finishes its ticket or saves its block when the launch is closed.
 *
 * A worker that finds the launch closed at a safe point estimates how long its ticket still takes.
 * If that is no longer than `drain` (weir_persistent.drain), it runs on. About then the workers
 * that save have left, so finishing does not delay the end of the launch. The block decides once:
 * its first warp that finds the launch closed writes the decision to shared memory. The others read
 * it there, and save the block when the time is up.
 *
 * - The estimate: each worker notes how long its last ticket took. Workers of a group have these
 *   times side by side in the group's first save. The lanes that decide read one time each. Only
 *   tickets that took longer than this one has run tell anything. They must be a quarter of all
 *   that are known, and all of these, an eighth added, must end in time: one block of hundreds that
 *   ends late delays the launch. So kernels with blocks of several lengths are judged by blocks
 *   that lasted as long. Noting a time is one store per ticket, without an atomic operation.
 * - The clocks: times of tickets are differences of %clock. It is exact to the cycle and cheap, and
 *   a block stays on its SM. A ticket of more than 2^32 cycles (two seconds) is misjudged once in
 *   that time.
 * - The time counts from the block's own look. A time since the closing, in one word for the whole
 *   GPU, would be read by every warp at about the same moment, and delay the tickets beside it. */
#pragma once

#include "passes/pass.h"

struct safe_point;

/* For all threads, when a launch begins. */
void drain_enter(struct cursor *at, struct rewrite *rewrite);
/* For the first thread of a worker that has drawn its next ticket, @drawn. */
void drain_next_ticket(struct cursor *at, struct rewrite *rewrite, struct operand drawn,
		       struct operand tickets);
/* For all threads: a ticket of @size blocks begins. */
void drain_begin(struct cursor *at, struct rewrite *rewrite, struct operand size);

/* For lanes @here together, if the launch is closed: to @leave if they are to save their state. */
void drain_choose(struct cursor *at, struct rewrite *rewrite, struct operand here,
		  struct block *leave);

/* For the first thread of a worker that leaves: counts a drained block, or adds to the save how
 * long the ticket has run. */
void drain_leave(struct cursor *at, struct rewrite *rewrite, struct operand words);
/* For a worker that resumes: takes that from the save at @base, by the thread with the predicate
 * @first. */
void drain_restore_time(struct cursor *at, struct rewrite *rewrite, struct operand base,
			struct operand first);
/* For the last worker, which knows how many blocks were @saved, and that tells the host. @launch:
 * the first half of its report. */
void drain_count_saved(struct cursor *at, struct operand words, struct operand saved);
void drain_report(struct cursor *at, struct operand words, struct operand report,
		  struct operand launch);
