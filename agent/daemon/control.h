/* The control socket, for root on the node: one request line of JSON a connection, one JSON answer
 * (commands.h), end of file. */
#pragma once

#include "daemon/agent.h"

#define CONTROL_PEERS_MAX   8
#define CONTROL_REQUEST_MAX 512
#define CONTROL_TIMEOUT_NS  5000000000ull

int control_init(struct agent *agent);
void control_deinit(struct agent *agent);
