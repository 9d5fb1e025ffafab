/* The clients of a run queue that wait, and the one of them that is next: a part of run-queue.c. */
#pragma once

#include "policy/policy.h"

/* @entry is in the list, and the policy knows it. */
void waiting_note(struct run_queue *queue, const struct run_queue_entry *entry);
/* It waits no longer. */
void waiting_withdraw(struct run_queue *queue, struct run_queue_entry *entry);
/* Into the list again: a client that never ran has waited all the time, so it keeps its place. */
void waiting_put_back(struct run_queue *queue, struct run_queue_entry *entry);
/* @entry is in the list, but may not run concurrently any more, and begins to wait. If it did not
 * run while it could, it keeps its place. */
void waiting_from_now(struct run_queue *queue, struct run_queue_entry *entry);

/* The first by rank; NULL: none waits. */
struct run_queue_entry *waiting_first(const struct run_queue *queue);
/* When @entry must be current, with a part of the objective left for what nobody reports: the rest
 * of a kernel, the hardware's switch. Its objective counts until it has been current once since its
 * work arrived. A concurrent client that is not held waits for nothing. */
uint64_t waiting_due(const struct run_queue *queue, const struct run_queue_entry *entry);
/* The client that must be current before all others; NULL: none waits. */
struct run_queue_entry *waiting_urgent(const struct run_queue *queue);
/* The client that must be current now; NULL: none. */
struct run_queue_entry *waiting_due_now(const struct run_queue *queue);
