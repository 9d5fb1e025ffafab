/* What the agent clears in the demand words of a GPU, and shows for its clients.
 *
 * Clients set bits; the agent only clears, by one rule. A bit may be set in the word of level q if
 * a client above q has it, or if it may belong to a client that has not come back after the agent's
 * restart, or came back a moment ago. All other bits are cleared. So is one whose client reports no
 * work: another may have set it. The client is asked, and sets it again if it does have work. What
 * holds for `word` of a page holds for `whole`; spatial.h says more.
 *
 * Clients without a bit of their own share the last one. While there are such clients above level
 * 0, the agent looks at their status pages each millisecond and keeps the bit for them. */
#pragma once

#include "scheduler/client.h"

#define DEMAND_WORDS_CLAIM_NS 200000000ull /* for this long a bit may be set without work */

/* Bits that may be set in the word of @level. */
uint64_t demand_words_allowed(const struct gpu *gpu, unsigned level, uint64_t now);
/* Clears what may not be set, and corrects the sums of SMs. Clients that must be asked have `tell`
 * set. */
void demand_words_sweep(struct gpu *gpu, uint64_t now);
/* Sets or clears the shared bit. */
void demand_words_share(struct gpu *gpu);

/* While it is @paused its demand does not count, whatever work it has. Call again at each look
 * while it is. */
void demand_words_pause(struct gpu *gpu, struct client *client, bool paused);
/* Shows the demand of @client, if it has work and does not show any: it may have been told too late
 * to show it. */
void demand_words_show(const struct gpu *gpu, const struct client *client);
