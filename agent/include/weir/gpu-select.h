/* Which GPU an entry of `gpus:` in a configuration file is for: one of `uuid`, `index` and
 * `product`. The agent's and the device plugin's entries differ in all else.
 *
 * Where several fit a GPU, the nearest one that says a thing is heard: by UUID before by index
 * before by product, and of several products the first in the file. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "weir/yaml.h"

/* By precedence. */
enum gpu_select_by {
	GPU_SELECT_NONE, /* nothing was said */
	GPU_SELECT_PRODUCT,
	GPU_SELECT_INDEX,
	GPU_SELECT_UUID,
};

struct gpu_select {
	enum gpu_select_by by;
	uint32_t index;
	char *text; /* UUID, or a pattern as the shell has them */
};

/* What is known of a GPU. */
struct gpu_traits {
	const char *uuid;
	int index; /* as NVML counts; -1: not known */
	const char *product;
};

/* Readers for tables, of a struct gpu_select. A second one in an entry is wrong. */
int gpu_select_read_uuid(struct yaml_file *file, const yaml_node_t *value,
			 const struct yaml_field *field, void *target);
int gpu_select_read_index(struct yaml_file *file, const yaml_node_t *value,
			  const struct yaml_field *field, void *target);
int gpu_select_read_product(struct yaml_file *file, const yaml_node_t *value,
			    const struct yaml_field *field, void *target);
/* To be called behind each entry of a list: @entry's selector is there, and is none of the @n
 * before it, which lie @stride bytes apart from @first on. */
int gpu_select_check(struct yaml_file *file, const yaml_node_t *node,
		     const struct gpu_select *entry, const void *first, size_t n, size_t stride);

bool gpu_select_fits(const struct gpu_select *select, const struct gpu_traits *gpu);
void gpu_select_deinit(struct gpu_select *select);
