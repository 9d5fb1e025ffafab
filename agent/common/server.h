/* A listening unix socket with its place in the file system. */
#pragma once

#include <sys/types.h>

#include "weir/loop.h"

struct server;
/* @fd is the callee's. */
typedef void server_accept_fn(struct server *server, int fd);

struct server {
	struct loop_io io;
	char *path;
	server_accept_fn *accepted;
	int spare; /* given up for a moment when descriptors run out */
};

/* Listens at @path, which is replaced where nobody listens any more; makes its folder. @type:
 * SOCK_SEQPACKET or SOCK_STREAM. Logs what fails. -EADDRINUSE: somebody does listen. */
int server_init(struct server *server, struct loop *loop, const char *path, int type, mode_t mode,
		server_accept_fn *accepted);
/* Removes the socket from the file system. */
void server_deinit(struct server *server);
