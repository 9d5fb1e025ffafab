/* Ends what a block of the grid began asynchronously, before its worker begins the next block.
 *
 * A kernel need not invalidate its mbarriers or await its bulk stores: natively, the block's end
 * does. Here each thread notes the mbarriers that it initialises. At the block's end all threads
 *
 * 1. await their copies, and let the asynchronous proxy see what they did in shared memory;
 * 2. meet at a barrier: from here on nobody uses an mbarrier;
 * 3. invalidate the mbarriers that they initialised;
 * 4. meet at a barrier: from here on the next block may initialise them again.
 *
 * The list of a thread's mbarriers lies in its local memory: no register lives through the body for
 * it, and a kernel that uses all shared memory still fits. */
#pragma once

#include "passes/pass.h"

struct async {
	struct variable *list; /* local memory: a count, then addresses in shared memory; NULL: the
				  kernel initialises no mbarrier */
	bool has_copies;       /* cp.async */
	bool has_stores;       /* bulk copies that are awaited by group */
	bool has_proxy;        /* the asynchronous proxy accesses shared memory */
};

/* Whether no other code may use the kernel's shared memory between blocks. */
bool async_keeps_shared(const struct rewrite *rewrite);

/* In front of the barrier at the block's end. Writes nothing if the kernel has no such work. */
void async_await(struct cursor *at, struct rewrite *rewrite);
/* Behind that barrier. True: another barrier must follow. */
bool async_invalidate(struct cursor *at, struct rewrite *rewrite);
