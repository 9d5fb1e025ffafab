/* What this process has of each GPU's memory, reserved in its container's account before the driver
 * is asked for it. Without an agent, or without a limit, it is only added up here: a limit may come
 * at any time, and then holds for what is there.
 *
 * Memory of a pool is what the pool has taken from the GPU, not what is handed out of it. */
#pragma once

#include "shim/driver.h"

#include <stdatomic.h>
#include <stdint.h>

struct ledger;

/* Of a device, where the agent was asked for its account; never NULL for a valid one. NULL: no
 * such device. Every hook that allocates comes here first. */
struct ledger *ledger_of(CUdevice device);
/* Of the current context's device; NULL: no context. */
struct ledger *ledger_here(void);

/* Before an allocation. False: it would be more than the limit, and must not be made. */
bool ledger_take(struct ledger *ledger, uint64_t bytes);
/* What is there already, or was made though more than expected. */
void ledger_force(struct ledger *ledger, uint64_t bytes);
/* When it is gone, or was not made. */
void ledger_drop(struct ledger *ledger, uint64_t bytes);

/* Pools that belong to the ledger. False: no memory. Those of which one is being removed are left
 * alone by all threads at the return. */
bool ledger_add_pool(struct ledger *ledger, CUmemoryPool pool);
void ledger_remove_pool(CUmemoryPool pool);
/* For an allocation in stream order: takes whole chunks, which ledger_settle() gives back. */
bool ledger_take_for_pool(struct ledger *ledger, uint64_t bytes);
/* Reads what the pools have, and gives back what was taken for them: bytes as they were taken, or
 * 0. False: it is more than the limit now, though as much as possible was given back to the GPU. */
bool ledger_settle(struct ledger *ledger, uint64_t taken);
/* Memory that a graph owns is a pool that can be asked for. */
void ledger_has_graphs(struct ledger *ledger);

/* The limit and what is reserved by all processes of the container. False: no limit. */
bool ledger_view(struct ledger *ledger, uint64_t *limit, uint64_t *reserved);
/* True: it has an account, so pools are worth a record for each allocation. */
bool ledger_counts(const struct ledger *ledger);

/* The agent is another one, or has just come: what is there is to be counted. Any thread. */
void ledger_stale(void);
/* An agent has answered: what was asked in vain before is asked again. Any thread. */
void ledger_answered(void);
/* In a forked child: nothing is ours. */
void ledger_forget(void);

/* Pools with memory in them, of all ledgers: look at them when work has ended. */
extern _Atomic int ledger_pools;
void ledger_settle_here(void);
