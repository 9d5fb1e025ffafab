/* What a kernel's launches could be made like in each form: the configs that a tuned tries. */
#pragma once

#include "preempt/tuning.h"

/* From the environment. */
struct settings {
	uint64_t latency;      /* ns: wanted from the demand until a kernel has left */
	bool latency_told;     /* by the user: so what is learned of those above does not count */
	enum weir_form forced; /* WEIR_FORM_COUNT: none is */
	uint32_t chunk;        /* blocks of a ticket; 0: not forced */
};

/* As tuning_init() read them. */
const struct settings *tuning_settings(void);

static inline bool is_forced(const struct settings *settings)
{
	return settings->forced != WEIR_FORM_COUNT;
}

static inline uint64_t geometry_blocks(const struct geometry *geometry)
{
	return (uint64_t)geometry->grid[0] * geometry->grid[1] * geometry->grid[2];
}

/* ns, about: from the demand until the last block has left. */
uint64_t launch_config_leave_time(const struct tuned_kernel *tuned,
				  const struct launch_config *config);

/* Worker: before a candidate is tried: one that refines others has its tickets cut as the best of
 * those before it. */
void launch_config_refine(struct tuned_kernel *tuned, uint32_t candidate);

/* Worker, with the context current: adds candidates for the tuned's geometry and native time, in
 * the order that they are to be tried in, which depends on who waits. None is added if the kernel
 * cannot be launched so. */
void launch_configs_add(struct tuned_kernel *tuned, const struct rewritten *rewritten,
			const struct settings *settings, enum waited waited);
