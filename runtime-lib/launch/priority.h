/* Below MPS the GPU begins, of all blocks that wait, those of the greatest priority first,
 * whichever client launched them. A gate keeps back what a client below has not begun; this lets
 * who is above go ahead of the blocks that it has, and among equals a short launch ahead of those
 * of a long one (FLEP's shortest remaining time first, by whole launches), and who came first ahead
 * of those who came while it was at work. The driver's priorities
 * are a stream's, and most programs use a default stream, which has none: so each launch is given
 * its own, as an attribute. */
#pragma once

#include "shim/call.h"
#include "client/stream.h"

/* What priorities there are, and whether they say anything here: once, by client_init(). */
void priority_init(struct client *client);
/* The stream's own, when its record is made. */
int priority_of_stream(const struct client *client, CUstream stream);

/* ns: launches that are longer than that all have the least priority among equals. */
#define PRIORITY_LONG_NS (8u * LONG_KERNEL_NS)

/* Whether the driver has enough of them for lengths. */
bool priority_by_length(const struct client *client);
/* Whether the program itself says one for this launch. */
bool priority_is_given(const CUlaunchConfig *config);

/* Whether launches of equals go ahead of what a longer one has not begun. Who comes behind one that
 * is not told apart from its own waits for less than twice its own time. */
bool priority_yields(const struct client *client, const struct level_binding *binding);

#define PRIORITY_OWN 1 /* no priority there is: that of the launch's stream is as good */

/* Of a launch that is predicted to take @predicted ns (0: not known), by the binding's level and
 * whether its client came first, or where all are of one by its length. */
int priority_of_launch(const struct stream *stream, const struct level_binding *binding,
		       uint64_t predicted);

/* Launches with that priority. False: not launched, since it is PRIORITY_OWN, the program itself
 * has said one for this launch, or the driver refuses; then it is launched without. @per_thread:
 * which default stream @config means. */
bool priority_launch(struct client *client, int priority, const CUlaunchConfig *config,
		     bool per_thread, CUfunction function, void **params, void **extra,
		     CUresult *result);
