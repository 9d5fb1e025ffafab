/* How a launcher cuts a grid into tickets (weir/preempt-abi.h). */
#pragma once

#include "preempt-abi.h"

/* Fills in chunk, coarse, fine and tickets, of @hidden with its blocks: tickets of @chunk blocks,
 * and towards the end, for as many as all @workers run at a time, smaller ones, so that workers
 * get done together. Of one size if @even, or if there are too few. */
static inline void weir_cut(struct weir_persistent *hidden, uint32_t chunk, uint32_t workers,
			    int even)
{
	uint32_t blocks = hidden->blocks, fine;
	uint64_t tail = (uint64_t)workers * chunk;

	chunk = chunk < blocks ? chunk : blocks;
	fine = (chunk + 3) / 4;
	tail = tail < blocks / 2 ? tail : blocks / 2;
	hidden->chunk = chunk;
	hidden->fine = fine;
	hidden->coarse = even ? 0 : (blocks - (uint32_t)tail) / chunk;
	if (!hidden->coarse)
		hidden->tickets = (blocks + chunk - 1) / chunk;
	else
		hidden->tickets =
			hidden->coarse + (blocks - hidden->coarse * chunk + fine - 1) / fine;
}
