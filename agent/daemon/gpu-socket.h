/* A socket for each GPU beside the common one, in a folder of its own: DIR/GPU-.../agent.sock. A
 * container that has a part of a GPU is given that folder only, so it cannot ask for another GPU or
 * hold up the clients there. The common socket serves all others. */
#pragma once

#include "common/server.h"
#include "scheduler/gpu/gpus.h"

struct gpu_sockets;

struct gpu_socket {
	struct server server;
	struct gpu_sockets *sockets;
	const struct gpu *gpu;
};

struct gpu_sockets {
	struct gpu_socket *all;
	unsigned n;
	char *dir; /* of the common socket */
};

/* Opens sockets for the GPUs that NVML lists, beside the common socket at @path. -ENOMEM. */
int gpu_sockets_init(struct gpu_sockets *sockets, struct loop *loop, const struct gpus *gpus,
		     const char *path, server_accept_fn *accepted);
/* Leaves the folders, which containers have mounted. */
void gpu_sockets_deinit(struct gpu_sockets *sockets);
/* memories_mark() in the GPUs' folders. */
void gpu_sockets_mark(const struct gpu_sockets *sockets);
