/* Spatial yield: a higher-level client with few blocks leaves most of the SMs to lower-level ones,
 * where kernels of several clients run at the same time (MPS). Clients do it among themselves, in
 * the demand pages (weir/protocol.h). The agent
 *
 * - tells those below when they may rely on `whole` (WEIR_CONTROL_SPATIAL): every client above them
 *   sets it, some client above yields less than the whole GPU (weir.dev/yield), and no client may
 *   come back after the agent's restart. It takes the flag away before a client that does not set
 *   `whole` has its WELCOME;
 * - sets `whole` for clients of an older libweir, for kernels that were launched before that;
 * - corrects `sms` where clients have died.
 *
 * gpu.c does the first, demand-words.c the rest. This file says who may rely on `whole`. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "weir/protocol.h"

/* Bits by level. Zero: no clients. */
struct spatial_look {
	uint8_t silent; /* a client does not set `whole`, or is time-sliced */
	uint8_t yields; /* a client yields less than the whole GPU */
};

void spatial_add(struct spatial_look *look, uint8_t level, bool says_whole, bool yields);
/* Clients of @level may rely on `whole`, if they run at the same time as others. */
bool spatial_allows(const struct spatial_look *look, uint8_t level);
