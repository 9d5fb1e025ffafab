/* A GPU as the plugin hands it out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GPU_UUID_MAX 48u /* "GPU-" and a UUID are 40, and its end */

struct gpu {
	char uuid[GPU_UUID_MAX];
	char product[96];
	int index; /* as NVML counts, -1: unknown */
	int minor; /* of /dev/nvidiaN, -1: unknown */
	int numa;  /* node, -1: none */
	uint64_t memory;
	bool healthy;
};
