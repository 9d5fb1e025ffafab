#include "config-gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "allocator.h"
#include "config.h"
#include "gpu.h"

int config_read_mode(struct yaml_file *file, const yaml_node_t *value,
		     const struct yaml_field *field, void *target)
{
	const char *text = yaml_scalar(file, value, "timeslice or mps");

	(void)field;
	if (!text)
		return -EINVAL;
	if (strcmp(text, "timeslice") != 0 && strcmp(text, "mps") != 0)
		return yaml_fail(file, value, "expected timeslice or mps, not `%s`", text);
	*(enum mode *)target = strcmp(text, "mps") == 0 ? MODE_MPS : MODE_TIMESLICE;
	return 0;
}

static int read_mode(struct yaml_file *file, const yaml_node_t *value,
		     const struct yaml_field *field, void *target)
{
	struct config_gpu *gpu = target;

	gpu->says_mode = true;
	return config_read_mode(file, value, field, &gpu->mode);
}

static int read_shares(struct yaml_file *file, const yaml_node_t *value,
		       const struct yaml_field *field, void *target)
{
	struct config_gpu *gpu = target;

	gpu->says_shares = true;
	return yaml_read_number(file, value, field, &gpu->shares);
}

#define AT(member) offsetof(struct config_gpu, member)

static const struct yaml_field gpu_fields[] = {
	{"uuid", gpu_select_read_uuid, AT(select)},
	{"index", gpu_select_read_index, AT(select)},
	{"product", gpu_select_read_product, AT(select)},
	{"mode", read_mode, 0},
	{"shares", read_shares, 0, .max = SHARES_PER_GPU},
	{0},
};

int config_read_gpus(struct yaml_file *file, const yaml_node_t *value,
		     const struct yaml_field *field, void *target)
{
	static const struct yaml_field gpu = {.fields = gpu_fields};
	struct config *config = target;
	int n = yaml_entries(file, value, YAML_SEQUENCE_NODE);
	int r = n < 0 ? n
		      : yaml_new_entries(&config->gpus, &config->n_gpus, n, sizeof(*config->gpus));

	(void)field;
	for (int i = 0; i < n && r == 0; i++) {
		const yaml_node_t *node = yaml_item(file, value, i);
		struct config_gpu *entry = &config->gpus[i];
		r = yaml_read_section(file, node, &gpu, entry);
		if (r == 0)
			r = gpu_select_check(file, node, &entry->select, config->gpus, (size_t)i,
					     sizeof(*entry));
	}
	return r;
}

void config_free_gpus(struct config_gpu *gpus, size_t n)
{
	for (size_t i = 0; i < n; i++)
		gpu_select_deinit(&gpus[i].select);
	free(gpus);
}

/* From the farthest to the nearest: what is said last holds. */
struct config_gpu_terms config_for_gpu(const struct config *config, const struct gpu *gpu)
{
	const struct gpu_traits traits = {gpu->uuid, gpu->index, gpu->product};
	struct config_gpu_terms terms = {.mode = config->mode, .shares = SHARES_PER_GPU};

	for (enum gpu_select_by by = GPU_SELECT_PRODUCT; by <= GPU_SELECT_UUID; by++) {
		for (size_t i = config->n_gpus; i > 0; i--) {
			const struct config_gpu *entry = &config->gpus[i - 1];
			if (entry->select.by != by || !gpu_select_fits(&entry->select, &traits))
				continue;
			if (entry->says_mode)
				terms.mode = entry->mode;
			if (entry->says_shares)
				terms.shares = entry->shares;
		}
	}
	return terms;
}
