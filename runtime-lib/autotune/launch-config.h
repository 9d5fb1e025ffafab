/* Launch configurations: in which ways a kernel can be launched in each form. */
#pragma once

#include "autotune/autotuner.h"

#include "weir/protocol.h"

static inline uint64_t launch_blocks(const struct autotuner *tuner)
{
	return (uint64_t)tuner->grid[0] * tuner->grid[1] * tuner->grid[2];
}

/* Blocks of a ticket, or of a slice. */
uint64_t launch_config_chunk(const struct autotuner *tuner, const struct launch_config *config);

/* About how many ns pass from a demand until the last block has left. */
uint64_t launch_config_leave_time(const struct autotuner *tuner,
				  const struct launch_config *config);

/* Before a candidate is compared: one that refines others takes over the tickets of the best. */
void launch_config_refine(struct autotuner *tuner, uint32_t candidate);

/* Notes what @facts say of the native kernel. */
void launch_configs_prepare(struct autotuner *tuner, const struct kernel_facts *facts);

/* The configuration that a profile names; after launch_configs_prepare(). False: the kernel cannot
 * be launched so here. */
bool launch_config_restore(const struct autotuner *tuner, const struct kernel_facts *facts,
			   const struct weir_profile_choice *choice, struct launch_config *out);
void launch_config_describe(const struct launch_config *config, struct weir_profile_choice *out);

/* Adds a candidate, if there is room. */
void launch_config_add(struct autotuner *tuner, const struct launch_config *config);

/* Adds candidates for the kernel's grid and native time, in the order in which they are to be
 * compared. Adds none if the kernel cannot be launched in a form. */
void launch_configs_add(struct autotuner *tuner, const struct kernel_facts *facts,
			enum waiting waiting);
