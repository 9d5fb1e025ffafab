/* Gates: waits that the GPU's front end itself makes, put into a stream between kernels. Closed
 * while anybody above has work outstanding, or while the agent holds us. */
#pragma once

#include "stream.h"

/* A gate goes in front of a launch when the stream has had this much predicted work since the last.
 */
#define GATE_INTERVAL 250000u /* ns; an open gate costs 2.5 us of GPU time, so this keeps it under 1 % */

/* Launch path. Puts a gate into the stream if one is due. */
void gate_pass(struct stream *stream, const struct standing *standing);

/* The same for a stream under capture: the gate becomes a node of the graph, and is there whether
 * or not anybody is above now, since the graph may be replayed for ever. */
void gate_capture(struct stream *stream, const struct standing *standing);

/* After a launch of @predicted ns; 0: not known. */
static inline void gate_account(struct stream *stream, uint64_t predicted)
{
	atomic_fetch_add_explicit(&stream->since_gate, predicted ? predicted : GATE_INTERVAL,
				  memory_order_relaxed);
}

/* True while a gate of this standing would be closed. */
bool gate_closed(const struct standing *standing);
