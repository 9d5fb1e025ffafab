/* The status page: what the agent sees of a client. The worker writes it at each look. */
#pragma once

#include "client/client.h"
#include "client/subsystem.h"

/* Columns of the table. */
void status_work(struct client *client, struct tick *tick);
