/* Evictions of sliced launches. Their slices end by themselves, and the GPU tells nobody that the
 * next one waited at its gate, so the worker counts what it sees.
 *
 * A sliced launch began while gates were open. They closed, and when they are open again the launch
 * is still not finished: then others had the GPU in its middle. An eviction that begins and ends
 * between two looks is not seen. */
#pragma once

#include "client/subsystem.h"

/* Column of the table: behind the gates' row, before the status page is told. */
void sliced_work(struct client *client, struct tick *tick);
