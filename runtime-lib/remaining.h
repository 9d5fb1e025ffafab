/* What remains of a client's outstanding work: its predicted time, less what it has run. The clock
 * says how long that may have been, others on the GPU aside; of a kernel in a form, the tickets
 * that it has given out say how far it has come at least, and at most. */
#pragma once

#include "client.h"

#include "weir/preempt-abi.h"

/* Parts of a launch, 0 to 1: what is done for sure, and what was begun. Those of its blocks that
 * run just now lie between. */
struct tickets_seen {
	bool begun; /* false: it may not have */
	double done, given;
};

/* Pure: of the launch that @words are about, with @hidden as it was launched. @resumable: no ticket
 * is dealt, all are drawn. */
struct tickets_seen remaining_tickets(const struct weir_words *words,
				      const struct weir_persistent *hidden, uint32_t workers,
				      bool resumable);

/* Worker: ns. @passed: since the last call, 0 if it was held. Never 0 while something predicted is
 * outstanding, however late it is. */
uint64_t remaining(struct client *client, uint64_t passed);
