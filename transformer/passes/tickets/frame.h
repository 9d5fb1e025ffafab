/* The loop around the blocks of the grid (tickets.c), as the files that write its parts see it. */
#pragma once

#include "passes/pass.h"

struct frame {
	struct rewrite *rewrite;
	struct function *f;
	struct variable *slots;    /* two words in shared memory for tickets */
	bool borrowed;             /* the words are the kernel's own memory */
	struct reg *drawn;         /* draw .. given, through the body; used by the first thread */
	struct reg *left, *count;  /* live through the body */
	struct reg *ticket, *line; /* live from given to first */
	struct reg *axis[3];       /* live through the body; NULL, but never for x: not used */
	struct block *first_draw, *draw, *given, *told, *first, *segment, *body, *used_up, *leave,
		*end;
};

/* tickets.c. */

/* A predicate: this is the first thread of the block. */
struct operand tickets_leader(struct cursor *at, struct frame *fr);

/* Synchronises all threads that have not left (safe-point.h). bar.sync makes better code, but needs
 * whole warps, which exit barriers and reconvergence.h do not guarantee. */
void tickets_barrier(struct cursor *at, struct frame *fr);

/* Makes earlier writes, of this thread and those it synchronised with, visible to the whole GPU. */
void tickets_fence(struct cursor *at);

/* draw.c: @enter; draw and first_draw; given. */
void draw_enter(struct frame *fr, struct block *enter);
void draw_tickets(struct frame *fr);
void draw_given(struct frame *fr);

/* segment.c: first; segment; next and used up. */
void segment_first(struct frame *fr);
void segment_take(struct frame *fr);
void segment_next(struct frame *fr);

/* leave.c: leave and end. */
void leave_last(struct frame *fr);
