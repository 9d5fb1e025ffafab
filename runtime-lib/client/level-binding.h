/* What a level means for a client: pages that it shares with the agent, and what they say now.
 *
 * The link makes a binding of a WELCOME or LEVEL message and puts it into the mailbox. The worker
 * settles it (gates/level-change.h) and publishes it as client->binding, which the launch path
 * reads. Pages are mapped once and never unmapped: gates on the GPU may wait for them as long as
 * the process lives. */
#pragma once

#include "client/client.h"

#include "weir/protocol.h"

/* Pages of a client, at most. It gets two from each agent that it outlives, and demand pages
 * whenever a client on its GPU loses a level. */
#define PAGES_MAX 16384

/* A page shared with the agent, mapped once however often the agent sends it. */
struct page {
	struct page *next; /* of the client */
	uint64_t device_id, inode;
	bool writable;
	void *memory;
	_Atomic CUdeviceptr gpu; /* 0: not registered with the driver */
	/* What the client has added to a demand page's sum (gates/demand-pages.h). */
	_Atomic uint32_t sms;
};

/* Immutable once published. */
struct level_binding {
	uint8_t level;
	uint8_t bit;       /* WEIR_BIT_SHARED: the client sets no demand itself */
	struct page *wait; /* demand of higher levels; NULL at the top level */
	struct page *below[WEIR_DEMAND_LEVELS]; /* demand words of levels 0..level-1 */
	struct page *control, *status;
	uint64_t number; /* the agent's name for the client */

	/* Bindings of streams that the program gave a lower level (gates/README.md); NULL: no
	 * stream has this one. */
	const struct level_binding *lower[WEIR_DEMAND_LEVELS];
	bool lowered; /* this is one of these */
	uint64_t own; /* then: the client's own bit in @wait; else 0 */
};

static inline struct weir_control_page *control_page(const struct level_binding *binding)
{
	return binding->control->memory;
}

static inline struct weir_status_page *status_page(const struct level_binding *binding)
{
	return binding->status->memory;
}

static inline struct weir_demand_page *demand_page(const struct page *page)
{
	return page->memory;
}

static inline bool binding_flag(const struct level_binding *binding, enum weir_control_flags flag)
{
	return load_relaxed(&control_page(binding)->flags) & flag;
}

/* What the client has finished must be reported within a millisecond, launch by launch. */
static inline bool binding_reports(const struct level_binding *binding)
{
	return load_relaxed(&control_page(binding)->flags) &
	       (WEIR_CONTROL_RATED | WEIR_CONTROL_MEASURED);
}

/* Workers that the client may have on an SM; 0: not bounded. */
static inline uint32_t binding_workers(const struct level_binding *binding)
{
	return load_relaxed(&control_page(binding)->workers);
}

/* Launches must leave a part of each SM to same-level clients. */
static inline bool binding_is_bounded(const struct level_binding *binding)
{
	uint32_t workers = binding_workers(binding);

	return workers && workers < WEIR_SM_WORKERS;
}

static inline bool binding_has_slo(const struct level_binding *binding)
{
	return load_relaxed(&control_page(binding)->latency_slo) != 0;
}

/* Bits of higher-level clients with work outstanding. */
static inline uint64_t binding_demands(const struct level_binding *binding)
{
	return binding->wait ? load_acquire(&demand_page(binding->wait)->word) & ~binding->own : 0;
}

/* A higher-level client shares the GPU. */
static inline bool binding_is_below(const struct level_binding *binding)
{
	return binding->wait && load_relaxed(&control_page(binding)->above);
}

/* A higher level has work outstanding. */
static inline bool binding_demanded(const struct level_binding *binding)
{
	return binding_demands(binding);
}

/* A gate of this binding would be closed now. */
static inline bool binding_closed(const struct level_binding *binding)
{
	return binding_demanded(binding) || load_relaxed(&control_page(binding)->hold);
}

/* A gate would be closed, or the policy may close it at any time, because same-level clients have
 * work. */
static inline bool binding_contended(const struct level_binding *binding)
{
	return binding_closed(binding) || (binding_flag(binding, WEIR_CONTROL_HOLDABLE) &&
					   binding_flag(binding, WEIR_CONTROL_CONTENDED));
}

/* Finds or makes the mapping of @fd, which stays the caller's. 0, or -errno: not a regular file of
 * at least one page, no mapping, or too many pages. */
int binding_map_page(struct client *client, struct page **out, int fd, bool writable);

/* Pages of the client are not registered with the driver: its context is new. */
void binding_unregister_pages(struct client *client);

/* The mailbox: a binding that is to be settled, NULL for none. Returns the one that was there; it
 * is the caller's. */
struct level_binding *binding_exchange(struct client *client, struct level_binding *next);
/* Puts it back, unless a newer one has come. False: the caller keeps it. */
bool binding_put_back(struct client *client, struct level_binding *binding);
bool binding_waits(const struct client *client);

/* How often somebody must look for a hold that ended, in ns. The link does, too: the worker may be
 * in a driver call that itself waits for the end of the hold. */
#define HOLD_LOOK (500 * NS_PER_MS)

/* Any thread: opens the gates if the agent does not renew its hold in time, because it is stopped
 * or stuck. Returns when to look again. */
uint64_t binding_expire_hold(const struct level_binding *binding, uint64_t now);
