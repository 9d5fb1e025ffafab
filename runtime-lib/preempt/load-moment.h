/* The moment in which code may be loaded beside the program's work. Worker only. */
#pragma once

#include "client/client.h"

/* Loading code waits for all that runs in the context, and nobody launches meanwhile (H200). So
 * preferably nothing runs. Otherwise all that runs must be of known time, and must be seen to end:
 * a kernel may wait for something that the program has yet to do. While a gate is closed only if
 * nothing runs and a first launch waits for the code: @awaited. */
bool load_moment(struct client *client, bool awaited);

/* Nothing waits to be loaded any more. Also when the client has ended. */
void load_moment_over(const struct client *client);

/* While code waits to be loaded, a stream that never runs dry shows by markers that it moves. */
void load_moment_watch(struct client *client);
