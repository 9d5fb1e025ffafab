#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/address.h"
#include "config/config-read.h"
#include "common/duration.h"
#include "policy/objective.h"
#include "common/quantity.h"
#include "weir/yaml.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/protocol.h"

static const char *const level_names[WEIR_LEVELS] = {"low", "normal", "high", "critical"};

bool config_level_parse(const char *name, uint8_t *out)
{
	for (uint8_t i = 0; i < WEIR_LEVELS; i++) {
		if (strcmp(name, level_names[i]) == 0) {
			*out = i;
			return true;
		}
	}
	return false;
}

const char *config_level_name(uint8_t level)
{
	return level < WEIR_LEVELS ? level_names[level] : "?";
}

static int read_level(struct yaml_file *file, const yaml_node_t *value,
		      const struct yaml_field *field, void *target)
{
	const char *text = yaml_scalar(file, value, "a level");

	(void)field;
	if (!text)
		return -EINVAL;
	if (!config_level_parse(text, target))
		return yaml_fail(file, value,
				 "expected a level: low, normal, high or critical, not `%s`", text);
	return 0;
}

int config_read_policy(struct yaml_file *file, const yaml_node_t *value,
		       const struct yaml_field *field, void *target)
{
	const char *text = yaml_scalar(file, value, "a policy");

	if (!text)
		return -EINVAL;
	if (!policy_find(text))
		return yaml_fail(file, value, "expected a policy (%s), not `%s`", policy_names(),
				 text);
	return yaml_read_text(file, value, field, target);
}

/* uint64_t, in ns. */
static int read_duration(struct yaml_file *file, const yaml_node_t *value,
			 const struct yaml_field *field, void *target)
{
	const char *text = yaml_scalar(file, value, "a duration");
	uint64_t ns;

	(void)field;
	if (!text)
		return -EINVAL;
	if (!duration_parse(text, &ns) || ns < CONFIG_DURATION_MIN || ns > CONFIG_DURATION_MAX)
		return yaml_fail(file, value, "expected a duration from 100us to 1h, not `%s`",
				 text);
	*(uint64_t *)target = ns;
	return 0;
}

static int read_aging(struct yaml_file *file, const yaml_node_t *value,
		      const struct yaml_field *field, void *target)
{
	const char *text = yaml_scalar(file, value, "a duration or `never`");

	if (!text || strcmp(text, "never") != 0)
		return text ? read_duration(file, value, field, target) : -EINVAL;
	*(uint64_t *)target = POLICY_NEVER;
	return 0;
}

/* Percent into millionths. */
static int read_overhead(struct yaml_file *file, const yaml_node_t *value,
			 const struct yaml_field *field, void *target)
{
	uint32_t percent;
	int r = yaml_read_number(file, value, field, &percent);

	if (r == 0)
		*(uint32_t *)target = percent * 10000;
	return r;
}

static int read_latency_slo(struct yaml_file *file, const yaml_node_t *value,
			    const struct yaml_field *field, void *target)
{
	const char *text = yaml_scalar(file, value, "a duration");

	(void)field;
	if (!text)
		return -EINVAL;
	if (!objective_parse(text, target))
		return yaml_fail(file, value, "expected " OBJECTIVE_EXPECTED ", not `%s`", text);
	return 0;
}

static int read_memory(struct yaml_file *file, const yaml_node_t *value,
		       const struct yaml_field *field, void *target)
{
	const char *text = yaml_scalar(file, value, "an amount of memory");

	(void)field;
	if (!text)
		return -EINVAL;
	if (!quantity_parse(text, target))
		return yaml_fail(file, value, "expected " QUANTITY_EXPECTED ", not `%s`", text);
	return 0;
}

static int read_address(struct yaml_file *file, const yaml_node_t *value,
			const struct yaml_field *field, void *target)
{
	const char *text = yaml_scalar(file, value, "an address");
	struct sockaddr_storage address;
	socklen_t size;

	if (!text)
		return -EINVAL;
	if (*text && !address_parse(text, &address, &size))
		return yaml_fail(file, value,
				 "expected an address like 0.0.0.0:9477 or [::]:9477, not `%s`",
				 text);
	return yaml_read_text(file, value, field, target);
}

/* Nothing: it is searched for, or has a place of its own. */
static int read_path_or_nothing(struct yaml_file *file, const yaml_node_t *value,
				const struct yaml_field *field, void *target)
{
	const char *text = yaml_scalar(file, value, "a path");

	if (!text)
		return -EINVAL;
	return *text ? yaml_read_path(file, value, field, target)
		     : yaml_read_text(file, value, field, target);
}

static const char *const unregistered_actions[] = {[UNREGISTERED_IGNORE] = "ignore",
						   [UNREGISTERED_REPORT] = "report",
						   [UNREGISTERED_KILL] = "kill",
						   NULL};
static const char *const compile_modes[] = {[COMPILE_AUTO] = "auto",
					    [COMPILE_MACHINE_CODE] = "machine-code",
					    [COMPILE_PTX] = "ptx",
					    [COMPILE_OFF] = "off",
					    NULL};

static int read_classes(struct yaml_file *file, const yaml_node_t *value,
			const struct yaml_field *field, void *target)
{
	struct config_levels *levels = target;
	int r = yaml_new_entries(file, value, YAML_MAPPING_NODE, &levels->classes,
				 &levels->n_classes, sizeof(*levels->classes));

	for (size_t i = 0; i < levels->n_classes && r == 0; i++) {
		const yaml_node_t *key, *level = yaml_pair(file, value, i, &key);
		r = yaml_read_text(file, key, field, &levels->classes[i].name);
		if (r == 0)
			r = read_level(file, level, field, &levels->classes[i].level);
	}
	return r;
}

static int read_raise(struct yaml_file *file, const yaml_node_t *value,
		      const struct yaml_field *field, void *target)
{
	struct config_levels *levels = target;
	int r = yaml_new_entries(file, value, YAML_SEQUENCE_NODE, &levels->raise, &levels->n_raise,
				 sizeof(*levels->raise));

	for (size_t i = 0; i < levels->n_raise && r == 0; i++)
		r = yaml_read_text(file, yaml_item(file, value, i), field, &levels->raise[i]);
	return r;
}

static int read_uid(struct yaml_file *file, const yaml_node_t *value,
		    const struct yaml_field *field, void *target)
{
	struct config_rule *rule = target;

	rule->has_uid = true;
	return yaml_read_number(file, value, field, &rule->uid);
}

static int read_cgroup(struct yaml_file *file, const yaml_node_t *value,
		       const struct yaml_field *field, void *target)
{
	const char *text = yaml_scalar(file, value, "a cgroup path");
	const char *star = text ? strchr(text, '*') : NULL;

	if (!text)
		return -EINVAL;
	if (star && star[1])
		return yaml_fail(file, value, "expected `*` only at the end of a cgroup path");
	return yaml_read_path(file, value, field, target);
}

#define NO_LEVEL 0xff

static const struct yaml_field rule_fields[] = {
	{"uid", read_uid, 0, .max = UINT32_MAX},
	{"cgroup", read_cgroup, offsetof(struct config_rule, cgroup)},
	{"level", read_level, offsetof(struct config_rule, level)},
	{"share", yaml_read_number, offsetof(struct config_rule, share), .min = 1, .max = 100},
	{"latencySlo", read_latency_slo, offsetof(struct config_rule, latency_slo)},
	{"memory", read_memory, offsetof(struct config_rule, memory)},
	{0},
};

static int read_rules(struct yaml_file *file, const yaml_node_t *value,
		      const struct yaml_field *field, void *target)
{
	static const struct yaml_field rule = {.fields = rule_fields};
	struct config *config = target;
	int r = yaml_new_entries(file, value, YAML_SEQUENCE_NODE, &config->rules, &config->n_rules,
				 sizeof(*config->rules));

	(void)field;
	for (size_t i = 0; i < config->n_rules && r == 0; i++) {
		const yaml_node_t *node = yaml_item(file, value, i);
		config->rules[i].level = NO_LEVEL;
		r = yaml_read_section(file, node, &rule, &config->rules[i]);
		if (r == 0 && config->rules[i].level == NO_LEVEL)
			r = yaml_fail(file, node, "expected a `level` in this rule");
	}
	return r;
}

#define AT(member) offsetof(struct policy_settings, member)

const struct yaml_field config_scheduling_fields[] = {
	{"aging", read_aging, AT(aging)},
	{"quantum", read_duration, AT(quantum)},
	{"minQuantum", read_duration, AT(min_quantum)},
	{"maxOverhead", read_overhead, AT(max_overhead), .min = 1, .max = 100},
	{"evictionCost", read_duration, AT(cost)},
	{0},
};

#undef AT
#define AT(member) offsetof(struct config, member)

static const struct yaml_field metrics_fields[] = {
	{"address", read_address, AT(metrics_address), .text = "127.0.0.1:9477"},
	{0},
};
static const struct yaml_field control_fields[] = {
	{"socket", yaml_read_path, AT(control_socket), .text = "/run/weir-agent/control.sock"},
	{0},
};
static const struct yaml_field kubernetes_fields[] = {
	{"enabled", yaml_read_bool, AT(kubernetes.enabled)},
	{"events", yaml_read_bool, AT(kubernetes.events)},
	{"nodeLabels", yaml_read_bool, AT(kubernetes.node_labels)},
	{"kubeconfig", yaml_read_text, AT(kubernetes.kubeconfig), .text = ""},
	{"nodeName", yaml_read_text, AT(kubernetes.node), .text = ""},
	{"resourceName", yaml_read_text, AT(kubernetes.resource), .text = "weir.dev/gpu-share"},
	{0},
};
static const struct yaml_field qos_fields[] = {
	{"bestEffort", read_level, AT(levels.best_effort)},
	{"burstable", read_level, AT(levels.burstable)},
	{"guaranteed", read_level, AT(levels.guaranteed)},
	{0},
};
static const struct yaml_field levels_fields[] = {
	{"default", read_level, AT(levels.by_default)},
	{"qos", yaml_read_section, 0, qos_fields},
	{"priorityClasses", read_classes, AT(levels)},
	{"annotation", yaml_read_text, AT(levels.annotation), .text = "weir.dev/priority"},
	{"latencyAnnotation", yaml_read_text, AT(levels.latency_annotation),
	 .text = "weir.dev/latency-slo"},
	{"memoryAnnotation", yaml_read_text, AT(levels.memory_annotation),
	 .text = "weir.dev/memory"},
	{"weightAnnotation", yaml_read_text, AT(levels.weight_annotation),
	 .text = "weir.dev/weight"},
	{"raiseNamespaces", read_raise, AT(levels)},
	{0},
};
static const struct yaml_field compile_fields[] = {
	{"mode", yaml_read_word, AT(compile.mode), .words = compile_modes},
	{"program", read_path_or_nothing, AT(compile.program), .text = ""},
	{"helpers", yaml_read_number, AT(compile.helpers), .min = 1, .max = 64},
	{"memoryMiB", yaml_read_number, AT(compile.memory_mib), .min = 256, .max = 65536},
	{"seconds", yaml_read_number, AT(compile.seconds), .min = 1, .max = 3600},
	{"cacheDir", read_path_or_nothing, AT(compile.cache_dir), .text = ""},
	{"cacheMiB", yaml_read_number, AT(compile.cache_mib), .min = 1, .max = 1048576},
	{0},
};
static const struct yaml_field unregistered_fields[] = {
	{"action", yaml_read_word, AT(unregistered.action), .words = unregistered_actions},
	{"afterSeconds", yaml_read_number, AT(unregistered.after), .min = 1, .max = 3600},
	{0},
};
static const struct yaml_field standalone_fields[] = {
	{"rules", read_rules, 0},
	{0},
};
static const struct yaml_field limits_fields[] = {
	{"clients", yaml_read_number, AT(clients), .min = 1, .max = 16384},
	{"clientsPerContainer", yaml_read_number, AT(clients_per_container), .min = 1,
	 .max = 16384},
	{0},
};
static const struct yaml_field mps_fields[] = {
	{"program", read_path_or_nothing, AT(mps.program), .text = ""},
	{"root", yaml_read_text, AT(mps.root), .text = ""},
	{"dir", yaml_read_path, AT(mps.dir), .text = "/run/weir-mps"},
	{"keep", yaml_read_bool, AT(mps.keep)},
	{"keeper", yaml_read_bool, AT(mps.keeper)},
	{"multiUser", yaml_read_bool, AT(mps.multi_user)},
	{"required", yaml_read_bool, AT(mps.required)},
	{"check", read_duration, AT(mps.check)},
	{0},
};
static const struct yaml_field config_fields[] = {
	{"socket", yaml_read_path, AT(socket), .text = WEIR_SOCKET_PATH},
	{"stateDir", yaml_read_path, AT(state_dir), .text = "/run/weir-agent/state"},
	{"policy", config_read_policy, AT(policy), .text = "hpf"},
	{"scheduling", yaml_read_section, AT(scheduling), config_scheduling_fields},
	{"metrics", yaml_read_section, 0, metrics_fields},
	{"control", yaml_read_section, 0, control_fields},
	{"kubernetes", yaml_read_section, 0, kubernetes_fields},
	{"levels", yaml_read_section, 0, levels_fields},
	{"standalone", yaml_read_section, 0, standalone_fields},
	{"compile", yaml_read_section, 0, compile_fields},
	{"limits", yaml_read_section, 0, limits_fields},
	{"health", yaml_read_section, AT(health), health_fields},
	{"unregistered", yaml_read_section, 0, unregistered_fields},
	{"mode", yaml_read_word, AT(mode), .words = gpu_mode_words},
	{"memoryDefault", config_read_memory_default, AT(memory_default)},
	{"mps", yaml_read_section, 0, mps_fields},
	{"gpus", config_read_gpus, 0},
	{"nvml", yaml_read_text, AT(nvml), .text = ""},
	{"logLevel", yaml_read_log_level, AT(log_level)},
	{0},
};

/* $NODE_NAME, else the host's name. */
static int set_default_node(struct config *config)
{
	const char *node = getenv("NODE_NAME");
	char host[256] = "";

	if (!node || !*node) {
		gethostname(host, sizeof(host) - 1);
		node = host;
	}
	free(config->kubernetes.node);
	config->kubernetes.node = strdup(node);
	return config->kubernetes.node ? 0 : error_origin(-ENOMEM);
}

static void share_names(struct config *config)
{
	config->kubernetes.names = (struct podlist_names){
		.priority = config->levels.annotation,
		.latency_slo = config->levels.latency_annotation,
		.memory = config->levels.memory_annotation,
		.weight = config->levels.weight_annotation,
		.share = config->kubernetes.resource,
	};
}

int config_init(struct config *config)
{
	*config = (struct config){
		.scheduling = policy_defaults,
		.log_level = LOG_INFO,
		.clients = 1024,
		.clients_per_container = 64,
		.health = health_defaults,
		.unregistered = {.action = UNREGISTERED_REPORT, .after = 10},
		.kubernetes = {.events = true, .node_labels = true},
		.levels = {.best_effort = 0, .burstable = 1, .guaranteed = 2},
		.compile = {.helpers = 2, .memory_mib = 1024, .seconds = 30, .cache_mib = 256},
		.mps = {.check = 5000000000ull, .keep = true, .multi_user = true},
	};
	int r = yaml_set_texts(config_fields, config);
	if (r == 0)
		r = set_default_node(config);
	if (r < 0)
		config_deinit(config);
	else
		share_names(config);
	return r;
}

void config_deinit(struct config *config)
{
	yaml_free_texts(config_fields, config);
	config_free_gpus(config->gpus, config->n_gpus);
	for (size_t i = 0; i < config->levels.n_classes; i++)
		free(config->levels.classes[i].name);
	free(config->levels.classes);
	for (size_t i = 0; i < config->levels.n_raise; i++)
		free(config->levels.raise[i]);
	free(config->levels.raise);
	for (size_t i = 0; i < config->n_rules; i++)
		free(config->rules[i].cgroup);
	free(config->rules);
	*config = (struct config){0};
}

/* @out has the defaults. */
static int read_text(struct config *out, const char *name, const char *text, size_t size,
		     char *message, size_t message_size)
{
	cleanup(yaml_file_deinit) struct yaml_file file = {0};
	int r = yaml_file_init(&file, name, text, size, message, message_size);

	return r < 0 ? r : yaml_read(&file, config_fields, out);
}

int config_parse(struct config *out, const char *name, const char *text, size_t size, char *message,
		 size_t message_size)
{
	struct config config;
	int r = config_init(&config);

	if (r < 0)
		return r;
	r = read_text(&config, name, text, size, message, message_size);
	if (r == 0 && !*config.kubernetes.node)
		r = set_default_node(&config);
	if (r < 0) {
		config_deinit(&config);
		return r;
	}
	share_names(&config);
	*out = config;
	return 0;
}

int config_load(struct config *out, const char *path, char *message, size_t message_size)
{
	cleanup(freep) char *text = NULL;
	size_t size;
	int r = yaml_load_file(path, CONFIG_FILE_MAX, &text, &size, message, message_size);

	return r < 0 ? r : config_parse(out, path, text, size, message, message_size);
}
