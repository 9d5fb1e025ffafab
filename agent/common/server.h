/* A listening unix socket and its file. */
#pragma once

#include <sys/types.h>

#include "weir/loop.h"

struct server;
/* Takes @fd. */
typedef void server_accept_fn(struct server *server, int fd);

struct server {
	struct loop_io io;
	char *path;
	server_accept_fn *accepted;
	int spare; /* closed for a moment when descriptors run out */
};

/* Listens at @path and creates its folder. Replaces a socket file on which nobody listens. @type:
 * SOCK_SEQPACKET or SOCK_STREAM. Logs failures. -EADDRINUSE: another process listens there. */
int server_init(struct server *server, struct loop *loop, const char *path, int type, mode_t mode,
		server_accept_fn *accepted);
/* Also removes the socket file. */
void server_deinit(struct server *server);
