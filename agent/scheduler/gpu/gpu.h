/* One GPU: its clients, and the right to preempt that their levels give them. demand-bits.h says
 * which client has which bit, demand-words.h what the agent clears.
 *
 * When a client may no longer write a page, the page gets a new generation (shm/region.h). Clients
 * keep all generations mapped, so there are only so many, in case somebody's level is lowered again
 * and again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/gpu/gpu-state.h"
#include "scheduler/gpu/max-blocking-time.h"

#include "weir/loop.h"

#define GPU_GRACE_NS   1000000000ull /* to claim a bit, and to learn of a lower level then */
#define GPU_SHARING_NS 1000000ull
#define GPU_WATCH_NS   MAX_BLOCKING_TIME_LOOK_NS
#define GPU_RENEWALS   256u /* new generations at once; a process of 0.1.0 has room for 341 */
#define GPU_RENEW_NS   600000000000ull /* beyond these, between two */

/* Opens the demand pages and begins to wait for claims. The rest of @gpu is zero but for uuid, id,
 * name, memory and listed. */
int gpu_open(struct gpu *gpu, struct loop *loop, const struct folder *root);
/* Waits for claims from now on: clients could not connect before. */
void gpu_await_claims(struct gpu *gpu);
/* No client may be left. */
void gpu_close(struct gpu *gpu);

/* Gives @client a bit, @claimed_bit if it is free, and counts it at client->level. */
void gpu_add(struct gpu *gpu, struct client *client, uint8_t claimed_bit);
/* Clears its demand. @lives: it goes on without this agent, and keeps its bit for the next one. */
void gpu_remove(struct gpu *gpu, struct client *client, bool lives);
/* Gives it a bit if it needs one. gpu_tell() must follow. */
void gpu_set_level(struct gpu *gpu, struct client *client, uint8_t level);
/* Somebody who had @former has @level now, and must not write the pages in between. gpu_tell() must
 * follow. */
void gpu_revoke(struct gpu *gpu, uint8_t level, uint8_t former);
/* Renews pages if necessary, and sends LEVEL to all clients that must hear of something. */
void gpu_tell(struct gpu *gpu);

static inline bool gpu_slices(const struct gpu *gpu, uint8_t level)
{
	return gpu->sliced && gpu->sliced_level == level;
}

/* Clients of different levels have MPS servers of their own, which share the GPU by time. */
static inline bool gpu_has_servers(const struct gpu *gpu)
{
	for (unsigned level = 0; level < WEIR_LEVELS; level++)
		if (gpu->servers[level])
			return true;
	return false;
}

/* What the timers do, for tests. */
void gpu_sweep(struct gpu *gpu, uint64_t now);
void gpu_tell_blocking(struct gpu *gpu, uint64_t now);
/* Call when clients, levels or yields have changed. */
void gpu_tell_spatial(struct gpu *gpu);
