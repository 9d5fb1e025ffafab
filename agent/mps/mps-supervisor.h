/* What the agent asks weir-mps for: that it start a GPU's MPS daemon. A container's processes end
 * with it, so daemons that are the agent's children would end when a new version of it comes;
 * weir-mps stays.
 *
 * One datagram to @dir/keeper.sock, which is root's, and no answer: the daemon's process is named
 * in the GPU's folder. */
#pragma once

#include <stdbool.h>

#include "scheduler/gpu.h"

struct mps_request {
	char gpu[GPU_ID_SIZE];
	bool multi_user;
};

/* @dir: mps.dir. A negative errno where nobody listens, or is too busy. */
int mps_supervisor_ask(const char *dir, const char *gpu, bool multi_user);
/* The descriptor at which requests arrive, which nobody but root can send; or a negative errno. */
int mps_supervisor_listen(const char *dir);
/* The next one; false: there is none now. What is no request is dropped. */
bool mps_supervisor_next(int fd, struct mps_request *out);
