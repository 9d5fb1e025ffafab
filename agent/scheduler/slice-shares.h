/* Same-level clients with nobody above them share a GPU through the hardware's slices alone, where
 * the policy allows it and each of them has a channel group: none is held. The slices are corrected
 * by what each client got (hardware/share-control.h). */
#pragma once

#include "scheduler/client.h"
#include "scheduler/gpu.h"

/* Clients of @gpu have come, gone, or changed, or its policy: finds the level that shares so. */
void slice_shares_refresh(struct gpu *gpu);
/* Corrects the slices if a window is over. Returns when to look next, or POLICY_NEVER: fewer than
 * two clients have work. Then slice_shares_hear() must be called when one gets some. */
uint64_t slice_shares_look(struct gpu *gpu, uint64_t now);
/* @client has got work. True: look now. */
bool slice_shares_hear(const struct client *client);
/* @client must tell when it gets work. */
bool slice_shares_listens(const struct client *client);
