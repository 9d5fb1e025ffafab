/* Tenants: the containers, or standalone the users' cgroups, whose processes are connected. A
 * tenant has the level; its clients have it from there. It also keeps what they used, and so
 * outlives them for a while: what ran between two looks of a monitoring system is still told. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "policy/account.h"
#include "scheduler/client.h"
#include "kubernetes/container.h"
#include "scheduler/gpu.h"
#include "policy/objective.h"
#include "scheduler/tenant-spec.h"

#define TENANTS_IDLE_MAX 256
#define TENANTS_IDLE_NS  (600 * 1000000000ull)

struct usage {
	struct usage *next;
	const struct gpu *gpu; /* GPUs outlive tenants */
	struct account account;
	struct objective objective; /* of the tenant's latency objective, when it has one */
	uint64_t held;              /* ns that its clients were held for their equals, or by hand */
	/* As of tenant_read(): one of its clients has work; kernels of theirs that are compared. */
	bool active;
	uint64_t tuning;
	/* As of agent_read_memory(); limit 0: none. */
	uint64_t memory_limit, memory_reserved;
	bool memory_cut; /* the limit is less than the tenant's words say */
};

struct tenant {
	char key[640];
	UT_hash_handle hh;
	struct container_identity identity;            /* of the first process */
	char namespace_[64], pod[254], container[640]; /* what people know it by; may be empty */
	bool pod_known;                                /* its pod's words were heard */
	uint8_t level;
	char reason[128];
	uint32_t share;         /* its weight among equals, 1..100 */
	char wanted_weight[32]; /* the words of it; empty: the share of the GPU */
	bool weight_refused;
	uint64_t slo;              /* ns from launch to start that it wants; 0: nothing */
	char wanted_latency[32];   /* the words of it, which may be refused; empty: none */
	struct memory_spec memory; /* what is known of its limit */
	char wanted_memory[32];    /* the same */
	bool memory_refused;       /* these words make no sense */
	bool memory_known;         /* somebody has said whether there is a limit */
	unsigned n_sessions;
	uint64_t compiled; /* when a kernel of it was last compiled (compile.h) */
	struct client *clients;
	struct usage *usages;
	uint64_t idle_since;
	struct tenant *prev, *next; /* of the idle, oldest first */
};

struct tenants {
	struct tenant *all; /* hash by key */
	struct tenant *idle;
	unsigned n_idle;
};

/* The tenant of a process, with one session more; @fresh: it was not known. -ENOMEM. */
int tenants_enter(struct tenants *tenants, const struct container_identity *identity,
		  struct tenant **out, bool *fresh);
void tenants_leave(struct tenants *tenants, struct tenant *tenant, uint64_t now);
/* Forgets those that were idle for long. */
void tenants_prune(struct tenants *tenants, uint64_t now);
/* Forgets an idle one; what it used goes to another of the same name, if there is one. */
void tenants_forget(struct tenants *tenants, struct tenant *tenant);
void tenants_deinit(struct tenants *tenants);

/* What the tenant used on @gpu, its own until it is forgotten. NULL: no memory. */
struct usage *tenant_usage(struct tenant *tenant, const struct gpu *gpu);
void tenant_free_usages(struct tenant *tenant);
/* Reads the status pages of all its clients, and judges its objective. */
void tenant_read(struct tenant *tenant);
void client_read(struct client *client);
/* Its hold begins, goes on, or is over. */
void client_count_hold(struct client *client, bool held, uint64_t now);
