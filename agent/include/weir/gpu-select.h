/* `gpus:` of a configuration file: a list of entries that override settings for some GPUs. An entry
 * selects GPUs by one of `uuid`, `index` and `product`; its other keys are the program's own.
 *
 * If several entries fit a GPU, then for each key the most specific one that has it wins: UUID
 * before index before product, and of several products the first in the file. */
#pragma once

#include <stdint.h>

#include "weir/yaml.h"

enum gpu_mode {
	GPU_MODE_TIMESLICE, /* one process at a time; a fault ends only its own process */
	GPU_MODE_MPS,       /* kernels of several processes run at once, through one MPS daemon */
	/* The same with a daemon for each level: levels are time-sliced, and a fault ends only the
	 * clients of its level. */
	GPU_MODE_MPS_PER_LEVEL,
};
extern const char *const gpu_mode_words[]; /* timeslice, mps, mps-per-level */

/* From the least to the most specific. */
enum gpu_select_by { GPU_SELECT_NONE, GPU_SELECT_PRODUCT, GPU_SELECT_INDEX, GPU_SELECT_UUID };

struct gpu_select {
	char *text; /* UUID, or a shell pattern for the product */
	enum gpu_select_by by;
	uint32_t index;
};

/* What selectors look at. */
struct gpu_traits {
	const char *uuid;
	int index; /* as NVML counts; -1: unknown */
	const char *product;
};

/* An entry is a struct of three members: a struct gpu_select, the settings that it overrides, and
 * their mask (yaml.h), which is as large. These are its first rows. */
#define GPU_SELECT_FIELDS                                                                    \
	{"uuid", gpu_select_read_uuid, .text = YAML_NULL}, {"index", gpu_select_read_index}, \
	{                                                                                    \
		"product", gpu_select_read_product, .text = YAML_NULL                        \
	}
yaml_read_fn gpu_select_read_uuid, gpu_select_read_index, gpu_select_read_product;
/* The check of struct yaml_entry: an entry has one selector, and no other entry has the same. */
int gpu_select_check(struct yaml_file *file, const yaml_node_t *node,
		     const struct yaml_entry *entry, const void *entries, size_t i);
/* Overrides @settings with those of the @n @entries that fit @gpu. */
void gpu_select_apply(const struct yaml_entry *entry, const void *entries, size_t n,
		      const struct gpu_traits *gpu, void *settings);
