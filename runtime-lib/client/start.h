/* Starts: how long work waits that is launched into a stream in which nothing of ours is
 * outstanding. With a latency objective, and where the kernel's time is predicted, such a launch is
 * measured to its end (sample.h): it is late if it has not ended when the objective and that time
 * are over, whether a gate was closed or others' kernels still had the GPU. One that was evicted is
 * late if it had not begun by then. All others start at once behind an open gate, as far as can be
 * known here, and behind one seen closed when the worker sees that open. */
#pragma once

#include "client/client.h"

/* Launch path: such a launch. Non-zero: it is to be measured, and starts now. */
uint64_t start_measured(const struct level_binding *binding, uint64_t predicted);

/* Launch path: it is not measured; @closed: behind a gate that was closed when it was put. */
void start_begin(struct client *client, bool closed);

/* All is finished, so it has started: the worker may look much later. Any thread. */
void start_done(struct client *client, const struct level_binding *binding);

/* Worker, at each look: sees whether gates are open at @now. */
void start_look(struct client *client, const struct level_binding *binding, uint64_t now);

/* Worker: a launch that was measured has ended. What took less than a look longer than it may is
 * not seen to be late. */
void start_ended(struct client *client, const struct sample *sample);
