/* How long the hardware's timeslices of a GPU's clients are. Pure. Measured on an H200; a switch
 * takes 0.2 ms:
 *
 *  - A client below another one gets so short a slice that who comes waits hardly longer than the
 *    switch. While no one above has work it has the GPU to itself and loses nothing.
 *  - Two groups with short slices that both have work switch all the time and get nothing done. So
 *    of several clients that are below others one at a time may have work (scheduler.c stops the
 *    others), and one that is above some and below others gets a longer slice than those.
 *  - So does one with a tight latency objective. Its first work runs while the client whose turn it
 *    was still leaves: with 50 us each, a request of 0.3 ms took 1 ms (H100).
 *  - Where a policy holds nobody, same-level clients below others get slices by weight as well, as
 *    short as the driver's: who comes waits for one of them.
 *  - A client with nobody above gets so long a slice that it is never interrupted by those below.
 *  - Same-level clients with nobody above get slices by weight, together 10 ms for each of them.
 * The hardware ends a slice late by a time that depends on the kernels. With 5 ms parts were up
 * to 1.1 points off and 5 % of the time went to switches, with 10 ms 0.6 points and 3 % (H100).
 * Longer ones let each wait.
 *
 * A client with a compute limit below its part runs until that is used up, in each period of the
 * limit (limit.h). With slices of 10 ms the switches until then took 1.9 % of the GPU (H100). So
 * slices are longer, and its part of a period is a whole number of its slices: the others have had
 * theirs when it is used up, so what the slices give it is what it ran, and is charged so. With 20
 * ms and a limit of 30 % it got 34: it stood between two slices when its reports, which were too
 * low, said 30. A model that gives these figures gives 30 to 31.4 with 15 ms, and the other client
 * 0.6 points more than with 10 ms; that is not measured yet.
 *
 * The parts are not corrected by what clients report: their reports count a kernel's time at the
 * clock at which it was learned, and a correction by them made it worse, up to 7 points. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SLICE_DEFAULT 0u   /* the driver's, 2048 us */
#define SLICE_BELOW   50u  /* us, as all that follow */
#define SLICE_BETWEEN 500u /* above some, below others; or with a tight objective, below others */
#define SLICE_ABOVE   100000u /* above others; nobody of the same level, or only one at a time */
/* Of several same-level clients, nobody above: the mean, and the shortest. */
#define SLICE_SHARE     10000u
#define SLICE_SHARE_MIN 2000u
#define SLICE_LIMITED   20000u /* of one with a compute limit that counts, at most */
/* The same, below others. */
#define SLICE_AMONG     2048u
#define SLICE_AMONG_MIN 1000u

struct slice_rank {
	bool above, below; /* there are higher-level clients; lower-level ones */
	bool tight;        /* it has a latency objective of some ms */
	unsigned n;        /* clients of this level that share the GPU at the same time, this one
			      included; 1: they take turns, or there are no others */
	uint64_t weight, weights; /* this one's, and the sum of all n */
	uint64_t least;           /* the smallest weight of the n */
	uint32_t limit;   /* the smallest compute limit of the n, per cent; 0: none has one */
	uint64_t limited; /* the weight of that one */
};

/* us; SLICE_DEFAULT: nobody else is there. */
uint64_t slice_for(const struct slice_rank *rank);
