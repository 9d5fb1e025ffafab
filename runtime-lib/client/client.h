/* Clients: one for each CUDA context of this process that launches something. A client is set up at
 * the context's first launch, on the launching thread; from then on the launch path only reads it.
 *
 * Who writes what: the thread that creates it, then
 *   link thread    socket, pages mapped for it, `pending`
 *   worker thread  everything that takes driver calls: registers pages, publishes `binding`, reads
 *                  events and streams, writes the status page
 *   launch path    its stream's counters, demand, samples
 */
#pragma once

#include "autotune/autotuner.h"
#include "client/burst.h"
#include "shim/driver.h"
#include "client/early.h"
#include "client/request.h"
#include "measure/sample.h"

#include "weir/protocol.h"

#define CLIENTS_MAX 16
#define PAGES_MAX   1024 /* two for each agent that the process outlives */

/* A page shared with the agent, mapped once however often the agent sends it. */
struct page {
	uint64_t device_id, inode;
	bool writable;
	void *memory;
	_Atomic CUdeviceptr gpu; /* 0: not registered with the driver */
};

/* What a level means for a client: immutable once published. */
struct level_binding {
	uint8_t level;
	uint8_t bit;                            /* WEIR_BIT_SHARED: sets no demand itself */
	struct page *wait;                      /* demand of those above, NULL at the top level */
	struct page *below[WEIR_DEMAND_LEVELS]; /* demand words of levels 0..level-1 */
	struct page *control, *status;
	uint64_t number; /* the agent's name for the client */
};

enum client_state {
	CLIENT_FREE,
	CLIENT_NEW, /* being set up by the thread that found it missing */
	CLIENT_LIVE,
	CLIENT_DEAD, /* its context goes or has gone */
};

struct client {
	_Atomic int state;
	CUcontext context;
	CUdevice device;
	CUuuid gpu;
	bool concurrent;             /* its kernels run at the same time as other clients' (MPS) */
	_Atomic unsigned priorities; /* of launches, beside the least; 0: they say nothing here */
	uint32_t index;              /* in the table */

	/* NULL: no agent yet, everything goes straight to the driver. */
	_Atomic(const struct level_binding *) binding;
	_Atomic int demanding;         /* enum demand: whether our bits are set (demand.c) */
	_Atomic uint64_t demand_since; /* ns, until when its demand is counted; 0: it has none */
	_Atomic uint64_t idle_since;   /* ns, when the last work was seen finished; 0: not idle */
	_Atomic uint64_t gap; /* ns, running mean of the time between idle and the next launch */
	struct early early;
	struct burst burst;
	_Atomic uint64_t gate_interval; /* ns of predicted work between gates; the worker sets it */
	_Atomic int waiting;            /* enum waiting; the worker sets it */
	_Atomic int yields; /* who waits goes ahead of blocks (priority.h); so does it */
	_Atomic uint32_t
		max_blocking_time; /* ns: of a kernel that whoever waits can wait for; as well */
	_Atomic int came_first;    /* its equals and those above had no work then (demand.c) */
	_Atomic int unordered;     /* something was launched that has no priority by its length */
	_Atomic uint64_t gates, gates_closed;
	_Atomic uint64_t starts;
	_Atomic uint64_t start_since; /* ns, of the launch that waits to start; 0: none */
	_Atomic uint64_t gone_launches, gone_predicted; /* of streams that are no more */
	_Atomic uint32_t
		graph_levels; /* bit q: a graph was captured with gates of level q inside */
	struct sampler sampler;
	_Atomic int slots_wanted;              /* by a stream (preempt.h) */
	_Atomic(struct preempt_slots *) slots; /* NULL until wanted; the worker makes them */
	_Atomic uint64_t form_launches[WEIR_STATUS_FORMS];

	/* Link thread. */
	int socket; /* -1: not connected */
	/* The same socket for who tells of work, as a descriptor that stays this number for ever;
	 * 0: there was none yet. */
	_Atomic int bell;
	_Atomic uint64_t rung; /* ns, the last time */
	uint64_t retry_at, retry_delay;
	struct page pages[PAGES_MAX];
	size_t n_pages;
	_Atomic(struct level_binding *) pending; /* mapped, to be settled by the worker */
	/* The last one that was handed over, settled or not: what the agent says of levels is about
	 * it. Freed when a later one replaces it unsettled, else never. */
	const struct level_binding *newest;

	/* Worker and link thread; see request.h. */
	struct request requests[REQUESTS_MAX];
	uint32_t last_request; /* worker */

	/* Worker thread. */
	struct {
		const struct level_binding
			*raise; /* a higher level, until gates of the lower are passed */
		const struct level_binding *former; /* NULL, or the one before, for a while */
		uint64_t former_until, settle_at;   /* ns */
		uint64_t last_begun, last_tick, last_look, sampled_at, due_at;
		uint64_t ordered_at; /* when nothing of that kind was launched for a while */
		bool ordered;
		bool late; /* something ran for far longer than was predicted */
		uint64_t contended_until, waited_until, urgent_until, held_until, gates_closed;
		uint64_t waits, wait_time, executed, starts_late;
		uint64_t predictions, prediction_error; /* as in the status page */
		/* Of samples, older ones counting less: their time, and that times what it costs to
		 * evict their kernel. */
		double run_time, eviction_cost;
		uint64_t form_evictions[WEIR_STATUS_FORMS];
		bool held;
	} worker;
};

extern struct client clients[CLIENTS_MAX];

/* The client of a context, set up if there was none. NULL: not governed (no room, set-up going on
 * in another thread, context unusable). @context may be any; it need not be current. */
struct client *client_of(CUcontext context);

/* The client of a context if it has one. */
struct client *client_find(CUcontext context);

/* A device's primary context, if there is one now. */
CUcontext client_primary(CUdevice device);

/* Before the context goes: no thread of ours uses it after the return. Demand is cleared, the
 * connection closed. NULL is fine. */
void client_remove(struct client *client);

/* In a forked child: forgets all clients without a word to agent or driver. */
void client_forget_all(void);

/* On a thread with the client's context current: registers the binding's pages with the driver.
 * False: it cannot gate now (said). See worker.c for changes of level. */
bool client_register_pages(struct client *client, const struct level_binding *binding);

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

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t client_now(void);
