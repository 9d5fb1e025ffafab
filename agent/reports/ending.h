/* Processes that the configuration has the agent end: a kernel overruns, a client does not obey
 * holds, a process does not load libweir.
 *
 * Under MPS a process that is killed in a kernel takes the work of its server's other clients with
 * it. So where the daemon is ours the server ends the process's work first, and the process is
 * killed at a later look. */
#pragma once

#include "scheduler/client.h"
#include "scheduler/gpu/gpu.h"

struct events;
struct mps;
struct pods;

struct ending_process {
	const struct gpu *gpu;
	pid_t pid;
	int process; /* pidfd */
	bool served; /* it may be a client of an MPS server */
};

/* Call at each look until the process is gone. True once: its end has begun. */
bool ending_go_on(struct ending *ending, struct mps *mps, const struct ending_process *process);

/* Goes on with all clients of @gpu that are to end, and tells the pods. Call now and then. */
void ending_look(struct gpu *gpu, struct mps *mps);
void ending_tell(struct events *events, struct pods *pods, const struct gpu *gpu);
