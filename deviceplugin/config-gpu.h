/* What the configuration says of single GPUs, over what it says of all of the node. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "weir/gpu-select.h"

struct config;
struct gpu;

/* An entry of `gpus:`. What it does not say is as for all GPUs. */
struct config_gpu {
	struct gpu_select select;
	bool says_mode, says_shares;
	enum gpu_mode mode;
	uint32_t shares; /* that are offered of it, 0..100 */
};

/* What is in force for one GPU. */
struct config_gpu_terms {
	enum gpu_mode mode;
	uint32_t shares;
};

struct config_gpu_terms config_for_gpu(const struct config *config, const struct gpu *gpu);

/* Reader for the table of the whole file: of a struct config. */
int config_read_gpus(struct yaml_file *file, const yaml_node_t *value,
		     const struct yaml_field *field, void *target);
void config_free_gpus(struct config_gpu *gpus, size_t n);
