/* Accounts of memory: one for each container on each GPU, as long as a process of it lives. The
 * processes reserve in it by themselves (weir/protocol.h); the agent says the limit, gives out
 * slots, and takes back what the dead had.
 *
 * Both pages are files, in stateDir/memory: what is reserved and what the limit was outlive the
 * agent. A slot carries the pid of its process; the next agent frees those whose processes have
 * died meanwhile. The account page is its container's to write: what lies in it is shown, and used
 * for nothing else. */
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

struct memory_slot;

struct memory {
	char key[704]; /* GPU and tenant */
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
	struct loop_timer sweep;   /* while files are there that nobody has open */
};

/* @root and @socket's folder must be there. Files of the dead go. @max: processes. */
int memories_init(struct memories *memories, struct loop *loop, const struct folder *root,
		  const char *socket, unsigned max);
/* The files stay: processes live on. */
void memories_deinit(struct memories *memories);

/* What the timer does, for tests: files of accounts that no living process has, nor claims, go. */
void memories_sweep(struct memories *memories);

/* A container of this node has a limit: processes that find no agent are not to allocate. */
void memories_mark(const struct memories *memories);
/* An agent of this node, maybe an earlier one, has said so. */
bool memories_marked(const struct memories *memories);

struct memory_owner {
	const char *tenant; /* its key */
	const char *gpu;
	const struct container_identity *identity;
	bool known;     /* else the limit of before holds */
	uint64_t limit; /* 0: none */
};

/* The account that is there, or was before the agent's restart. NULL: none, or trouble that is
 * said. */
struct memory *memories_find(struct memories *memories, const struct memory_owner *owner);
/* The slot of a process, which it keeps until it is dead; @process is its pidfd and stays the
 * caller's. A slot number, or -ENOSPC: too many processes, or another negative errno. */
int memories_enter(struct memories *memories, const struct memory_owner *owner, pid_t pid,
		   int process, struct memory **out);
/* Of an account that is there; else nothing. */
void memories_limit(struct memories *memories, const char *tenant, const char *gpu, uint64_t limit);

/* NULL: none that is open. */
struct memory *memories_get(struct memories *memories, const char *tenant, const char *gpu);
uint64_t memory_limit(const struct memory *memory);
/* Of all processes, as they say. */
uint64_t memory_reserved(const struct memory *memory);
