/* An SM divides one memory into shared memory and L1 cache. The driver gives a kernel as much
 * shared memory as all blocks need that could fit. A loop with fewer blocks leaves the rest to the
 * cache. Pure. */
#pragma once

#include <stdint.h>

#define CARVEOUT_USUAL (-1) /* the driver's choice */

struct carveout {
	uint32_t blocks; /* of the loop */
	uint32_t fit;    /* blocks that the GPU can run at the same time */
	uint32_t sms;
	uint64_t block; /* bytes of shared memory that a block takes, with the GPU's own part */
	uint64_t sm;    /* bytes of shared memory that an SM has at most */
};

/* The least part of an SM's shared memory that all blocks fit into, in per cent. @now: what is set;
 * the answer is no less.
 *
 * A loop of fewer blocks than SMs is mostly a server beside other kernels, which could not start
 * on its SMs with another division. So it changes only a value that the program, or an earlier loop
 * of the same kernel, has set. */
static inline int carveout_of(const struct carveout *carveout, int now)
{
	const struct carveout *c = carveout;

	if (!c->sms || !c->sm || (now < 0 && (c->blocks < c->sms || c->blocks >= c->fit)))
		return now;
	/* One block more than an equal division: SMs may get different numbers of them. */
	uint64_t percent = (c->blocks / c->sms + 1) * c->block * 100 / c->sm + 1;
	int wanted = percent < 100 ? (int)percent : 100;

	return wanted > now ? wanted : now;
}
