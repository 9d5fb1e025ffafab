/* Which clients of a run queue are held: a part of run-queue.c. */
#pragma once

#include "policy/policy.h"

/* Tells the owner of @queues if that changes. */
void holds_set(struct run_queues *queues, struct run_queue_entry *entry, bool held);
/* As it follows from the current client. */
void holds_write(struct run_queues *queues, struct run_queue *queue);
