/* A container's account of memory on a GPU, as its processes share it: what each has reserved, and
 * one lock. Pages only, no driver and no agent; anything may lie in them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "weir/protocol.h"

enum account_answer {
	ACCOUNT_RESERVED,
	ACCOUNT_FULL, /* it would be more than the limit */
	ACCOUNT_BUSY, /* nobody gave the lock back for seconds */
};

/* Adds @more to the slot, if the sum of all slots then stays within the limit. One thread of a
 * process at a time. */
enum account_answer account_reserve(struct weir_account_page *account,
				    const struct weir_limit_page *limit, uint32_t slot,
				    uint64_t more);
/* What the slot holds, whatever the limit is: less than before, or what is there already. */
void account_set(struct weir_account_page *account, uint32_t slot, uint64_t bytes);
/* Of all slots, up to the largest number there is. */
uint64_t account_sum(const struct weir_account_page *account);

/* @bytes in whole chunks. */
static inline uint64_t account_chunks(uint64_t bytes)
{
	uint64_t over = bytes % WEIR_MEMORY_CHUNK;

	if (!over)
		return bytes;
	return bytes > UINT64_MAX - WEIR_MEMORY_CHUNK ? UINT64_MAX
						      : bytes + WEIR_MEMORY_CHUNK - over;
}
