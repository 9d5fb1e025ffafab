/* Continuations in reserve, for a launch whose length nobody knows. A chain has room for some 340
 * evictions, because the driver's queue has 1000 places (launch/preempt.h). Beside bursts that come
 * each 10 ms a launch uses them up within 4 s, and then runs natively.
 *
 * A graph takes few places, however many gates and continuations are in it, and the same graph can
 * be queued again and again: all continuations of a launch are alike. So behind the chain, in front
 * of the last continuation, stand RESERVE_LAUNCHES launches of a graph of RESERVE_LINKS.
 *
 * The graph is made before anything of the launch is queued, while nothing else of the client is
 * outstanding, so that no call of the driver can wait for the launch. */
#pragma once

#include "autotune/autotune.h"
#include "client/level-binding.h"
#include "client/stream.h"
#include "shim/call.h"

#define RESERVE_LINKS    256u
#define RESERVE_LAUNCHES 16u

/* How often the graph is launched; 0: there is no reserve. */
extern unsigned reserve_launches;

/* Reads WEIR_RESERVE. */
void reserve_settings(void);

/* Launch path: makes the graph of a continuation with these packed parameters on @grid blocks, in
 * the place of @graph, which is of this stream, or NULL. NULL: none. */
CUgraphExec reserve_make(struct stream *stream, CUgraphExec *graph,
			 const struct level_binding *binding, const struct kernel_call *call,
			 const struct launch_decision *decision, const unsigned grid[3],
			 void *packed);

/* Queues them. Returns how many continuations. */
uint32_t reserve_launch(CUgraphExec reserve, const struct stream *stream);
