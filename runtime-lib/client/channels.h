/* A client's channel groups: told to the agent, which gives them slices and stops them; and let go
 * when the agent cannot. */
#pragma once

#include "client/client.h"

/* Tells the agent at @socket all groups of @client. 0, or a negative errno. */
int channels_tell(const struct client *client, int socket);

/* Lets all groups of @client go on, with the driver's slice: with short ones clients without an
 * agent would keep each other from running. */
void channels_go_on(const struct client *client);
