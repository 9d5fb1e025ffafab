/* Asks the agent where this process's memory on a GPU is counted: one question on a connection of
 * its own. No driver. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "weir/protocol.h"

struct memory_pages {
	const struct weir_limit_page *limit;
	struct weir_account_page *account;
	uint32_t slot;
	uint64_t id; /* which account it is */
};

enum memory_answer {
	MEMORY_ACCOUNT, /* and the pages, mapped; memory_unmap() */
	MEMORY_NOBODY,  /* no agent, or one that counts nothing of ours */
	MEMORY_CLOSED,  /* there is or may be a limit, and nobody who says it */
	MEMORY_SILENT,  /* the same; an agent heard it, and died or is too old to know */
};

/* Waits up to a second for an agent that is there; a patient one also for one that is not, 30 s
 * where containers of this node have limits: a new version of the agent comes in that time, and a
 * program that starts meanwhile is late, and not refused. */
enum memory_answer memory_ask(struct memory_pages *out, const uint8_t gpu[16], bool patient);
void memory_unmap(const struct memory_pages *pages);
