/* Demand: our bits in the demand words of the lower levels, set while launches are outstanding. At
 * the same moments the status page says that there is work, or none, so the agent sees a client's
 * work without waiting for the worker's next look.
 *
 * While a stream of a lower level (weir/weir.h) has work outstanding, the process has bits in the
 * words below that level alone: its other work may wait for this stream, and must not close gates
 * at which the stream waits.
 *
 * Where a bit is in `word` it is in `whole`, too, unless the client needs only some SMs
 * (demand-pages.h). It is set there first, and cleared there last.
 *
 * Before a launch demand may be shown speculatively (speculation.h). */
#pragma once

#include "client/level-binding.h"
#include "client/subsystem.h"
#include "gates/busy-period.h"
#include "gates/demand-pages.h"
#include "gates/speculation.h"

enum demand_shown {
	DEMAND_NONE,
	DEMAND_SHOWN,
	DEMAND_SPECULATIVE,
};

#define DEMAND_LATELY (5 * NS_PER_MS) /* after the last work of a client with a minimum rate */

struct demand {
	_Atomic int shown;           /* enum demand_shown */
	_Atomic uint64_t since;      /* ns, until when demand time is counted; 0: no demand */
	_Atomic uint64_t idle_since; /* ns, when the last work was seen finished; 0: not idle */
	_Atomic uint64_t gap;   /* ns, running mean of the time between idle and the next launch */
	_Atomic int came_first; /* no client of this level or higher had work then */
	_Atomic uint64_t hurried; /* ns, when the worker was hurried last */
	struct busy_period busy;
	struct speculation speculation;
};
PER_CLIENT(demand)

/* @predicted: ns of the work that comes. @sms: that it needs. */
void demand_set(struct client *client, const struct level_binding *binding, uint64_t predicted,
		uint32_t sms);

/* The bits are set: from now on they are for work that needs more SMs. */
void demand_grow(struct client *client, const struct level_binding *binding, uint32_t sms);

/* The bits are set, and stood for the next launch only: it has come. */
void demand_goes_on(struct client *client);

/* Launch path, after the stream's `begun` has grown: a few loads when the bits are set already. */
static inline void demand_raise(struct client *client, const struct level_binding *binding,
				uint64_t predicted, uint32_t sms)
{
	/* seq_cst, as is the growth of `begun`: either we see that the bits were cleared, or the
	 * thread that cleared them sees our launch and sets them again. */
	if (atomic_load(&demand_of(client)->shown) != DEMAND_SHOWN) {
		demand_set(client, binding, predicted, sms);
		return;
	}
	if (load_relaxed(&demand_of(client)->idle_since))
		demand_goes_on(client);
	if (sms_grows(client, sms))
		demand_grow(client, binding, sms);
}

/* Launch path, after demand_raise() for a launch in a stream of a lower level: no bit of this
 * process may close its gates. */
void demand_lower(const struct client *client, unsigned level);

/* Sets the bits, though nothing is outstanding yet. False: they were set already. */
bool demand_set_speculatively(struct client *client, const struct level_binding *binding);

/* Speculative demand for a launch that may come until @most ns after @now, and some slack, have
 * passed; the worker clears bits that no launch followed. False: demand was shown already. */
bool demand_speculate(struct client *client, const struct level_binding *binding, uint64_t now,
		      uint64_t most);

/* The program says that a launch comes within @ns: speculative demand until then. False: the client
 * has demand already, or nobody is below it. */
bool demand_expect(struct client *client, const struct level_binding *binding, uint64_t ns);

/* Clears the bits if no launch is outstanding. If the next launch is expected at once, the worker
 * clears them a little later. Any thread, never on the launch path. */
void demand_settle(struct client *client);
/* The same, where it is known that no launch follows at once. */
void demand_end(struct client *client);
/* After a call that waited for some of the client's work, it is not known for which: the worker
 * looks. At once, if others wait for the end of demand. */
void demand_some_finished(struct client *client);

/* Worker: publishes another binding, and takes @next. Demand moves to its words. */
void demand_move(struct client *client, struct level_binding *next);

/* Worker: clears what a launch may still set by @former, which it had read just before, and sets
 * again what it did not set in the words of the present binding, or the agent has cleared. @former:
 * NULL is fine. */
void demand_scrub(struct client *client, const struct level_binding *former);

/* Columns of the table. */
void demand_stream_gone(struct stream *stream);
void demand_work(struct client *client, struct tick *tick);
/* Clears the bits whatever is outstanding. */
void demand_drop(struct client *client);
