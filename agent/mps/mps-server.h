/* The servers of a level's MPS daemon. A server makes the compute channel group of all its clients.
 * libweir-mps.so, preloaded into it, hands the group over at the daemon's socket `agent.sock`; so
 * the agent can give the level its slice, and stop the whole server.
 *
 * Anybody on the node may reach the socket, but no container. The agent reads nothing from a
 * process until the daemon has named it as its server. */
#pragma once

#include "hardware/channels.h"
#include "mps/mps-daemon.h"

struct mps_server {
	struct mps_server *prev, *next;
	struct mps_daemon *daemon;
	int fd, process;
	pid_t pid;
	uint64_t since;
	bool known; /* the daemon says that it is its server */
	struct loop_io socket, death;
	struct channels_client channels;
};

/* Listens. @daemon->gpu is set. Logs what fails: its servers then have the driver's slice. */
void mps_servers_init(struct mps_daemon *daemon);
void mps_servers_deinit(struct mps_daemon *daemon);
/* @daemon->servers is new. */
void mps_servers_look(struct mps_daemon *daemon);
/* The one whose slice was set; NULL: none. */
const struct mps_server *mps_server_of(const struct mps_daemon *daemon);
