/* What the hardware does for the scheduler: slices by level and weight, and stops of clients that
 * are held (hardware/channels.h). */
#pragma once

#include "scheduler/client.h"
#include "scheduler/gpu.h"

/* A held client may finish what it has begun, for so long. Then it is stopped. */
#define PREEMPTION_HOLD_NS 3000000ull
/* A stop ends then unless it is renewed (weir_control_page.stopped_until). */
#define PREEMPTION_STOP_NS 1000000000ull

/* Clients of @gpu have come, gone, or changed. */
void preemption_set_slices(struct gpu *gpu);
/* The MPS server of @level has channel groups that can be used; NULL: it has none any more. */
void preemption_set_server(struct gpu *gpu, uint8_t level, struct channels_client *server);
/* Decides whether the hardware stops @client: it was held for long, since @since (0: it is not), or
 * is over its compute limit. Call at each look while one of both is so, and when it ends. */
void preemption_hold(struct client *client, uint64_t since, uint64_t now);
