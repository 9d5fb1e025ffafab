/* A client: one process and its context on one GPU. Its session makes it with the WELCOME, and
 * frees it. Its GPU and its tenant list it. Modules define their part of it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hardware/channels.h"
#include "policy/account.h"
#include "policy/charge.h"
#include "policy/policy.h"
#include "policy/yield.h"
#include "scheduler/gpu/max-blocking-time.h"
#include "shm/region.h"
#include "scheduler/record.h"

struct gpu;
struct tenant;

/* preemption.c's. Zero while it is not held. */
struct preemption {
	uint64_t hold_began;    /* ns */
	uint64_t stopped_since; /* ns; 0: it is not stopped */
	uint64_t sampled;       /* ns, end of the last period that the driver told of */
	uint64_t alive_at;      /* ns, when its process was looked at */
	uint64_t executed;      /* as it reported last, if it has `reported` since the stop */
	bool reported;
	bool frozen; /* its process is stopped by a signal */
	unsigned disobeyed;
};

/* overrun.c's. Zero while no kernel of the client overruns. */
struct overrun {
	uint64_t time;   /* ns that count */
	uint64_t said;   /* ns, what the client said at the last look; */
	uint64_t looked; /* when that was */
	uint64_t asked;  /* when the driver was asked whether it runs; 0: not yet */
	bool told;
};

/* Why the configuration has the agent end a process. */
enum ending_reason {
	ENDING_NONE,
	ENDING_OVERRUN,
	ENDING_DISOBEDIENCE,
	ENDING_REASONS,
};

/* reports/ending.c's. */
struct ending {
	enum ending_reason reason; /* ENDING_NONE: the process is not to be ended */
	bool begun;                /* it was killed, or its server ends its work before that */
	bool killed;
};

struct client {
	uint64_t number;
	struct gpu *gpu;
	struct tenant *tenant;
	struct client *gpu_prev, *gpu_next;
	struct client *tenant_prev, *tenant_next;

	int socket; /* the session's */
	/* Sends LEVEL. NULL: a test's client. */
	void (*tell_level)(const struct client *client);
	bool tell; /* it must hear of its level, bit and pages */
	pid_t pid;
	int process; /* pidfd; the session's */
	uint32_t context;
	char command[16];
	char library[32]; /* version of libweir; what the client says */

	uint8_t level, bit;
	uint8_t first_level;      /* when it came */
	bool takes_bit;           /* WEIR_HELLO_TAKES_BIT */
	bool takes_pipes;         /* WEIR_HELLO_TAKES_PIPES */
	bool takes_profiles;      /* WEIR_HELLO_TAKES_PROFILES */
	bool says_whole;          /* WEIR_HELLO_SAYS_WHOLE */
	bool comes_concurrent;    /* WEIR_HELLO_CONCURRENT */
	uint64_t unclaimed_since; /* since then its bit is set, but not by its own work; 0: it is
				     not */
	bool paused;              /* demand_words_pause() */
	uint64_t old_until;       /* until then its bit may be set at any level: the last agent's */

	struct region_pages pages;
	struct channels_client channels;
	struct account_reader account;
	struct run_queue_entry entry;
	struct charge_state charge;
	struct record_client recorded;
	struct max_blocking_client blocking;

	/* compute-limit.c's. */
	bool over_limit; /* its container's: it must not run */
	struct {
		/* Since the last look: it has work, which no higher level blocks; it runs; a higher
		 * level blocks it; its gates are closed. */
		bool works, runs, blocked, closed;
		uint64_t ran, executed; /* ns; counters, as of the last look */
	} limit;
	/* min-rates.c's. */
	bool kept_out; /* it must not run, so that a container gets its minimum rate */
	bool leaves;   /* it is ahead of its minimum rate: its demand does not count */
	struct {
		uint64_t executed, wanted; /* ns; counters, as of the last look */
		uint64_t early;            /* ns that were counted before it reported them */
		bool busy;                 /* it had work then */
		bool stopped;              /* by hand, or by its own limit */
	} rate;
	struct preemption preemption;
	uint64_t stopped_until; /* ns, as it was told; 0: it is not stopped */
	bool ends_stops;        /* by itself, as was seen in this hold or an earlier one */
	struct overrun overrun;
	struct ending ending;

	/* siblings.c's. */
	bool beside_sibling; /* it works at the same time as another client of its tenant, */
	uint64_t beside_sibling_until; /* and counts as such until then; ns */

	/* scheduler.c's. */
	bool was_out;                /* client_is_out(), when its hold was written */
	bool closed_ahead;           /* its gates are closed while it has no work */
	uint64_t reported_remaining; /* ns of work, at the last look */
	uint64_t long_until; /* until then more launches of SCHEDULER_LONG_NS are expected, */
	uint64_t much_until; /* and more than POLICY_QUICK of work at a time */
	uint64_t held_until; /* by hand; 0: it is not */
	uint64_t held_since; /* its hold is counted up to then; 0: it is not held */
	uint32_t yield;      /* its container's */
	bool yields_part;    /* client_yields_part(), at the last look */
	uint64_t worked_at;  /* ns: it was last seen with work; 0: never, or it does not matter */
	uint32_t workers;    /* on an SM, by hand; 0: the policy's */
};

/* It reports that its kernels run beside other clients'. */
static inline bool client_is_concurrent(const struct client *client)
{
	return client->comes_concurrent ||
	       atomic_load(&client->pages.status->flags) & WEIR_STATUS_CONCURRENT;
}

/* It asks lower levels for less than the whole GPU, or may do so soon. */
static inline bool client_yields_part(const struct client *client)
{
	return client->yield == YIELD_AUTO ? atomic_load(&client->pages.status->yield_asks) != 0
					   : client->yield != YIELD_WHOLE;
}

/* Its process is to end: reports/ending.h. */
static inline void client_end(struct client *client, enum ending_reason reason)
{
	if (!client->ending.reason)
		client->ending.reason = reason;
}

/* It must not run, whatever the policy says, and takes no turns. */
static inline bool client_is_out(const struct client *client)
{
	return client->over_limit || client->kept_out;
}

/* On its control page. @flag: of enum weir_control_flags. */
static inline void client_set_flag(const struct client *client, uint32_t flag, bool set)
{
	struct weir_control_page *control = client->pages.control;
	uint32_t flags = atomic_load(&control->flags);
	uint32_t wanted = set ? flags | flag : flags & ~flag;

	if (wanted == flags)
		return;
	atomic_store(&control->flags, wanted);
	atomic_fetch_add(&control->epoch, 1);
}
