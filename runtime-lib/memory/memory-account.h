/* The container's account of memory on a GPU: a page that its processes share, with what each has
 * reserved, and one lock. The agent hands out the pages; nothing here calls the driver. The content
 * of the pages is not trusted. */
#pragma once

#include "weir/base.h"
#include "weir/protocol.h"

enum account_answer {
	ACCOUNT_RESERVED,
	ACCOUNT_FULL, /* it would be more than the limit */
	ACCOUNT_BUSY, /* another process has held the lock for seconds */
};

/* Adds @more to the slot, if the sum of all slots then stays within the limit. One thread of a
 * process at a time. */
enum account_answer account_reserve(struct weir_account_page *account,
				    const struct weir_limit_page *limit, uint32_t slot,
				    uint64_t more);
/* Sets the slot, whatever the limit is: for less than before, and for memory that exists already.
 */
void account_set(struct weir_account_page *account, uint32_t slot, uint64_t bytes);
/* Of all slots, saturating. */
uint64_t account_sum(const struct weir_account_page *account);

/* @bytes in whole chunks. */
static inline uint64_t account_chunks(uint64_t bytes)
{
	uint64_t over = bytes % WEIR_MEMORY_CHUNK;

	return over ? saturating_add(bytes, WEIR_MEMORY_CHUNK - over) : bytes;
}

struct memory_pages {
	const struct weir_limit_page *limit;
	struct weir_account_page *account;
	uint32_t slot;
	uint64_t id; /* of the account */
};

/* The limit, and what all processes of the container have reserved. False: no limit. */
bool memory_view(const struct memory_pages *pages, uint64_t *limit, uint64_t *reserved);

enum memory_answer {
	MEMORY_ACCOUNT, /* @out has the pages, for memory_unmap() */
	MEMORY_NOBODY,  /* no agent, or it does not count this process */
	MEMORY_CLOSED,  /* there may be a limit, and no agent tells it */
	MEMORY_SILENT,  /* the same: an agent heard the question and died, or is too old for it */
};

/* Asks the agent for this process's account on a GPU, on a connection of its own. An agent has 1 s
 * to answer. If containers of this node have limits, @patient also waits up to 30 s for an agent
 * to come: an upgrade of the agent takes less, so programs that start meanwhile are not refused. */
enum memory_answer memory_ask(struct memory_pages *out, const uint8_t gpu[16], bool patient);
void memory_unmap(const struct memory_pages *pages);
/* Tells the agent that an allocation waits, for as long as the connection is open. The connection,
 * or a negative errno: there is no agent. */
int memory_tell_wait(const uint8_t gpu[16], uint64_t bytes);
