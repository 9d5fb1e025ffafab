/* The request to weir-mps to start a GPU's MPS daemon. A container's processes end with it, so
 * daemons that are the agent's children would end at each upgrade of the agent. weir-mps stays.
 *
 * A request is one datagram to @dir/keeper.sock (a deprecated word), which belongs to root. There
 * is no answer: weir-mps names the daemon's process in the GPU's folder. */
#pragma once

#include <stdbool.h>

#include "scheduler/gpu.h"

struct mps_request {
	char gpu[GPU_ID_SIZE];
	bool multi_user;
};

/* @dir: mps.dir. A negative errno: weir-mps does not listen, or is too busy. */
int mps_supervisor_ask(const char *dir, const char *gpu, bool multi_user);
/* A descriptor that receives requests, which only root can send; or a negative errno. */
int mps_supervisor_listen(const char *dir);
/* The next request; false: none now. Drops everything else. */
bool mps_supervisor_next(int fd, struct mps_request *out);
