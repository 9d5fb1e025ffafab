/* Quotas: a launch leaves some SMs to others and goes on elsewhere (weir/preempt-abi.h).
 *
 * A worker looks before it draws a ticket, not behind: a drawn ticket cannot be given back. Where
 * memory is busy, the look takes as long as the drawing, which is 5 per cent of a kernel (H100). So
 * persistent workers do not look until the launch is asked to leave some SMs. Then the word that
 * they draw from is void, which a worker finds where its ticket is refused. A launch without `room`
 * does not look.
 *
 * A worker leaves by an addition to the word with the quota and the number of those that have left,
 * and what was there before tells whether that quota still holds. So the poll that enlarges the
 * quota knows of every worker that left by the former one, and no worker leaves by a quota that is
 * gone.
 *
 * A worker that draws ahead decides to leave before the last block of its ticket. It counts as gone
 * from then on, and in words.left only when it is. */
#pragma once

#include "passes/pass.h"

/* A ticket that stands for none: larger than all, as those of a closed launch are, so that a worker
 * which leaves last looks at the words: others may have left by a quota. Also what a worker has in
 * the end that stayed. None of the special values of resumable (safe-point.h). */
#define QUOTA_REFUSED 0xfffffffdu

/* Persistent, for all threads, in front of the first drawing. The first thread (@leader, a
 * predicate) makes draws void if the launch begins with a quota. */
void quota_begin(struct cursor *at, struct rewrite *rewrite, struct operand leader);

struct quota_draw {
	struct operand
		drawn; /* the ticket; with WEIR_TICKET_ASKED: the next draw need not be made */
	struct operand slot; /* in shared memory, for the ticket without that bit */
	struct operand tickets;
	struct block *refused; /* @drawn is in the slot, and refused */
	struct block *given;   /* it is neither in the slot nor known to be valid */
	struct block *valid;   /* it is in the slot, and valid */
};

/* Persistent, for the first thread, whose ticket is not valid: goes on at one of the blocks of
 * @draw, with another ticket if the draw was void. */
void quota_refused(struct cursor *at, struct rewrite *rewrite, const struct quota_draw *draw);

/* Resumable, for all threads, in front of the drawing. The first thread (@leader, a predicate) of a
 * worker that must leave goes to @drawn, behind it, with QUOTA_REFUSED less @dealt as its ticket.
 */
void quota_look(struct cursor *at, struct rewrite *rewrite, struct operand leader,
		struct operand ticket, struct operand dealt, struct block *drawn);

/* The address of the time of the next poll at which the quota is looked for. Resumable has one of
 * its own: its polls at safe points, which are many, do not look, as that takes registers where the
 * kernel has its own. */
struct operand quota_time(struct cursor *at, struct rewrite *rewrite, struct operand words);

/* For the winner of a poll: the SMs that are to be left, and the word with the quota. */
struct quota_read {
	struct operand sms, word;
};
/* The word, and into @asked (64 bits) what asks the launch to leave or, if there is `room`, whether
 * anything is to be looked at. Nothing waits for these reads yet: a poll delays its block, also at
 * a launch's begin. */
struct quota_read quota_read(struct cursor *at, struct rewrite *rewrite, struct operand words,
			     struct operand asked);
/* The SMs, and what asks the launch to leave. */
void quota_read_more(struct cursor *at, struct rewrite *rewrite, const struct quota_read *read,
		     struct operand asked);
/* The same, then. @asked (64 bits): not 0 if the launch is to be closed anyway; becomes 1
 * if it is to be closed for the sake of those that have left. */
void quota_poll(struct cursor *at, struct rewrite *rewrite, struct operand words,
		const struct quota_read *read, struct operand asked);

/* For the last worker: counts, and prepares the word for the next launch. @is_done: a predicate. */
void quota_end(struct cursor *at, struct rewrite *rewrite, struct operand is_done);
