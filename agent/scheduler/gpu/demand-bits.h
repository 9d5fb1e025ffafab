/* Which client of a GPU has which bit in the demand words.
 *
 * A client has the same bit in the words of all levels, so it keeps it when its level changes.
 * Level 0 needs none. A container gets another one only while more are free than it has, so the
 * first one leaves half of them, the second one a quarter, and each new one finds one. Clients
 * without share the last bit. What is given out is noted where the next agent finds it. */
#pragma once

#include "scheduler/client.h"

#define DEMAND_BIT_SHARED (1ull << WEIR_BIT_SHARED)

static inline uint64_t demand_bit(const struct client *client)
{
	return 1ull << client->bit;
}

/* It needs a bit, and has none of its own. */
static inline bool demand_bit_is_shared(const struct client *client)
{
	return client->bit == WEIR_BIT_SHARED && client->level > 0;
}

/* Gives @client a bit, @claimed if it is free. */
void demand_bits_give(struct gpu *gpu, struct client *client, uint8_t claimed);
/* It is gone: others may have its bit. */
void demand_bits_take(struct gpu *gpu, const struct client *client);
/* Notes the client's level with its bit. */
void demand_bits_note_level(const struct gpu *gpu, const struct client *client);
/* Bits from before the agent's restart were not claimed. The pages that their owners could write
 * need new generations: they may live, and have lost their levels meanwhile. */
void demand_bits_give_up(struct gpu *gpu);
