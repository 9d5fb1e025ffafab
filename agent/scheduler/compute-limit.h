/* Applies compute limits (hardware/limit.h): measures what containers use, and says which clients
 * must not run. All clients of a container on a GPU share its limit.
 *
 * A container over its limit shows no demand: lower levels run while it is stopped. */
#pragma once

#include "scheduler/client.h"
#include "scheduler/gpu/gpu.h"

/* Clients of @gpu have come or gone, or limits have changed. */
void compute_limit_refresh(struct gpu *gpu, uint64_t now);
/* Charges for the time since the last look, and sets `over_limit` of the clients. Returns when to
 * look next, or POLICY_NEVER. */
uint64_t compute_limit_look(struct gpu *gpu, uint64_t now);
/* Notes how things are until the next look. Call when all holds are written. */
void compute_limit_note(struct gpu *gpu);
/* @client must hear of new work at once. */
bool compute_limit_listens(const struct client *client);
