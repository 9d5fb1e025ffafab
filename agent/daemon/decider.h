/* Decides what each tenant may have: its level, weight, latency objective and memory limits. The
 * input is the pod's annotations and class, or the standalone rules, and the configuration. The
 * decision goes into the tenant, its memory accounts and its clients' control pages. Sessions tell
 * clients of a new level (session.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/gpu-socket.h"
#include "scheduler/gpu/gpus.h"
#include "scheduler/scheduler.h"
#include "scheduler/tenants.h"
#include "shm/memory.h"

struct config;
struct pods;

struct decider {
	const struct config *config;
	bool standalone;
	struct pods *pods; /* NULL: no Kubernetes */
	bool pods_known;   /* the API server has listed this node's pods at least once */
	bool limited;      /* some container of the node has, or had, a memory limit */
	struct gpus *gpus;
	struct tenants *tenants;
	struct scheduler *scheduler;
	struct memories *memories;
	const struct gpu_sockets *gpu_sockets;
};

/* Call it when the tenant is new, and when its pod or the configuration has changed. */
void decider_decide(struct decider *decider, struct tenant *tenant);
/* Writes the tenant's limits again: the defaults may have changed. */
void decider_apply_limits(struct decider *decider, struct tenant *tenant);

/* Marks the node as limited if a GPU's default, a rule or a pod's annotation sets a limit, even if
 * no process of that pod has come yet. On a marked node a process that finds no agent must not
 * allocate. */
void decider_mark_limits(struct decider *decider);
void decider_mark(struct decider *decider);

/* The tenant's limit on @gpu in bytes; 0: none. *@cut (may be NULL): the annotation asked for more
 * than it may, or than is left beside the others' limits. */
uint64_t decider_memory_limit(const struct decider *decider, const struct tenant *tenant,
			      const struct gpu *gpu, bool *cut);
/* How long its allocations wait for memory of a full GPU; 0: they fail. */
uint32_t decider_memory_wait(const struct decider *decider, const struct tenant *tenant);
/* Containers came or went: limits above the default change with the room beside the others. */
void decider_share_memory(struct decider *decider);
/* The tenant has a limit on some GPU. */
bool decider_has_limit(const struct decider *decider, const struct tenant *tenant);
struct memory_owner decider_memory_owner(const struct decider *decider, const struct tenant *tenant,
					 const struct gpu *gpu);
/* Copies limits and reserved bytes into the tenants' usages, for display. */
void decider_read_memory(struct decider *decider);

/* The tenant's pod may be on this node, but the API server has not listed its pods yet. */
bool decider_awaits_pod(const struct decider *decider, const struct tenant *tenant);
/* NULL: unknown, or the tenant is in no pod. */
const struct pod *decider_pod(const struct decider *decider, const struct tenant *tenant);
