/* Tenants: the containers (standalone: the users' cgroups) whose processes are connected. A tenant
 * has the level, and its clients take it from there. It also keeps what they used, and outlives
 * them for a while, so that metrics show clients that ran between two scrapes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "policy/account.h"
#include "scheduler/client.h"
#include "scheduler/compile-container.h"
#include "kubernetes/container.h"
#include "hardware/limit.h"
#include "scheduler/gpu/gpu.h"
#include "policy/min-rate.h"
#include "policy/objective.h"
#include "scheduler/tenant-spec.h"

#define TENANTS_IDLE_MAX 256
#define TENANTS_IDLE_NS  (600 * 1000000000ull)

/* A container's part of what is scarce on a GPU or the node. */
struct quotas {
	uint64_t clients, bits, accounts; /* as of tenant_read() and decider_read_memory() */
	uint64_t refused;                 /* clients and accounts that it was refused */
	uint64_t compile_busy;            /* kernels for which it was told to ask later */
	uint64_t disobeyed;               /* holds and stops that it ended by itself */
	uint64_t overruns;                /* kernels that did not leave */
	uint64_t killed[ENDING_REASONS];  /* processes that were ended, by reason */
};

/* Allocations that wait while the GPU is full (daemon/memory-wait.h). */
struct memory_waits {
	uint64_t n, waited; /* waits so far; ns of those that are over */
	uint64_t waiting;   /* now */
	uint64_t bytes;     /* of the last */
	uint64_t told;      /* waits that the pod was told of */
};

struct usage {
	struct usage *next;
	struct gpu *gpu; /* GPUs outlive tenants */
	uint8_t granted; /* the highest level whose pages the tenant has and may still write */
	struct account account;
	struct objective objective; /* of the tenant's latency objective, when it has one */
	uint64_t held;      /* ns that its clients were held for same-level clients, or by hand */
	struct limit limit; /* of compute */
	struct min_rate rate;
	/* min-rates.c's, as of its last look: nobody else could run; a client has work. */
	bool rate_alone, rate_works;
	uint64_t rate_worked; /* ns, the last look at which it had work */
	uint32_t rate_told;   /* min-rate-report.c's */
	/* As of tenant_read(): a client has work; kernels that are being tuned. */
	bool active;
	uint64_t tuning;
	uint64_t sms_needed, sms_left; /* as of tenant_read(); see sms.h */
	/* As of agent_read_memory(); limit 0: none. */
	uint64_t memory_limit, memory_reserved;
	struct memory_waits memory_waits;
	struct quotas quotas;
	uint64_t disobedience_told;          /* disobedience.c's */
	uint64_t overruns_told;              /* overrun.c's */
	uint64_t kills_told[ENDING_REASONS]; /* ending.c's */
	bool memory_cut;                     /* the limit is less than the tenant asks for */
};

struct tenant {
	char key[640];
	UT_hash_handle hh;
	struct container_identity identity;            /* of the first process */
	char namespace_[64], pod[254], container[640]; /* names for people; may be empty */
	bool pod_known;                                /* the API server has sent its pod */
	uint8_t level;
	char reason[128];
	uint32_t share;         /* its weight among same-level clients, 1..100 */
	char wanted_weight[32]; /* as written; empty: its share of the GPU */
	bool weight_refused;
	uint64_t slo;            /* latency objective, ns from launch to start; 0: none */
	char wanted_latency[32]; /* as written, perhaps refused; empty: none */
	uint32_t compute_limit;  /* per cent of a GPU's time; 0: none */
	char wanted_compute[32]; /* as written, perhaps refused; empty: none */
	uint32_t min_rate;       /* thousandths of its speed alone; 0: none */
	bool min_rate_holds;     /* among same-level clients, too */
	char wanted_rate[32];    /* as written, perhaps refused; empty: none */
	uint32_t yield;          /* policy/yield.h */
	bool yield_refused;
	char wanted_yield[32];     /* as written, perhaps refused; empty: none */
	struct memory_spec memory; /* its limit, as far as it is known */
	char wanted_memory[32];    /* as written */
	bool memory_refused;       /* `wanted_memory` is invalid */
	bool memory_known;         /* whether there is a limit is known */
	bool fault_domain_told;    /* fault-domain.c's */
	unsigned n_sessions;
	struct compile_container compiling; /* the compile service's */
	struct client *clients;
	struct usage *usages;
	uint64_t idle_since;
	struct tenant *prev, *next; /* in tenants.idle, oldest first */
};

/* Names the container in the log. */
#define WHOSE       "namespace '%s', pod '%s', container '%s': "
#define WHO(tenant) (tenant)->namespace_, (tenant)->pod, (tenant)->container

/* The first of its container's clients on its GPU: that stands for all of them. */
static inline bool client_is_first(const struct client *client)
{
	const struct client *first = client->tenant->clients;

	while (first->gpu != client->gpu)
		first = first->tenant_next;
	return first == client;
}

struct tenants {
	struct tenant *all; /* hash by key */
	struct tenant *idle;
	unsigned n_idle;
};

/* The tenant of a process, with one session more. -ENOMEM. */
int tenants_enter(struct tenants *tenants, const struct container_identity *identity,
		  struct tenant **out);
void tenants_leave(struct tenants *tenants, struct tenant *tenant, uint64_t now);
/* Forgets tenants that were idle for long. */
void tenants_prune(struct tenants *tenants, uint64_t now);
/* Forgets an idle tenant. Another one of the same name, if any, inherits what it used. */
void tenants_forget(struct tenants *tenants, struct tenant *tenant);
void tenants_deinit(struct tenants *tenants);

/* What the tenant used on @gpu; valid as long as the tenant. NULL: no memory. */
struct usage *tenant_usage(struct tenant *tenant, struct gpu *gpu);
void tenant_free_usages(struct tenant *tenant);
/* Adds up the same container's usage of the same GPU. */
void usage_add(struct usage *sum, const struct usage *more);
/* Reads the status pages of all its clients, and judges its objective. */
void tenant_read(struct tenant *tenant);
void client_read(struct client *client);
/* Call when the client's hold begins, goes on, or ends. */
void client_count_hold(struct client *client, bool held, uint64_t now);
