/* A socket for each GPU, in a folder of its own beside the common one: DIR/GPU-…/agent.sock. A
 * container that has a part of a GPU is given that folder, so that it cannot ask for another GPU,
 * nor hold up who is on it. The common socket serves whoever was started without. */
#pragma once

#include "scheduler/gpus.h"
#include "common/server.h"

struct agent;

struct gpu_socket {
	struct server server;
	struct agent *agent;
	const struct gpu *gpu;
};

struct gpu_sockets {
	struct gpu_socket *all;
	unsigned n;
	char *dir; /* of the common socket */
};

/* For the GPUs that NVML lists. -ENOMEM. */
int gpu_sockets_init(struct agent *agent, server_accept_fn *accepted);
/* The folders stay, which containers have mounted. */
void gpu_sockets_deinit(struct gpu_sockets *sockets);
/* As memories_mark(), for who sees only the folder of a door. */
void gpu_sockets_mark(const struct gpu_sockets *sockets);
