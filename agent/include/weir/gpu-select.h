/* `gpus:` in configuration files: a list of entries that say something of some GPUs. Which GPUs an
 * entry is for, by one of `uuid`, `index` and `product`, is read and decided here. What it says is
 * the agent's or the device plugin's own, but for the sharing mode, which both want to know.
 *
 * Where several fit a GPU, the nearest one that says a thing is heard: by UUID before by index
 * before by product, and of several products the first in the file. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "weir/yaml.h"

enum gpu_mode {
	GPU_MODE_TIMESLICE, /* processes have the GPU in turns: separate fault domains */
	GPU_MODE_MPS,       /* kernels of several processes run at a time, through one daemon */
};
extern const char *const gpu_mode_words[]; /* timeslice, mps */

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
void gpu_select_deinit(struct gpu_select *select);

/* What an entry is: a struct that begins with a struct gpu_select. */
struct gpu_entry {
	size_t size;
	const void *standard;            /* one that says nothing */
	const struct yaml_field *fields; /* the three above among them */
	/* Puts what @entry says over what was said before it. */
	void (*apply)(void *terms, const void *entry);
};

/* A list of them into the new array *@entries. No two are for the same GPU by the same word. */
int gpu_select_read_list(struct yaml_file *file, const yaml_node_t *value,
			 const struct gpu_entry *kind, void *entries, size_t *n_out);
/* Applies those of the @n @entries that fit @gpu, from the farthest to the nearest. */
void gpu_select_apply(const struct gpu_entry *kind, const void *entries, size_t n,
		      const struct gpu_traits *gpu, void *terms);
