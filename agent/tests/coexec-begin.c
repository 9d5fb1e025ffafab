#include "coexec-begin.h"

static void hold(struct run_queues *queues, struct run_queue_entry *entry, bool held)
{
	(void)queues;
	(void)entry;
	(void)held;
}

void coexec_begin(struct run_queues *queues, struct coexec_memory *memory,
		  struct run_queue_entry *entries, unsigned n)
{
	run_queues_init(queues, &policy_coexec, &policy_defaults, hold);
	queues->memory = memory;
	queues->levels[0].all_concurrent = queues->levels[0].bounds = true;
	for (unsigned i = 0; i < n; i++) {
		entries[i] = (struct run_queue_entry){.weight = 100};
		run_queues_add(queues, &entries[i]);
	}
}
