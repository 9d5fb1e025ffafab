/* How many workers each client may have on an SM (weir/protocol.h: workers): what the policy
 * decided in the run queue's entry, or what somebody set by hand. Also brings the policy what it
 * decides by: which kernel the client has, and how much it has done. */
#pragma once

#include "scheduler/client.h"

#define WORKERS_MOST COEXEC_WORKERS

/* Takes what the client reports into its entry. Before the run queues decide. */
void workers_report(struct client *client);
/* Tells the client what was decided. @contends: it shares its level with others. */
void workers_tell(const struct client *client, bool contends);
/* Sets the number by hand. 0: the policy decides again. */
void workers_set(struct client *client, uint32_t workers);
/* Workers of the client's latest kernel that an SM holds; 0: it has none that can be bounded. */
uint32_t workers_fit(const struct client *client);
