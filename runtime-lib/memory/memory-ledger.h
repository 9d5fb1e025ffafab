/* What this process has of each GPU's memory. It is reserved in the container's account before the
 * driver is asked. Without an agent or a limit it is only added up here, because a limit may come
 * at any time and then includes it.
 *
 * A pool counts as what it has taken from the GPU, not as what it has handed out. */
#pragma once

#include "shim/driver.h"

struct ledger;

/* Of a device; NULL: no such device. Asks the agent for the account if it is not known. Every hook
 * that allocates calls this first. */
struct ledger *ledger_of(CUdevice device);
/* Of the current context's device; NULL: no context. */
struct ledger *ledger_here(void);

/* Before an allocation. False: it would exceed the limit and must not be made. */
bool ledger_take(struct ledger *ledger, uint64_t bytes);
/* For memory that exists already, whatever the limit is. */
void ledger_force(struct ledger *ledger, uint64_t bytes);
/* The memory was released, or not allocated. */
void ledger_drop(struct ledger *ledger, uint64_t bytes);

/* False: it is too much, and not added. What is negative always fits, and calls no driver for
 * contexts. Bytes of variables count in each context of every device. Without any, contexts ask no
 * agent. @forced: adds it whatever the limit is. */
bool ledger_add_variables(int64_t bytes);
bool ledger_add_contexts(CUdevice device, int64_t more, bool forced);
/* A graph that allocates @bytes is to be instantiated. From now on the graphs' own memory counts as
 * a pool. */
bool ledger_add_graph(struct ledger *ledger, uint64_t bytes);
/* It is no more, or was not. Until ledger_settle(), the device may still have what it allocated. */
void ledger_drop_graph(struct ledger *ledger, uint64_t bytes);

/* Pools that the ledger counts. False: too many. When ledger_remove_pool() returns, no thread uses
 * the pool's handle here. */
bool ledger_add_pool(struct ledger *ledger, CUmemoryPool pool);
void ledger_remove_pool(CUmemoryPool pool);
/* Reads what the pools have, and gives back @taken as it was taken for them. False: the container
 * exceeds the limit, although the pools gave back to the GPU what they could. */
bool ledger_settle(struct ledger *ledger, uint64_t taken);

/* The limit, and what all processes of the container have reserved. False: no limit. */
bool ledger_view(struct ledger *ledger, uint64_t *limit, uint64_t *reserved);
/* How long an allocation waits when the GPU is full; 0: it fails. */
unsigned ledger_wait_ms(struct ledger *ledger);
CUdevice ledger_device(const struct ledger *ledger);
/* It has an account, so allocations from pools are recorded. */
bool ledger_counts(const struct ledger *ledger);

/* Any thread: an agent has answered, so the accounts that are missing are asked for again. @all:
 * another agent has come, so all are. */
void ledger_ask_again(bool all);
/* In a forked child, which has no GPU memory. */
void ledger_forget(void);

/* Ledgers whose pools hold memory: settle them when work has ended. */
extern _Atomic int ledger_pools;
void ledger_settle_here(void);
