/* How long the hardware's timeslices of a GPU's clients are. Pure. Measured on an H200; a switch
 * takes 0.2 ms:
 *
 *  - A client below another one gets so short a slice that who comes waits hardly longer than the
 *    switch. While no one above has work it has the GPU to itself and loses nothing.
 *  - Two groups with short slices that both have work switch all the time and get nothing done. So
 *    of several clients that are below others one at a time may have work (scheduler.c stops the
 *    others), and one that is above some and below others gets a longer slice than those.
 *  - Where a policy holds nobody, same-level clients below others get slices by weight as well, as
 *    short as the driver's: who comes waits for one of them.
 *  - A client with nobody above gets so long a slice that it is never interrupted by those below.
 *  - Same-level clients with nobody above get slices by weight, together 5 ms for each of them:
 *    longer ones cost nothing, but let each wait. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SLICE_DEFAULT 0u      /* the driver's, 2048 us */
#define SLICE_BELOW   50u     /* us, as all that follow */
#define SLICE_BETWEEN 500u    /* above some, below others */
#define SLICE_ABOVE   100000u /* above others; nobody of the same level, or only one at a time */
#define SLICE_SHARE   5000u   /* the mean of same-level clients, nobody above */
#define SLICE_AMONG   2048u   /* the mean of same-level clients below others */
#define SLICE_MIN     1000u   /* of these, at least */

struct slice_rank {
	bool above, below; /* there are higher-level clients; lower-level ones */
	unsigned n;        /* clients of this level that share the GPU at the same time, this one
			      included; 1: they take turns, or there are no others */
	uint64_t weight, weights; /* this one's, and the sum of all n */
	uint64_t least;           /* the smallest weight of the n */
};

/* us; SLICE_DEFAULT: nobody else is there. */
uint64_t slice_for(const struct slice_rank *rank);
