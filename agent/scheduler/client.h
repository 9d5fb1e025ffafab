/* A client: one process and its context on one GPU, welcomed. Its session makes and frees it; its
 * GPU and its tenant list it. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "policy/account.h"
#include "policy/charge.h"
#include "policy/policy.h"
#include "scheduler/max-blocking-time.h"
#include "shm/region.h"
#include "scheduler/record.h"

struct gpu;
struct tenant;

struct client {
	uint64_t number;
	struct gpu *gpu;
	struct tenant *tenant;
	struct client *gpu_prev, *gpu_next;
	struct client *tenant_prev, *tenant_next;

	int socket; /* the session's */
	pid_t pid;
	uint32_t context;
	char command[16];
	char library[32]; /* version of libweir; what the client says */

	uint8_t level, bit;
	/* Lowered: it may act at the old level for a moment, until it has read the message. */
	uint8_t old_level;
	uint64_t old_until;

	struct region_pages pages;
	struct account_reader account;
	struct run_queue_entry entry;
	struct charge_state charge;
	struct record_client recorded;
	uint64_t told_remaining;
	uint64_t long_until; /* its launches were long of late: equals are not to wait for the next
			      */
	struct max_blocking_client blocking;
	uint64_t held_until; /* by hand; 0: not */
	uint64_t held_since; /* until when its hold is counted; 0: it is not held */
};

/* It says that its kernels run beside others'. */
static inline bool client_is_concurrent(const struct client *client)
{
	return atomic_load(&client->pages.status->flags) & WEIR_STATUS_CONCURRENT;
}
