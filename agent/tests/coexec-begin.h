/* What the made-up GPUs of coexec's tests begin with. */
#pragma once

#include "policy/coexec/memory.h"
#include "policy/run-queue.h"

/* Run queues under the policy coexec that know nothing of earlier clients, and @n new ones at level
 * 0 with equal weights. All run at the same time, and their workers can be bounded. Holds are told
 * to nobody: the entries have them. */
void coexec_begin(struct run_queues *queues, struct coexec_memory *memory,
		  struct run_queue_entry *entries, unsigned n);
