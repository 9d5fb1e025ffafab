/* The calls by which libcuda, and the server of MPS, get channel groups. They go to whoever defines
 * ioctl() first in the process. */
#pragma once

#include "simcuda/machine/machine.h"

struct rm_client {
	struct machine *machine;
	int fd;
	bool opened;
	uint32_t client, last; /* handles; client 0: the resource manager cannot be had here */
	uint32_t devices[MACHINE_GPUS], subdevices[MACHINE_GPUS];
};

#define RM_CLIENT_INIT                       \
	{                                    \
		.fd = -1, .last = 0x5c000000 \
	}

/* A client, once, and the device @gpu. */
bool rm_client_open(struct rm_client *c, struct machine *m, uint32_t gpu);
/* Channel groups; 0: it failed. A compute group gets the time slice that libcuda gives it. */
uint32_t rm_client_compute(struct rm_client *c, uint32_t gpu);
uint32_t rm_client_copy(struct rm_client *c, uint32_t gpu);
void rm_client_free(struct rm_client *c, uint32_t gpu, uint32_t group);
