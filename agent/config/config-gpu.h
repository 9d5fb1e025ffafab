/* What the configuration says of single GPUs, over what it says of all of the node. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/policy.h"

#include "weir/gpu-select.h"

struct config;

/* The limit of memory on a GPU of containers that nobody names one for. */
struct config_memory {
	enum { MEMORY_NONE, MEMORY_SHARE, MEMORY_BYTES } kind;
	uint64_t bytes; /* of MEMORY_BYTES */
};

/* An entry of `gpus:`. What it does not say is as for all GPUs. */
struct config_gpu {
	struct gpu_select select;
	bool says_mode, says_memory;
	enum gpu_mode mode;
	struct config_memory memory;
	char *policy;                      /* NULL: not said */
	struct policy_settings scheduling; /* what is not said is CONFIG_UNSAID, or so */
};

/* What is in force for one GPU. */
struct config_gpu_terms {
	enum gpu_mode mode;
	struct config_memory memory;
	const struct policy *policy;
	struct policy_settings scheduling;
};

struct config_gpu_terms config_for_gpu(const struct config *config, const struct gpu_traits *gpu);

/* Readers for the table of the whole file: of a struct config_memory, and of a struct config. */
int config_read_memory_default(struct yaml_file *file, const yaml_node_t *value,
			       const struct yaml_field *field, void *target);
int config_read_gpus(struct yaml_file *file, const yaml_node_t *value,
		     const struct yaml_field *field, void *target);
void config_free_gpus(struct config_gpu *gpus, size_t n);
