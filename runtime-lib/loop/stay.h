/* For how long a kernel stays on the GPU when all its blocks wait. Others could use the GPU
 * meanwhile, but to leave and to come back takes a while, too. So a loop that is mostly away for
 * long leaves sooner, and one that was wanted back at once does not. Pure. */
#pragma once

#include <stdint.h>

#define STAY_LONG 8u /* after so many times `most` away it leaves sooner the next time */
/* It never leaves sooner than after `most` / STAY_PART, because answers to sends take that long. */
#define STAY_PART 4u

struct stay {
	uint32_t most; /* ns, at most; the program's option */
	uint32_t ns;   /* for which the next launch stays */
};

static inline struct stay stay_of(uint32_t most)
{
	return (struct stay){.most = most, .ns = most};
}

/* The kernel left because all blocks waited, and comes back after @away ns. */
static inline void stay_back(struct stay *stay, uint64_t away)
{
	const uint32_t least = stay->most / STAY_PART;

	if (away < stay->most)
		stay->ns = stay->most;
	else if (away >= (uint64_t)stay->most * STAY_LONG)
		stay->ns -= stay->ns / 8;
	if (stay->ns < least)
		stay->ns = least;
}
