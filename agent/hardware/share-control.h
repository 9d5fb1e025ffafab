/* Corrects the slices of same-level clients, so that each gets its part of the GPU by weight. Pure.
 *
 * Slices in proportion to weight are right within 1 to 4 points: the hardware ends a slice late, by
 * a time that depends on the kernels, and a client with gaps between its kernels loses the rest of
 * its slices. So each window compares what the clients got with what they should have got, and
 * changes a factor of each client's weight by a quarter of the difference. A factor stays between a
 * third and three.
 *
 * What a client got is the GPU time that it reports (`executed` of the status page): the predicted
 * time of the launches that are finished. Events around a launch make short kernels look longer, so
 * a report is first divided by what the client reports for a second in which it had the GPU alone,
 * as far as that is known; by no more than a quarter, because gaps are no error.
 *
 *  - A client that had no work in the window is left out, and keeps its factor.
 *  - A client that had work for a part of the window only would not use a longer slice: it is left
 *    out, and its factor returns to one. So does that of one whose container has a compute limit.
 *  - A window in which a client with work finished nothing is not judged: the next one includes it.
 *  - Clients that together report more than the GPU can do are not believed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SHARE_WINDOW_NS 250000000ull
#define SHARE_WINDOWS   8u    /* at most, until all clients have finished something */
#define SHARE_ONE       1024u /* a factor of 1 */
#define SHARE_BOUND     3u
#define SHARE_GAIN      4  /* a window changes the factor by 1/4 of the relative error */
#define SHARE_FADE      16 /* or takes 1/16 of it back */

/* A client's part. Zero when it comes. */
struct share_client {
	struct share_client *next; /* of the same level; the caller makes the list for each call */
	uint64_t weight;
	bool apart; /* it has no full use of its slices for other reasons */
	bool idle;  /* it had no work in the last window */

	uint32_t factor; /* SHARE_ONE: 1; 0: new */
	/* Counters of the status page, in ns, when they were read last. */
	bool known;
	uint64_t executed, demand_time;
	/* ns in the window: that it ran, and in which it had work. */
	uint64_t got, worked;
	/* ns of the same times, in which it had the GPU alone. */
	struct {
		uint64_t reported, by_clock;
	} alone;
};

struct share_control {
	uint64_t begun;     /* ns, the window; 0: none */
	unsigned n_windows; /* in it */
};

/* What @client's status page says now. Call it for all clients, then share_control(). */
void share_read(struct share_client *client, uint64_t executed, uint64_t demand_time);
/* Ends the window, unless it is not over. Returns how many clients had work in it; UINT_MAX: it is
 * not over. */
unsigned share_control(struct share_control *control, struct share_client *clients, uint64_t now);

/* @weight with the client's factor. */
static inline uint64_t share_weight(const struct share_client *client, uint64_t weight)
{
	return weight * (client->factor ? client->factor : SHARE_ONE);
}
