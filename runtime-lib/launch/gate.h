/* Gates: waits that the GPU's front end itself makes, put into a stream between kernels. Closed
 * while anybody above has work outstanding, or while the agent holds us. */
#pragma once

#include "client/stream.h"

/* A gate goes in front of a launch when the stream has had this much predicted work since the last.
 * An open gate costs 2.5 us of GPU time (H200), so gates are dense, for a short wait of those
 * above, only as long as they showed demand within the last second. Even with nobody above there
 * are some: who comes next must not wait for all that was queued before.
 *
 * Those above wait for what all of those that run at the same time have begun, so that each of n
 * has them n times as dense; what the gates of one cost the others' kernels fill. */
#define GATE_INTERVAL_CONTENDED 100000u /* ns */
#define GATE_BESIDE_MAX         8u      /* n, at most */
#define GATE_INTERVAL_QUIET     400000u
#define GATE_INTERVAL_ALONE     1000000u

/* With nobody above, a launch into an idle stream in front of which a gate would be open needs
 * none: it would pass at once. But a gate and its call cost such a launch 10 us, and somebody
 * mostly waits for its end. What was queued otherwise may be in its way yet, so not a long one. */
#define GATE_STARTS_MAX 2000000u /* ns */

/* Launch path, before a kernel of @predicted ns (0: not known). Puts a gate into the stream if one
 * is due. @starts: no launch is outstanding in the stream. True: it was closed at that moment. */
bool gate_pass(struct stream *stream, const struct level_binding *binding, uint64_t predicted,
	       bool starts);

/* The same for a stream under capture: the gate becomes a node of the graph, and is there whether
 * or not anybody is above now, since the graph may be replayed for ever. */
void gate_capture(struct stream *stream, const struct level_binding *binding);

/* The same whatever came before: inside a launch that is several. @yields: it is closed while the
 * agent holds us, too; else no gate for what comes behind it. */
bool gate_put(struct stream *stream, const struct level_binding *binding, bool yields);

/* The words that a gate waits for, as addresses for the GPU; 0: not this one. */
struct gate_words {
	CUdeviceptr demand; /* 64 bits */
	CUdeviceptr hold;   /* 32 bits */
};
struct gate_words gate_words(const struct level_binding *binding, bool yields);

/* After a launch of @predicted ns; 0: not known. */
static inline void gate_account(struct stream *stream, uint64_t predicted)
{
	atomic_fetch_add_explicit(&stream->since_gate, predicted ? predicted : GATE_INTERVAL_QUIET,
				  memory_order_relaxed);
}

/* How far apart gates are now; for the worker, which puts it where the launch path reads it. */
uint64_t gate_interval(const struct level_binding *binding, bool contended);

/* True while somebody above has work outstanding. */
bool gate_demanded(const struct level_binding *binding);

/* The agent says that equals are not to wait for what runs. */
bool gate_urgent(const struct level_binding *binding);

/* The agent wants to be told of work that comes. */
bool gate_tells(const struct level_binding *binding);

/* True while a gate of this binding would be closed. */
bool gate_closed(const struct level_binding *binding);

/* True while it is, or while equals have work, so that the policy may close it at any time. */
bool gate_expected(const struct level_binding *binding);
