#include "config/config-gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config-read.h"
#include "config/config.h"
#include "common/quantity.h"

#include "weir/base.h"

#define UNSAID      (UINT64_MAX - 1) /* POLICY_NEVER is a word of its own */
#define UNSAID_PART UINT32_MAX

int config_read_memory_default(struct yaml_file *file, const yaml_node_t *value,
			       const struct yaml_field *field, void *target)
{
	const char *text = yaml_scalar(file, value, "none, share or an amount of memory");
	struct config_memory memory = {0};

	(void)field;
	if (!text)
		return -EINVAL;
	if (strcmp(text, "share") == 0)
		memory.kind = MEMORY_SHARE;
	else if (quantity_parse(text, &memory.bytes))
		memory.kind = MEMORY_BYTES;
	else if (strcmp(text, "none") != 0)
		return yaml_fail(file, value,
				 "expected none, share, or " QUANTITY_EXPECTED ", not `%s`", text);
	*(struct config_memory *)target = memory;
	return 0;
}

static int read_mode(struct yaml_file *file, const yaml_node_t *value,
		     const struct yaml_field *field, void *target)
{
	struct config_gpu *gpu = target;

	gpu->says_mode = true;
	return yaml_read_word(file, value, field, &gpu->mode);
}

static int read_memory(struct yaml_file *file, const yaml_node_t *value,
		       const struct yaml_field *field, void *target)
{
	struct config_gpu *gpu = target;

	gpu->says_memory = true;
	return config_read_memory_default(file, value, field, &gpu->memory);
}

#define AT(member) offsetof(struct config_gpu, member)

static const struct yaml_field gpu_fields[] = {
	{"uuid", gpu_select_read_uuid, AT(select)},
	{"index", gpu_select_read_index, AT(select)},
	{"product", gpu_select_read_product, AT(select)},
	{"mode", read_mode, 0, .words = gpu_mode_words},
	{"memoryDefault", read_memory, 0},
	{"policy", config_read_policy, AT(policy)},
	{"scheduling", yaml_read_section, AT(scheduling), config_scheduling_fields},
	{0},
};

void config_free_gpus(struct config_gpu *gpus, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		gpu_select_deinit(&gpus[i].select);
		free(gpus[i].policy);
	}
	free(gpus);
}

static void override(uint64_t *value, uint64_t said)
{
	if (said != UNSAID)
		*value = said;
}

static void apply(void *target, const void *source)
{
	struct config_gpu_terms *terms = target;
	const struct config_gpu *entry = source;
	const struct policy_settings *said = &entry->scheduling;

	if (entry->says_mode)
		terms->mode = entry->mode;
	if (entry->says_memory)
		terms->memory = entry->memory;
	if (entry->policy)
		terms->policy = policy_find(entry->policy);
	override(&terms->scheduling.aging, said->aging);
	override(&terms->scheduling.quantum, said->quantum);
	override(&terms->scheduling.min_quantum, said->min_quantum);
	override(&terms->scheduling.cost, said->cost);
	if (said->max_overhead != UNSAID_PART)
		terms->scheduling.max_overhead = said->max_overhead;
}

static const struct config_gpu unsaid = {.scheduling = {.aging = UNSAID,
							.quantum = UNSAID,
							.min_quantum = UNSAID,
							.cost = UNSAID,
							.max_overhead = UNSAID_PART}};
static const struct gpu_entry gpu_entry = {sizeof(unsaid), &unsaid, gpu_fields, apply};

int config_read_gpus(struct yaml_file *file, const yaml_node_t *value,
		     const struct yaml_field *field, void *target)
{
	struct config *config = target;

	(void)field;
	return gpu_select_read_list(file, value, &gpu_entry, &config->gpus, &config->n_gpus);
}

struct config_gpu_terms config_for_gpu(const struct config *config, const struct gpu_traits *gpu)
{
	struct config_gpu_terms terms = {.mode = config->mode,
					 .memory = config->memory_default,
					 .policy = policy_find(config->policy),
					 .scheduling = config->scheduling};

	gpu_select_apply(&gpu_entry, config->gpus, config->n_gpus, gpu, &terms);
	return terms;
}
