/* This process's newest channel groups, and the descriptor that they were made with, as its
 * libcuda's ioctls say. The program must export ioctl(). */
#pragma once

#include "weir/channel-group.h"

struct own_groups {
	int fd; /* -1: none was made */
	struct channel_group compute;
	uint32_t copy; /* a copy engine's */
};
extern struct own_groups own_groups;
