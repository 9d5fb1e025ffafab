/* A bounded number of workers on each SM, where kernels of several same-level clients run at the
 * same time (weir/protocol.h: workers). The block scheduler places the blocks of a launch evenly,
 * so a launch of n blocks for each SM puts n on each, and leaves the rest of the SM to other
 * clients.
 *
 * The bound is the launch's: its continuations have as many workers. So a change of it shows when
 * the launches that are queued are done.
 *
 * Only grids with more tickets than workers are bounded. In others blocks may wait for each other.
 */
#pragma once

#include "autotune/autotuner.h"
#include "client/level-binding.h"

/* How many workers all SMs may have; 0: not bounded. */
uint64_t workers_bound(const struct level_binding *binding, const struct client *client);

/* How many workers a launch has, of which @hidden is filled in. Divides the grid for so many. */
uint32_t workers_of(const struct level_binding *binding, const struct client *client,
		    const struct launch_config *config, struct weir_persistent *hidden);

/* Worker: writes which the client's latest kernel is, and what of an SM it takes in the form that
 * it has while workers are bounded. */
void workers_tell(const struct client *client, struct weir_status_page *status);
