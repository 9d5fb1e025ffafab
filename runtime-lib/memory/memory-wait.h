/* What an allocation does when the driver has no memory left, although the container's limit allows
 * it: with `memory-full: wait` it waits until others have freed some, and tries again.
 *
 * The thread holds no lock meanwhile. It waits for at most the time that the limit page says, while
 * an agent is there. A call that is illegal in a capture fails with another error, so nothing waits
 * for a captured stream. */
#pragma once

#include "memory/memory-ledger.h"

struct memory_wait {
	uint64_t until; /* 0: it does not wait yet */
	int socket;     /* the agent's, while it waits */
	int pause_ms;
};

/* After each try, with its result. True: try again. @ledger: NULL: the allocation is not counted.
 */
bool memory_wait(struct memory_wait *wait, struct ledger *ledger, uint64_t bytes, CUresult result);
