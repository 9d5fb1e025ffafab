/* How many workers each client may have on an SM (weir/protocol.h: workers): what the policy
 * decided in the run queue's entry, or what somebody set by hand. */
#pragma once

#include "scheduler/client.h"

#define WORKERS_MOST 32u /* that an SM holds */

/* 0: the policy decides again. */
void workers_set(struct client *client, uint32_t workers);
/* Workers of the client's latest kernel that an SM holds; 0: it has none that can be bounded. */
uint32_t workers_fit(const struct client *client);
