/* Gates: waits in a stream, between kernels, that the GPU's front end makes itself. A gate is
 * closed while a higher level has work outstanding, or while the agent holds the client. */
#pragma once

#include "client/level-binding.h"
#include "client/stream.h"
#include "gates/demand-pages.h"

/* A gate goes in front of a launch when the stream has had this much predicted work since the last.
 * An open gate costs 2.5 us of GPU time (H200), so gates are dense only while a higher level showed
 * demand within the last second. Even with no higher-level client there are some, so that one that
 * comes does not wait for all that was queued before.
 *
 * A higher-level client waits for what all clients that run at the same time have begun. So each of
 * n such clients has gates n times as dense; the others' kernels fill the time that they cost. */
#define GATE_INTERVAL_CONTENDED (100 * NS_PER_US) /* ns */
#define GATE_BESIDE_MAX         8u                /* n, at most */
#define GATE_INTERVAL_QUIET     (400 * NS_PER_US)
#define GATE_INTERVAL_ALONE     NS_PER_MS

/* A client without higher-level clients needs no gate before a launch into an idle stream if the
 * gate would be open. Such a gate and its call cost 10 us, and mostly somebody waits for the
 * launch. Only launches up to this long, because earlier work may still be in the way of a long
 * one. */
#define GATE_STARTS_MAX (2 * NS_PER_MS) /* ns */

struct gating {
	_Atomic uint64_t interval; /* ns of predicted work between gates; the worker sets it */
	_Atomic uint64_t gates, gates_closed;
	_Atomic int last; /* enum gate_kind: of the last gate */
	_Atomic uint32_t
		graph_levels; /* bit q: a graph was captured with gates of level q inside */

	/* Worker. */
	uint64_t contended_until, last_closed;
	uint64_t waits, wait_time; /* as in the status page */
	bool held;                 /* work was outstanding behind closed gates at the last look */
};
PER_CLIENT(gating)

/* Launch path: gates are as dense as for one contended client, or denser. */
static inline bool gate_is_contended(const struct client *client)
{
	return load_relaxed(&gating_of(client)->interval) <= GATE_INTERVAL_CONTENDED;
}

/* What a gate waits for. */
enum gate_kind {
	GATE_ALL,   /* any demand of higher levels, and the hold word */
	GATE_ABOVE, /* any demand of higher levels */
	/* For a kernel that can leave a part of the SMs: only demand for the whole GPU, and the
	 * hold word. Other kernels behind it need a gate of their own. */
	GATE_WHOLE,
	GATE_WHOLE_ABOVE, /* the same without the hold word */
	/* For a client that never runs on some SMs: as GATE_ALL, but not for demand that these SMs
	 * suffice for. */
	GATE_BESIDE,
};

/* @yields: to same-level clients, too. @spatial: the kernel can leave a part of the SMs. */
static inline enum gate_kind gate_kind(bool yields, bool spatial)
{
	return spatial ? (yields ? GATE_WHOLE : GATE_WHOLE_ABOVE)
		       : (yields ? GATE_ALL : GATE_ABOVE);
}

/* Clients of higher levels say whether they need the whole GPU. */
static inline bool gate_is_spatial(const struct level_binding *binding)
{
	return binding_flag(binding, WEIR_CONTROL_SPATIAL) && !binding->lowered && binding->wait;
}

/* Launch path: for a kernel in no form, which does not leave while it runs. */
static inline enum gate_kind gate_of_native(const struct client *client,
					    const struct level_binding *binding)
{
	return sms_unused(client) && gate_is_spatial(binding) ? GATE_BESIDE : GATE_ALL;
}

/* Launch path, before a kernel of @predicted ns (0: not known): puts a gate into the stream if one
 * is due. @starts: no launch is outstanding in the stream. @kind: one of those that yield. True:
 * the gate was closed then. */
bool gate_pass(struct stream *stream, const struct level_binding *binding, uint64_t predicted,
	       bool starts, enum gate_kind kind);
/* Whether a gate of a client would be closed now. */
bool gate_is_closed(const struct client *client, const struct level_binding *binding,
		    enum gate_kind kind);

/* For a captured stream: the gate becomes a node of the graph. It is put even if there is no
 * higher-level client now, because the graph may be launched at any later time. If there is none,
 * and the hardware can interrupt graphs, gates are fewer. */
void gate_capture(struct stream *stream, const struct level_binding *binding);

/* Puts a gate whether or not one is due: between the parts of one launch. Behind GATE_ALL no other
 * gate is due, behind GATE_WHOLE and GATE_BESIDE none of the same kind. True: it was closed then.
 */
bool gate_put(struct stream *stream, const struct level_binding *binding, enum gate_kind kind);

/* The words that a gate waits for, as addresses for the GPU; 0: not this one. */
struct gate_words {
	CUdeviceptr demand; /* 64 bits */
	CUdeviceptr hold;   /* 32 bits */
	CUdeviceptr room;   /* 32 bits; not waited for: the SMs to be left (weir/preempt-abi.h) */
};
struct gate_words gate_words(const struct level_binding *binding, enum gate_kind kind);

/* After a launch of @predicted ns; 0: not known. */
static inline void gate_account(struct stream *stream, uint64_t predicted)
{
	uint64_t more = predicted ? predicted : GATE_INTERVAL_QUIET;

	/* Not atomic as a whole: a gate somewhat sooner or later does no harm. */
	store_relaxed(&stream->since_gate, load_relaxed(&stream->since_gate) + more);
}

/* ns between gates under these conditions. */
uint64_t gate_interval(const struct level_binding *binding, bool contended);

/* Columns of the table. */
void gate_init(struct client *client);
void gate_look(struct client *client, struct tick *tick);
void gate_work(struct client *client, struct tick *tick);
