/* Applies minimum rates (policy/min-rate.h): says which clients must not run so that a container
 * gets its minimum rate, and when one that is ahead of it leaves the GPU to others.
 *
 * - While a container lacks its rate, clients below it wait for its demand, as ever. If its work
 *   lasts they are held besides, so none keeps a part of the SMs (MPS), or slips into the gaps
 *   between its kernels. If it answers requests they run again as soon as it is idle, but not
 *   while it learns its speed alone.
 *   Same-level clients are held, if the rate is no more than the container's share, or it may have
 *   more. Others with minimum rates that are ahead are held whatever their level.
 * - While it is ahead its demand does not count (WEIR_CONTROL_LEAVES). Under MPS it runs beside the
 *   others. Where clients take the GPU in turns it is stopped while others have work.
 *
 * Clients of higher levels are never held for it. */
#pragma once

#include "scheduler/client.h"
#include "scheduler/gpu/gpu.h"

#define MIN_RATES_LOOK_NS    1000000ull   /* between two looks while it and others have work */
#define MIN_RATES_REQUEST_NS 250000ull    /* the same, if it answers requests */
#define MIN_RATES_BETWEEN_NS 5000000ull   /* others wait so long for the next request */
#define MIN_RATES_QUIET_NS   10000000ull  /* while nobody else has work */
#define MIN_RATES_ALONE_NS   100000000ull /* while there is nobody else */
#define MIN_RATES_STOP_NS    3000000ull   /* until lower-level clients are stopped */
#define MIN_RATES_LATE_NS    100000ull    /* no look is sooner than this */

/* Clients of @gpu have come or gone, or rates or levels have changed. */
void min_rates_refresh(struct gpu *gpu, uint64_t now);
/* Counts what ran since the last look, and sets `kept_out` and `leaves` of the clients. Returns
 * when to look next, or POLICY_NEVER. */
uint64_t min_rates_look(struct gpu *gpu, uint64_t now);
/* @client must hear of new work at once. */
bool min_rates_listen(const struct client *client);
/* The same-level clients leave @client its rate, and the policy gives it no turns. */
bool min_rates_rule(const struct client *client);
/* Gates may have to hold @client. */
bool min_rates_hold(const struct client *client);
/* The sum of the GPU's minimum rates, in thousandths. */
uint64_t min_rates_sum(const struct gpu *gpu);
