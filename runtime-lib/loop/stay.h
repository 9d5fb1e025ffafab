/* For how long a kernel stays on the GPU when all its blocks wait. Others could use the GPU
 * meanwhile, but to leave and to come back takes a while, too. So a loop that is mostly away for
 * long leaves sooner, and one that was wanted back at once does not. Pure. */
#pragma once

#include <stdint.h>

#define STAY_LONG 8u /* away for so many times @most is long */
/* It leaves after @most / 4 at the soonest: answers to sends take that long. */
#define STAY_PART 4u

struct stay {
	uint32_t most; /* ns; as the program says */
	uint32_t ns;   /* of the next launch */
};

static inline struct stay stay_of(uint32_t most)
{
	return (struct stay){.most = most, .ns = most};
}

/* It left because all blocks waited, and was away for @away ns. */
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
