/* The clients of sessions: what enters them at GPU, tenant and scheduler, what they are told, and
 * what takes them out again. */
#pragma once

#include "daemon/decider.h"
#include "scheduler/gpu/gpu.h"

#include "weir/loop.h"

struct clients {
	struct loop *loop;
	struct decider *decider;
	struct scheduler *scheduler;
	uint64_t last_number; /* of a client */
	bool stopping;        /* the agent ends and its clients go on: leave them their demand */
};

struct newcomer {
	struct tenant *tenant;
	struct gpu *gpu;
	const struct weir_hello *hello;
	pid_t pid;
	int socket, process; /* the session's; they stay open as long as the client is there */
};

/* Enters the client at GPU, tenant and scheduler before it hears of its pages, so that they are
 * right when it sees them. 0 and @out, or a negative errno. */
int clients_add(struct clients *clients, const struct newcomer *new, struct client **out);
/* Once: sends WELCOME with the pages, and closes the agent's descriptors of them. 0, or a negative
 * errno. */
int clients_welcome(struct client *client);
/* Takes @fd, on which its channel @group lives. */
void clients_take_channels(struct clients *clients, struct client *client,
			   const struct channel_group *group, int fd);
/* It does not take @what, because of @r, a negative errno. The session ends when the loop sees that
 * its socket is shut down. */
void clients_cut_off(const struct client *client, const char *what, int r);
/* Takes it out, and frees it. */
void clients_remove(struct clients *clients, struct client *client);
