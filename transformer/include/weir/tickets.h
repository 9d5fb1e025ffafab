/* How a launcher divides a grid into tickets (weir/preempt-abi.h). */
#pragma once

#include "preempt-abi.h"

/* Where the blocks of a ticket lie in the grid. */
enum weir_ticket_order {
	WEIR_TICKETS_IN_ROW, /* consecutive blocks */
	WEIR_TICKETS_APART,  /* blocks that run together lie together, where the grid allows it */
};

/* A launch with at least so many workers, and tickets for each, can have a poller: it costs one
 * worker, and a round of tickets where they come out even. */
#define WEIR_POLLER_WORKERS 512u
#define WEIR_POLLER_ROUNDS  16u

/* Sets `across` and `step` of @hidden for its grid and tickets of @chunk blocks, if the first
 * @region blocks have room for such tickets. */
static inline void weir_spread(struct weir_persistent *hidden, uint32_t chunk, uint32_t workers,
			       uint32_t region)
{
	const uint32_t *grid = hidden->grid;
	unsigned axis = grid[2] > 1 ? 2 : grid[1] > 1 ? 1 : 0;
	uint64_t below = axis == 2 ? (uint64_t)grid[0] * grid[1] : axis == 1 ? grid[0] : 1;
	uint32_t rows = (uint32_t)(workers / below);

	while (rows > 1 && region / (rows * below * chunk) < 4)
		rows /= 2;
	if (!rows || chunk == 1 || region < rows * below * chunk)
		return;
	hidden->across = (uint32_t)(rows * below);
	hidden->step[0] = 0;
	hidden->step[axis] = rows;
}

/* Whether @workers less one take about as long for the tickets of @hidden. */
static inline int weir_affords_poller(const struct weir_persistent *hidden, uint32_t workers)
{
	uint32_t tickets = hidden->tickets;

	return workers >= WEIR_POLLER_WORKERS && tickets / workers >= WEIR_POLLER_ROUNDS &&
	       (tickets + workers - 1) / workers == (tickets + workers - 2) / (workers - 1);
}

/* Divides the grid of @hidden into tickets of @chunk blocks (at least one). Tickets become smaller
 * towards the end, so that the @workers finish together: a quarter of the size for as many blocks
 * as all workers run at a time, and single blocks at last. With @even, or in a small grid, all
 * tickets have one size. */
static inline void weir_cut(struct weir_persistent *hidden, uint32_t chunk, uint32_t workers,
			    int even, enum weir_ticket_order order)
{
	uint32_t blocks = hidden->blocks, fine, rest, medium, panel;
	uint64_t tail = (uint64_t)workers * chunk;

	chunk = chunk < blocks ? chunk : blocks;
	chunk = chunk ? chunk : 1;
	fine = (chunk + 3) / 4;
	tail = tail < blocks / 2 ? tail : blocks / 2;
	hidden->chunk = chunk;
	hidden->fine = fine;
	hidden->across = hidden->step[0] = 1;
	hidden->step[1] = hidden->step[2] = 0;
	if (!even && order == WEIR_TICKETS_APART)
		weir_spread(hidden, chunk, workers, blocks - (uint32_t)tail);
	panel = hidden->across;
	hidden->coarse = even ? 0 : (blocks - (uint32_t)tail) / chunk / panel * panel;
	if (!hidden->coarse) {
		hidden->tickets = (blocks + chunk - 1) / chunk;
		hidden->single = hidden->tickets;
		return;
	}
	rest = blocks - hidden->coarse * chunk;
	medium = rest > 2 * workers ? (rest - 2 * workers) / fine / panel * panel : 0;
	hidden->single = hidden->coarse + medium;
	hidden->tickets = hidden->single + rest - medium * fine;
}
