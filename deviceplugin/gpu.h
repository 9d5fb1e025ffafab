/* A GPU of this node. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GPU_UUID_MAX 48u /* "GPU-", a UUID and NUL are 41 */

struct gpu {
	char uuid[GPU_UUID_MAX];
	char product[96];
	char architecture[24], driver[80]; /* like Hopper, 570.86.10; empty: unknown */
	int index;                         /* in NVML's order; -1: unknown */
	int minor;                         /* of /dev/nvidiaN; -1: unknown */
	int numa;                          /* node; -1: none */
	uint64_t memory;
	bool healthy;
	unsigned kept; /* shares that pods keep from an earlier configuration (dra/kept.h) */
};
