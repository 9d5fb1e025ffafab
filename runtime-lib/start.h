/* Starts: how long work waits that is launched into a stream in which nothing of ours is
 * outstanding. Behind an open gate, or none, it starts at once as far as can be known here. Behind
 * a gate seen closed it waits until the worker sees that open. What it waits for others' kernels to
 * leave the GPU is not known, and not counted. */
#pragma once

#include "client.h"

/* Launch path: such a launch; @closed: behind a gate that was closed when it was put. */
void start_begin(struct client *client, bool closed);

/* All is finished, so it has started: the worker may look much later. Any thread. */
void start_done(struct client *client, const struct standing *standing);

/* Worker, at each look: sees whether gates are open at @now. */
void start_look(struct client *client, const struct standing *standing, uint64_t now);
