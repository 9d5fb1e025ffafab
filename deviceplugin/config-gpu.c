#include "config-gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "allocator.h"
#include "config.h"
#include "gpu.h"

static int read_mode(struct yaml_file *file, const yaml_node_t *value,
		     const struct yaml_field *field, void *target)
{
	struct config_gpu *gpu = target;

	gpu->says_mode = true;
	return yaml_read_word(file, value, field, &gpu->mode);
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
	{"mode", read_mode, 0, .words = gpu_mode_words},
	{"shares", read_shares, 0, .max = SHARES_PER_GPU},
	{0},
};

void config_free_gpus(struct config_gpu *gpus, size_t n)
{
	for (size_t i = 0; i < n; i++)
		gpu_select_deinit(&gpus[i].select);
	free(gpus);
}

static void apply(void *target, const void *source)
{
	struct config_gpu_terms *terms = target;
	const struct config_gpu *entry = source;

	if (entry->says_mode)
		terms->mode = entry->mode;
	if (entry->says_shares)
		terms->shares = entry->shares;
}

static const struct config_gpu unsaid;
static const struct gpu_entry gpu_entry = {sizeof(unsaid), &unsaid, gpu_fields, apply};

int config_read_gpus(struct yaml_file *file, const yaml_node_t *value,
		     const struct yaml_field *field, void *target)
{
	struct config *config = target;

	(void)field;
	return gpu_select_read_list(file, value, &gpu_entry, &config->gpus, &config->n_gpus);
}

struct config_gpu_terms config_for_gpu(const struct config *config, const struct gpu *gpu)
{
	const struct gpu_traits traits = {gpu->uuid, gpu->index, gpu->product};
	struct config_gpu_terms terms = {.mode = config->mode, .shares = SHARES_PER_GPU};

	gpu_select_apply(&gpu_entry, config->gpus, config->n_gpus, &traits, &terms);
	return terms;
}
