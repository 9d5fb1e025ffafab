/* A socket for each GPU, in a folder of its own beside the common one: DIR/GPU-…/agent.sock. A
 * container that has a part of a GPU is given that folder, so that it cannot ask for another GPU,
 * nor hold up who is on it. The common socket serves whoever was started without. */
#pragma once

#include "scheduler/gpus.h"
#include "common/server.h"

struct agent;

struct door {
	struct server server;
	struct agent *agent;
	const struct gpu *gpu;
};

struct doors {
	struct door *all;
	unsigned n;
	char *dir; /* of the common socket */
};

/* For the GPUs that NVML lists. -ENOMEM. */
int doors_init(struct agent *agent, server_accept_fn *accepted);
/* The folders stay, which containers have mounted. */
void doors_deinit(struct doors *doors);
/* As memories_mark(), for who sees only the folder of a door. */
void doors_mark(const struct doors *doors);
