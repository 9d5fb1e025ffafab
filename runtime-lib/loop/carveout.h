/* An SM divides one memory into shared memory and L1 cache. The driver gives a kernel as much
 * shared memory as all blocks need that could fit. A loop with fewer blocks leaves the rest to the
 * cache. Pure. */
#pragma once

#include <stdint.h>

#define CARVEOUT_USUAL (-1) /* the driver's choice */

struct carveout {
	uint32_t blocks, fit; /* of the loop; that fit at a time */
	uint32_t sms;
	uint64_t block,
		sm; /* bytes of shared memory: of a block, with what the GPU keeps; of an SM */
};

/* The least part of an SM's shared memory that all blocks fit into, in per cent; @now is set.
 *
 * A loop of fewer blocks than SMs is mostly a server beside other kernels, which could not start
 * on its SMs with another division. So only a value that the program has set, or an earlier loop of
 * the kernel, is made larger for it. */
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
