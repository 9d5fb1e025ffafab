/* Profiles of kernels (weir/protocol.h): those that the agent told with the forms settle a kernel
 * without a comparison, and what a comparison settles is taught to the agent. */
#pragma once

#include "autotune/autotune.h"
#include "preempt/function.h"

/* A kernel in one geometry. */
struct profile_subject {
	const struct function *function;
	const struct geometry *geometry;
	uint64_t key; /* of its times (measure/kernel.h) */
	struct autotuner *tuner;
};

/* What the agent was taught of it. Zero: nothing yet. */
struct profile_taught {
	uint64_t native; /* ns, native time that it was tuned for */
	bool eviction;   /* with the cost of an eviction */
};

/* Worker: settles the kernel by its profile. False: there is none that fits. */
bool profile_take(const struct profile_subject *subject, const struct autotune_situation *at,
		  const struct kernel_facts *facts);

/* Worker: teaches what a comparison has settled, once; and again with the cost of an eviction. */
void profile_teach(const struct client *client, const struct profile_subject *subject,
		   struct profile_taught *taught);
