/* How a launcher cuts a grid into tickets (weir/preempt-abi.h). */
#pragma once

#include "preempt-abi.h"

/* Fills in chunk, coarse, fine, single and tickets, of @hidden with its blocks: tickets of @chunk
 * blocks (at least one), and towards the end smaller ones, so that @workers get done together: of a
 * quarter for as many blocks as they all run at a time, and the last of them one by one. Of one
 * size if @even, or if there are too few. */
static inline void weir_cut(struct weir_persistent *hidden, uint32_t chunk, uint32_t workers,
			    int even)
{
	uint32_t blocks = hidden->blocks, fine, rest, medium;
	uint64_t tail = (uint64_t)workers * chunk;

	chunk = chunk < blocks ? chunk : blocks;
	chunk = chunk ? chunk : 1;
	fine = (chunk + 3) / 4;
	tail = tail < blocks / 2 ? tail : blocks / 2;
	hidden->chunk = chunk;
	hidden->fine = fine;
	hidden->coarse = even ? 0 : (blocks - (uint32_t)tail) / chunk;
	if (!hidden->coarse) {
		hidden->tickets = (blocks + chunk - 1) / chunk;
		hidden->single = hidden->tickets;
		return;
	}
	rest = blocks - hidden->coarse * chunk;
	medium = rest > 2 * workers ? (rest - 2 * workers) / fine : 0;
	hidden->single = hidden->coarse + medium;
	hidden->tickets = hidden->single + rest - medium * fine;
}

/* How many blocks of the grid come before those of @ticket, in the order of tickets. */
static inline uint32_t weir_blocks_before(const struct weir_persistent *hidden, uint32_t ticket)
{
	uint64_t coarse = (uint64_t)hidden->coarse * hidden->chunk, before;

	if (ticket >= hidden->tickets)
		return hidden->blocks;
	if (!hidden->coarse || ticket <= hidden->coarse)
		before = (uint64_t)ticket * hidden->chunk;
	else if (ticket <= hidden->single)
		before = coarse + (uint64_t)(ticket - hidden->coarse) * hidden->fine;
	else
		before = hidden->blocks - (hidden->tickets - ticket);
	return before < hidden->blocks ? (uint32_t)before : hidden->blocks;
}
