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
 * Speculative demand: a copy to the GPU often precedes a launch. So demand can be shown while it
 * goes on, and lower levels have left when the kernel comes. Each client learns from its own copies
 * whether that pays: most of the latest copies must have been followed by a launch, and soon, since
 * the GPU is idle in between. The worker clears bits that no launch followed. */
#pragma once

#include "client/level-binding.h"
#include "client/subsystem.h"
#include "gates/busy-period.h"
#include "gates/demand-pages.h"

enum demand_shown {
	DEMAND_NONE,
	DEMAND_SHOWN,
	DEMAND_SPECULATIVE,
};

#define SPECULATION_LEAD_MAX (500 * NS_PER_US) /* from copy to launch; longer does not pay */
#define SPECULATION_SLACK    (50 * NS_PER_US)  /* a launch may come that much later than expected */

#define DEMAND_LATELY (5 * NS_PER_MS) /* after the last work of a client with a minimum rate */

struct speculation {
	_Atomic uint64_t since;  /* ns, of the first copy since there was no demand; 0: none */
	_Atomic uint64_t shown;  /* ns, when speculative demand was shown last */
	_Atomic uint64_t until;  /* ns, when it ends */
	_Atomic uint64_t hinted; /* ns, when the program said that a launch comes; 0: it did not */
	_Atomic uint64_t lead;   /* ns from such a copy to the launch, running mean */
	_Atomic uint32_t trust;  /* 0 to 256: how many of them were followed by a launch soon */
};

struct demand {
	_Atomic int shown;           /* enum demand_shown */
	_Atomic uint64_t since;      /* ns, until when demand time is counted; 0: no demand */
	_Atomic uint64_t idle_since; /* ns, when the last work was seen finished; 0: not idle */
	_Atomic uint64_t gap;   /* ns, running mean of the time between idle and the next launch */
	_Atomic int came_first; /* no client of this level or higher had work then */
	struct busy_period busy;
	struct speculation speculation;
};
PER_CLIENT(demand)

/* @predicted: ns of the work that comes. @sms: that it needs. */
void demand_set(struct client *client, const struct level_binding *binding, uint64_t predicted,
		uint32_t sms);

/* The bits are set: from now on they are for work that needs more SMs. */
void demand_grow(struct client *client, const struct level_binding *binding, uint32_t sms);

/* Launch path, after the stream's `begun` has grown: two loads when the bits are set already. */
static inline void demand_raise(struct client *client, const struct level_binding *binding,
				uint64_t predicted, uint32_t sms)
{
	/* seq_cst, as is the growth of `begun`: either we see that the bits were cleared, or the
	 * thread that cleared them sees our launch and sets them again. */
	if (atomic_load(&demand_of(client)->shown) != DEMAND_SHOWN)
		demand_set(client, binding, predicted, sms);
	else if (sms_grows(client, sms))
		demand_grow(client, binding, sms);
}

/* Launch path, after demand_raise() for a launch in a stream of a lower level: no bit of this
 * process may close its gates. */
void demand_lower(const struct client *client, unsigned level);

/* Sets the bits, though nothing is outstanding yet. False: they were set already. */
bool demand_set_speculatively(struct client *client, const struct level_binding *binding);

/* The program says that a launch comes within @ns: speculative demand until then. False: the client
 * has demand already, or nobody is below it. */
bool demand_expect(struct client *client, const struct level_binding *binding, uint64_t ns);

/* Clears the bits if no launch is outstanding. If the next launch is expected at once, the worker
 * clears them a little later. Any thread, never on the launch path. */
void demand_settle(struct client *client);
/* The same, where it is known that no launch follows at once. */
void demand_end(struct client *client);

/* Worker: publishes another binding, and takes @next. Demand moves to its words. */
void demand_move(struct client *client, struct level_binding *next);

/* Worker: clears what a launch may still set by @former, which it had read just before, and sets
 * again what it did not set in the words of the present binding, or the agent has cleared. @former:
 * NULL is fine. */
void demand_scrub(struct client *client, const struct level_binding *former);

/* Pure. A launch followed the copy after @lead ns; UINT64_MAX: none did in time. */
void speculation_learn(struct speculation *speculation, uint64_t lead);
bool speculation_pays(const struct speculation *speculation);

/* Columns of the table. */
void demand_settings(void);
void demand_stream_gone(struct stream *stream);
void demand_work(struct client *client, struct tick *tick);
/* Clears the bits whatever is outstanding. */
void demand_drop(struct client *client);
