#include "config-gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config-read.h"
#include "config.h"
#include "quantity.h"

#include "weir/base.h"

#define UNSAID      (UINT64_MAX - 1) /* POLICY_NEVER is a word of its own */
#define UNSAID_PART UINT32_MAX

static const char *const mode_names[] = {
	[GPU_MODE_TIMESLICE] = "timeslice", [GPU_MODE_MPS] = "mps"};

const char *gpu_mode_name(enum gpu_mode mode)
{
	return mode_names[mode];
}

int config_read_mode(struct yaml_file *file, const yaml_node_t *value,
		     const struct yaml_field *field, void *target)
{
	const char *text = yaml_scalar(file, value, "a mode");

	(void)field;
	if (!text)
		return -EINVAL;
	for (unsigned i = 0; i < countof(mode_names); i++) {
		if (strcmp(text, mode_names[i]) == 0) {
			*(enum gpu_mode *)target = (enum gpu_mode)i;
			return 0;
		}
	}
	return yaml_fail(file, value, "expected timeslice or mps, not `%s`", text);
}

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
	return config_read_mode(file, value, field, &gpu->mode);
}

static int read_memory(struct yaml_file *file, const yaml_node_t *value,
		       const struct yaml_field *field, void *target)
{
	struct config_gpu *gpu = target;

	gpu->says_memory = true;
	return config_read_memory_default(file, value, field, &gpu->memory);
}

#define AT(member) offsetof(struct config_gpu, member)

static const struct yaml_field scheduling_fields[] = {
	{"aging", config_read_aging, AT(scheduling.aging)},
	{"quantum", config_read_duration, AT(scheduling.quantum)},
	{"minQuantum", config_read_duration, AT(scheduling.min_quantum)},
	{"maxOverhead", config_read_overhead, AT(scheduling.max_overhead), .min = 1, .max = 100},
	{"evictionCost", config_read_duration, AT(scheduling.cost)},
	{0},
};
static const struct yaml_field gpu_fields[] = {
	{"uuid", gpu_select_read_uuid, AT(select)},
	{"index", gpu_select_read_index, AT(select)},
	{"product", gpu_select_read_product, AT(select)},
	{"mode", read_mode, 0},
	{"memoryDefault", read_memory, 0},
	{"policy", config_read_policy, AT(policy)},
	{"scheduling", yaml_read_section, 0, scheduling_fields},
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
		entry->scheduling = (struct policy_settings){.aging = UNSAID,
							     .quantum = UNSAID,
							     .min_quantum = UNSAID,
							     .cost = UNSAID,
							     .max_overhead = UNSAID_PART};
		r = yaml_read_section(file, node, &gpu, entry);
		if (r == 0)
			r = gpu_select_check(file, node, &entry->select, config->gpus, (size_t)i,
					     sizeof(*entry));
	}
	return r;
}

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

static void apply(struct config_gpu_terms *terms, const struct config_gpu *entry)
{
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

/* From the farthest to the nearest: what is said last holds. */
struct config_gpu_terms config_for_gpu(const struct config *config, const struct gpu_traits *gpu)
{
	struct config_gpu_terms terms = {.mode = config->mode,
					 .memory = config->memory_default,
					 .policy = policy_find(config->policy),
					 .scheduling = config->scheduling};

	for (enum gpu_select_by by = GPU_SELECT_PRODUCT; by <= GPU_SELECT_UUID; by++)
		for (size_t i = config->n_gpus; i > 0; i--)
			if (config->gpus[i - 1].select.by == by &&
			    gpu_select_fits(&config->gpus[i - 1].select, gpu))
				apply(&terms, &config->gpus[i - 1]);
	return terms;
}
