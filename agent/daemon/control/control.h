/* The control socket, for root on the node: one request line of JSON a connection, one JSON answer
 * (commands.h), end of file. */
#pragma once

#include "common/server.h"
#include "daemon/control/commands.h"

#define CONTROL_PEERS_MAX   8
#define CONTROL_REQUEST_MAX 2048
#define CONTROL_TIMEOUT_NS  5000000000ull

struct control {
	struct loop *loop;
	const struct commands *commands;
	struct server server;
	struct control_peer *peers;
	unsigned n_peers;
};

int control_init(struct control *control, struct loop *loop, const char *path,
		 const struct commands *commands);
void control_deinit(struct control *control);
