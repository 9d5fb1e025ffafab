/* Pages that the agent shares with a client: mapped once however often they are sent, and never
 * unmapped, since gates that the GPU waits on may lie in them as long as the process lives. */
#pragma once

#include "client/client.h"

/* Finds or makes the mapping for @fd, which stays the caller's. 0, or -errno: not a file of (at
 * least) one page, not to be mapped so, or too many. */
int pages_take(struct client *client, struct page **out, int fd, bool writable);
