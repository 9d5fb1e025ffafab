/* How long the hardware's timeslices of a GPU's clients are. Pure. Measured on an H200; a switch
 * takes 0.2 ms:
 *
 *  - A client below another one gets so short a slice that who comes waits hardly longer than the
 *    switch. While no one above has work it has the GPU to itself and loses nothing. With 10 us
 *    instead of 50 who comes waited 20 us less (H100). With 5 us a kernel beside products came 4 us
 *    sooner than with 50, a burst 47 us (H200). All of them are too short to get anything done:
 *    about 0.1 ms of each slice behind a switch are used up by restoring what ran.
 *  - Two groups with short slices that both have work switch all the time and get nothing done. So
 *    of several clients that are below others one at a time may have work (scheduler.c stops the
 *    others), and one that is above some and below others gets a longer slice than those.
 *  - So does one with a tight latency objective, or with any if its work fits into such a slice.
 *    Its first work runs while the client whose turn it was still leaves: with 50 us each, a
 *    request of 0.3 ms took 1 ms (H100). Who comes from above waits for its slice, or for the end
 *    of its work.
 *  - Where a policy holds nobody, same-level clients below others get slices by weight as well, as
 *    short as the driver's: a client that comes waits for one of them. So do clients of one
 *    container while several of them work: they are not held for each other (scheduler/siblings.h).
 *  - A client with nobody above gets so long a slice that it is never interrupted by those below.
 *  - A client alone gets a longer slice than the driver's, if others may come below it. The agent
 *    learns of a newcomer when its context is made, which takes 40 ms. Meanwhile a request of 3.3
 *    ms took 0.52 ms longer than alone, and 0.14 ms longer from then on (H100, slices of 2048 us):
 *    the difference is what a switch within the request costs. A higher-level client waits for the
 *    end of that slice while its context is made, so it is no longer than those of same-level
 *    clients.
 *  - Same-level clients with nobody above get slices by weight, together 10 ms for each of them.
 *    On top of each comes what restoring takes of it. Otherwise small parts would be too small.
 * The hardware ends a slice late by a time that depends on the kernels. With 5 ms parts were up
 * to 1.1 points off and 5 % of the time went to switches, with 10 ms 0.6 points and 3 % (H100).
 * Longer ones let each wait, and beside a client with a compute limit of 30 % slices of 20 ms gave
 * that one 34 % and the other 64 %, where 10 ms give 30 and 67. The parts are not corrected by what
 * clients report: their reports count a kernel's time at the clock at which it was learned, and a
 * correction by them made it worse, up to 7 points.
 *  - Clients that always have work wait for nothing but their shares, and the policy takes the
 *    GPU back from the slices when others come. So theirs are longer, up to 20 ms in the mean, as
 *    long as parts hold over each second: in a window the part f of a client is off by f (1 - f)
 *    of a cycle at most. With 10 ms two event loops lost 3.3 % of the time (H100).
 *  - A policy may say what the mean is, as long as no part is off by 1 point in a second: up to
 *    12 ms for four equal clients, 10.3 ms for eight. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SLICE_DEFAULT 0u      /* the driver's, 2048 us */
#define SLICE_BELOW   5u      /* us, as all that follow */
#define SLICE_BETWEEN 500u    /* above some, below others; or with an objective, below others */
#define SLICE_ALONE   10000u  /* no other client is there, but one may come below */
#define SLICE_ABOVE   100000u /* above others; nobody of the same level, or only one at a time */
/* Of several same-level clients, nobody above: the mean, and the shortest. */
#define SLICE_SHARE     10000u
#define SLICE_SHARE_MIN 2000u
#define SLICE_RESTORE   80u /* goes into restoring what ran, of each slice (README.md) */
/* If all of them always have work: the longest mean, and what a part may be off in a window. */
#define SLICE_STEADY     20000u
#define SLICE_STEADY_OFF 12000u
/* If the policy says the mean: a window also counts a part of a kernel, and the clients have less
 * than a second of each second. */
#define SLICE_FAIR_OFF 9000u
/* The same, below others. */
#define SLICE_AMONG     2048u
#define SLICE_AMONG_MIN 1000u

struct slice_rank {
	bool above, below; /* there are higher-level clients; lower-level ones */
	bool alone;        /* no other client is there, but one may come below it */
	bool quick;        /* it has a tight objective, or one and work that fits into a slice */
	bool steady;       /* all n always have work, and the policy ends that at once */
	uint64_t mean;     /* us of same-level clients' slices; 0: no one says */
	unsigned n;        /* clients of this level that share the GPU at the same time, this one
			      included; 1: they take turns, or there are no others */
	uint64_t weight, weights; /* this one's, and the sum of all n */
	uint64_t least, most;     /* the smallest and the greatest weight of the n */
};

/* One more that shares the GPU. @rank: `least` is UINT64_MAX at first. */
void slice_rank_add(struct slice_rank *rank, uint64_t weight);
/* us; SLICE_DEFAULT: nobody is to wait for it, and it for nobody. */
uint64_t slice_for(const struct slice_rank *rank);
