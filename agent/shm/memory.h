/* Memory accounts: one for each container on each GPU, while a process of the container lives. The
 * processes reserve by themselves (weir/protocol.h). The agent writes the limit, gives out slots,
 * and clears the slots of dead processes: when the kernel reports the death (a pidfd), because the
 * driver has the memory back only then.
 *
 * Account and limit pages are files in stateDir/memory, so both outlive the agent. A slot carries
 * the PID of its process; the next agent frees the slots of those that died meanwhile. The
 * container can write the account page, so the agent only displays its contents. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uthash.h>

#include "kubernetes/container.h"
#include "common/folder.h"
#include "shm/region.h"

#include "weir/loop.h"

#define MEMORY_SWEEP_NS 10000000000ull
#define MEMORY_FIRST    8 /* a container's slots that it gets on a full node */

struct memory_slot;

struct memory {
	char key[704];      /* GPU and tenant */
	const char *tenant; /* in `key` */
	UT_hash_handle hh;
	struct memories *memories;
	char name[65]; /* of its files */
	struct region_page limit, account;
	struct memory_slot *slots[WEIR_MEMORY_SLOTS];
	unsigned n, next;
};

struct memories {
	struct loop *loop;
	const struct folder *root; /* stateDir */
	char *mark;                /* path of WEIR_LIMITED_NAME */
	struct memory *all;        /* hash by key */
	unsigned n, max;           /* slots */
	unsigned max_of_container; /* on all GPUs */
	struct loop_timer sweep;   /* runs while there are files without an open account */
};

/* @root and @socket's folder must exist. Removes files without living processes. @max: slots of
 * the node, beyond the first few of each container. @max_of_container: slots of a container on all
 * GPUs. */
int memories_init(struct memories *memories, struct loop *loop, const struct folder *root,
		  const char *socket, unsigned max, unsigned max_of_container);
/* Leaves the files to the next agent. */
void memories_deinit(struct memories *memories);

/* Removes the files of accounts without living processes. The timer calls it; public for tests. */
void memories_sweep(struct memories *memories);

/* Makes the mark @path: some container has a limit. A process that finds no agent must not allocate
 * then. Logs a failure. */
void memories_mark(const char *path);
/* This agent or an earlier one marked the node. */
bool memories_marked(const struct memories *memories);

struct memory_owner {
	const char *tenant; /* its key */
	const char *gpu;
	const struct container_identity *identity;
	bool known;     /* false: keep the limit in the page */
	uint64_t limit; /* 0: none */
	uint32_t wait_ms;
};

/* The account, opened if there are files from before the agent's restart. NULL: none, or an error
 * that is logged. */
struct memory *memories_find(struct memories *memories, const struct memory_owner *owner);
/* The slot of a process, which keeps it until it is dead. @process is its pidfd and stays the
 * caller's. -ENOSPC: too many processes, of the container or on the node; or another negative
 * errno. */
int memories_enter(struct memories *memories, const struct memory_owner *owner, pid_t pid,
		   int process, struct memory **out);

/* NULL: none is open. */
struct memory *memories_get(struct memories *memories, const char *tenant, const char *gpu);
uint64_t memory_limit(const struct memory *memory);
/* Sum of what the container's processes report. */
uint64_t memory_reserved(const struct memory *memory);
