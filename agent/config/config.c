#include "config/config.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/address.h"
#include "weir/units.h"
#include "policy/min-rate.h"
#include "policy/objective.h"
#include "policy/yield.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/protocol.h"
#include "weir/yaml.h"

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

const char *config_level_name(unsigned level)
{
	return level < WEIR_LEVELS ? level_names[level] : "?";
}

/* Types of values */

static bool parse_level(const char *text, void *target)
{
	return config_level_parse(text, target);
}

static bool parse_duration(const char *text, void *target)
{
	return duration_parse(text, CONFIG_DURATION_MIN, CONFIG_DURATION_MAX, target);
}

static bool parse_aging(const char *text, void *target)
{
	if (strcmp(text, "never") != 0)
		return parse_duration(text, target);
	*(uint64_t *)target = POLICY_NEVER;
	return true;
}

static bool parse_objective(const char *text, void *target)
{
	return objective_parse(text, target);
}

static bool parse_yield(const char *text, void *target)
{
	return yield_parse(text, target);
}

static bool parse_min_rate(const char *text, void *target)
{
	return min_rate_parse(text, target);
}

static bool parse_memory(const char *text, void *target)
{
	return memory_parse(text, target);
}

static bool parse_memory_default(const char *text, void *target)
{
	struct config_memory memory = {0};

	if (strcmp(text, "share") == 0)
		memory.kind = MEMORY_SHARE;
	else if (memory_parse(text, &memory.bytes))
		memory.kind = MEMORY_BYTES;
	else if (strcmp(text, "none") != 0)
		return false;
	*(struct config_memory *)target = memory;
	return true;
}

static bool is_address(const char *text, void *target)
{
	struct sockaddr_storage address;
	socklen_t size;

	(void)target;
	return !*text || address_parse(text, &address, &size);
}

#define DURATION_EXPECTED "a duration from 100us to 1h"
static const struct yaml_type level = {"a level", "a level: low, normal, high or critical",
				       parse_level};
static const struct yaml_type duration = {"a duration", DURATION_EXPECTED, parse_duration};
static const struct yaml_type aging = {"a duration or `never`", DURATION_EXPECTED, parse_aging};
static const struct yaml_type objective = {"a duration", OBJECTIVE_EXPECTED, parse_objective};
static const struct yaml_type yield = {"what to yield", YIELD_EXPECTED, parse_yield};
static const struct yaml_type min_rate = {"a minimum rate", MIN_RATE_EXPECTED, parse_min_rate};
static const struct yaml_type memory = {"an amount of memory", MEMORY_EXPECTED, parse_memory};
static const struct yaml_type memory_default = {"none, share or an amount of memory",
						"none, share, or " MEMORY_EXPECTED,
						parse_memory_default};
static const struct yaml_type address = {"an address", "an address like 0.0.0.0:9477 or [::]:9477",
					 is_address};

static int read_policy(struct yaml_file *file, const yaml_node_t *value,
		       const struct yaml_field *field, void *target)
{
	const char *text = yaml_scalar(file, value, "a policy");
	const struct policy *policy = text ? policy_find(text) : NULL;

	(void)field;
	if (!text)
		return -EINVAL;
	if (!policy)
		return yaml_fail(file, value, "expected a policy (%s), not `%s`", policy_names(),
				 text);
	*(const struct policy **)target = policy;
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

/* Lists */

#define AT(member) YAML_AT(struct config_class, member)
static const struct yaml_entry class_entry = {
	.size = sizeof(struct config_class),
	.fields =
		(const struct yaml_field[]){
			{NULL, yaml_read_text, AT(name), .text = YAML_NULL},
			{NULL, yaml_read_typed, AT(level), .type = &level},
			{0},
		},
};
static const struct yaml_entry namespace_entry = {
	.size = sizeof(char *),
	.fields =
		(const struct yaml_field[]){
			{NULL, yaml_read_text, 0, sizeof(char *), .text = YAML_NULL},
			{0},
		},
};

#undef AT
#define AT(member) YAML_AT(struct config_rule, member)
#define NO_LEVEL   0xff

static const struct yaml_field rule_fields[] = {
	{"uid", read_uid, .max = UINT32_MAX},
	{"cgroup", read_cgroup, AT(cgroup), .text = YAML_NULL},
	{"level", yaml_read_typed, AT(level), .type = &level},
	{"share", yaml_read_number, AT(share), .min = 1, .max = 100},
	{"latencySlo", yaml_read_typed, AT(latency_slo), .type = &objective},
	{"computeLimit", yaml_read_number, AT(compute_limit), .min = 1, .max = 100},
	{"memory", yaml_read_typed, AT(memory), .type = &memory},
	{"yield", yaml_read_typed, AT(yield), .type = &yield},
	{"minRate", yaml_read_typed, AT(min_rate), .type = &min_rate},
	{0},
};

static int check_rule(struct yaml_file *file, const yaml_node_t *node,
		      const struct yaml_entry *entry, const void *entries, size_t i)
{
	(void)entry;
	return ((const struct config_rule *)entries)[i].level == NO_LEVEL
		       ? yaml_fail(file, node, "expected a `level` in this rule")
		       : 0;
}

static const struct config_rule standard_rule = {.level = NO_LEVEL, .yield = YIELD_AUTO};
static const struct yaml_entry rule_entry = {sizeof(standard_rule), &standard_rule, rule_fields,
					     check_rule};

#undef AT
#define AT(member) YAML_AT(struct policy_settings, member)
static const struct yaml_field scheduling_fields[] = {
	{"aging", yaml_read_typed, AT(aging), .type = &aging},
	{"quantum", yaml_read_typed, AT(quantum), .type = &duration},
	{"minQuantum", yaml_read_typed, AT(min_quantum), .type = &duration},
	{"maxOverhead", read_overhead, AT(max_overhead), .min = 1, .max = 100},
	{"evictionCost", yaml_read_typed, AT(cost), .type = &duration},
	{0},
};

/* Keys that stand at the top of the file, for all GPUs, and in entries of `gpus:`. */
#define GPU_FIELDS(settings)                                                                      \
	{"mode", yaml_read_word, AT(settings.mode), .words = gpu_mode_words},                     \
		{"hardwarePreemption", yaml_read_bool, AT(settings.hardware)},                    \
		{"memoryDefault", yaml_read_typed, AT(settings.memory), .type = &memory_default}, \
		{"policy", read_policy, AT(settings.policy)},                                     \
	{                                                                                         \
		"scheduling", yaml_read_section, AT(settings.scheduling), scheduling_fields       \
	}

#undef AT
#define AT(member) YAML_AT(struct config_gpu, member)
static const struct yaml_field gpu_fields[] = {GPU_SELECT_FIELDS, GPU_FIELDS(values), {0}};
static const struct yaml_entry gpu_entry = {sizeof(struct config_gpu), NULL, gpu_fields,
					    gpu_select_check, sizeof(struct config_gpu_settings)};
static_assert(offsetof(struct config_gpu, values) == sizeof(struct gpu_select), "gpu-select.h");

/* Sections */

static const char *const unregistered_actions[] = {[UNREGISTERED_IGNORE] = "ignore",
						   [UNREGISTERED_REPORT] = "report",
						   [UNREGISTERED_KILL] = "kill",
						   NULL};
static const char *const disobedience_actions[] = {
	[DISOBEDIENCE_REPORT] = "report", [DISOBEDIENCE_KILL] = "kill", NULL};
static const char *const overruns_actions[] = {
	[OVERRUNS_IGNORE] = "ignore", [OVERRUNS_REPORT] = "report", [OVERRUNS_KILL] = "kill", NULL};
static const char *const memory_full_words[] = {"fail", "wait", NULL};
static const char *const compile_modes[] = {[COMPILE_AUTO] = "auto",
					    [COMPILE_MACHINE_CODE] = "machine-code",
					    [COMPILE_PTX] = "ptx",
					    [COMPILE_OFF] = "off",
					    NULL};

#undef AT
#define AT(member)         YAML_AT(struct config, member)
#define AT_LIST(member, n) YAML_AT_LIST(struct config, member, n)

static const struct yaml_field metrics_fields[] = {
	{"address", yaml_read_typed, AT(metrics_address), .type = &address,
	 .text = "127.0.0.1:9477"},
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
	{"resourceName", yaml_read_text, AT(kubernetes.names.share), .text = "weir.dev/gpu-share"},
	{"checkpoint", yaml_read_path_or_empty, AT(kubernetes.checkpoint), .text = ""},
	{"claims", yaml_read_path_or_empty, AT(kubernetes.claims), .text = ""},
	{0},
};
static const struct yaml_field qos_fields[] = {
	{"bestEffort", yaml_read_typed, AT(levels.best_effort), .type = &level},
	{"burstable", yaml_read_typed, AT(levels.burstable), .type = &level},
	{"guaranteed", yaml_read_typed, AT(levels.guaranteed), .type = &level},
	{0},
};
static const struct yaml_field levels_fields[] = {
	{"default", yaml_read_typed, AT(levels.by_default), .type = &level},
	{"qos", yaml_read_section, .fields = qos_fields},
	{"priorityClasses", yaml_read_list, AT_LIST(levels.classes, levels.n_classes),
	 .entry = &class_entry},
	{"annotation", yaml_read_text, AT(kubernetes.names.priority), .text = "weir.dev/priority",
	 .at_start = true},
	{"latencyAnnotation", yaml_read_text, AT(kubernetes.names.latency_slo),
	 .text = "weir.dev/latency-slo", .at_start = true},
	{"memoryAnnotation", yaml_read_text, AT(kubernetes.names.memory), .text = "weir.dev/memory",
	 .at_start = true},
	{"weightAnnotation", yaml_read_text, AT(kubernetes.names.weight), .text = "weir.dev/weight",
	 .at_start = true},
	{"computeAnnotation", yaml_read_text, AT(kubernetes.names.compute),
	 .text = "weir.dev/compute-limit", .at_start = true},
	{"memoryFullAnnotation", yaml_read_text, AT(kubernetes.names.memory_full),
	 .text = "weir.dev/memory-full", .at_start = true},
	{"yieldAnnotation", yaml_read_text, AT(kubernetes.names.yield), .text = "weir.dev/yield",
	 .at_start = true},
	{"minRateAnnotation", yaml_read_text, AT(kubernetes.names.min_rate),
	 .text = "weir.dev/min-rate", .at_start = true},
	{"raiseNamespaces", yaml_read_list, AT_LIST(levels.raise, levels.n_raise),
	 .entry = &namespace_entry},
	{0},
};
static const struct yaml_field compile_fields[] = {
	{"mode", yaml_read_word, AT(compile.mode), .words = compile_modes},
	{"program", yaml_read_path_or_empty, AT(compile.program), .text = ""},
	{"helpers", yaml_read_number, AT(compile.helpers), .min = 1, .max = 64},
	{"memoryMiB", yaml_read_number, AT(compile.memory_mib), .min = 256, .max = 65536},
	{"seconds", yaml_read_number, AT(compile.seconds), .min = 1, .max = 3600},
	{"cacheDir", yaml_read_path_or_empty, AT(compile.cache_dir), .text = ""},
	{"cacheMiB", yaml_read_number, AT(compile.cache_mib), .min = 1, .max = 1048576},
	{0},
};
static const struct yaml_field unregistered_fields[] = {
	{"action", yaml_read_word, AT(unregistered.action), .words = unregistered_actions},
	{"afterSeconds", yaml_read_number, AT(unregistered.after), .min = 1, .max = 3600},
	{0},
};
static const struct yaml_field overruns_fields[] = {
	{"action", yaml_read_word, AT(overruns.action), .words = overruns_actions},
	{"afterSeconds", yaml_read_number, AT(overruns.after), .min = 1, .max = 3600},
	{0},
};
static const struct yaml_field standalone_fields[] = {
	{"rules", yaml_read_list, AT_LIST(rules, n_rules), .entry = &rule_entry},
	{0},
};
static const struct yaml_field limits_fields[] = {
	{"clients", yaml_read_number, AT(clients), .min = 1, .max = 16384},
	{"clientsPerContainer", yaml_read_number, AT(clients_per_container), .min = 1,
	 .max = 16384},
	{0},
};
static const struct yaml_field mps_fields[] = {
	{"program", yaml_read_path_or_empty, AT(mps.program), .text = "", .at_start = true},
	{"root", yaml_read_text, AT(mps.root), .text = "", .at_start = true},
	{"preload", yaml_read_path_or_empty, AT(mps.preload), .text = "", .at_start = true},
	{"dir", yaml_read_path, AT(mps.dir), .text = "/run/weir-mps", .at_start = true},
	{"keep", yaml_read_bool, AT(mps.keep)},
	{"supervisor", yaml_read_bool, AT(mps.supervisor)},
	{"keeper", yaml_read_bool, .instead = "supervisor"}, /* deprecated */
	{"multiUser", yaml_read_bool, AT(mps.multi_user)},
	{"required", yaml_read_bool, AT(mps.required)},
	{"check", yaml_read_typed, AT(mps.check), .type = &duration},
	{0},
};
/* What is not at_start, a running agent changes when its file changes. */
static const struct yaml_field config_fields[] = {
	{"socket", yaml_read_path, AT(socket), .text = WEIR_SOCKET_PATH, .at_start = true},
	{"stateDir", yaml_read_path, AT(state_dir), .text = "/run/weir-agent/state",
	 .at_start = true},
	{"metrics", yaml_read_section, .fields = metrics_fields, .at_start = true},
	{"control", yaml_read_section, .fields = control_fields, .at_start = true},
	{"nvml", yaml_read_text, AT(nvml), .text = "", .at_start = true},
	{"kubernetes", yaml_read_section, .fields = kubernetes_fields, .at_start = true},
	{"levels", yaml_read_section, .fields = levels_fields},
	{"standalone", yaml_read_section, .fields = standalone_fields},
	{"compile", yaml_read_section, .fields = compile_fields, .at_start = true},
	{"limits", yaml_read_section, .fields = limits_fields},
	{"health", yaml_read_section, AT(health), health_fields},
	{"unregistered", yaml_read_section, .fields = unregistered_fields},
	{"disobedience", yaml_read_word, AT(disobedience), .words = disobedience_actions},
	{"overruns", yaml_read_section, .fields = overruns_fields},
	{"mps", yaml_read_section, .fields = mps_fields},
	{"memoryFull", yaml_read_word, AT(memory_full), .words = memory_full_words},
	{"memoryWait", yaml_read_typed, AT(memory_wait), .type = &duration},
	{"memoryOvercommit", yaml_read_number, AT(memory_overcommit), .min = 100, .max = 100000},
	GPU_FIELDS(gpu),
	{"gpus", yaml_read_list, AT_LIST(gpus, n_gpus), .entry = &gpu_entry},
	{"logLevel", yaml_read_typed, AT(log_level), .type = &yaml_log_level},
	{0},
};

static int set_defaults(struct config *config)
{
	*config = (struct config){
		.gpu = {.hardware = true, .policy = &policy_whpf, .scheduling = policy_defaults},
		.log_level = LOG_INFO,
		.memory_wait = 30000000000ull,
		.memory_overcommit = 100,
		.clients = 1024,
		.clients_per_container = 64,
		.health = health_defaults,
		.unregistered = {.action = UNREGISTERED_REPORT, .after = 10},
		.overruns = {.action = OVERRUNS_REPORT, .after = 10},
		.kubernetes = {.events = true, .node_labels = true},
		.levels = {.best_effort = 0, .burstable = 1, .guaranteed = 2},
		.compile = {.helpers = 2, .memory_mib = 1024, .seconds = 30, .cache_mib = 256},
		.mps = {.check = 5000000000ull, .keep = true, .multi_user = true},
	};
	return yaml_set_texts(config_fields, config);
}

/* $NODE_NAME, else the host's name, unless the file has one. */
static int set_node(struct config *config)
{
	const char *node = getenv("NODE_NAME");
	char host[256] = "";

	if (*config->kubernetes.node)
		return 0;
	if (!node || !*node) {
		gethostname(host, sizeof(host) - 1);
		node = host;
	}
	free(config->kubernetes.node);
	config->kubernetes.node = strdup(node);
	return config->kubernetes.node ? 0 : error_origin(-ENOMEM);
}

void config_deinit(struct config *config)
{
	yaml_free(config_fields, config);
	*config = (struct config){0};
}

int config_parse(struct config *out, const char *name, const char *text, size_t size, char *message,
		 size_t message_size)
{
	struct config config;
	int r = set_defaults(&config);

	if (r == 0)
		r = yaml_parse(config_fields, &config, name, text, size, message, message_size);
	if (r == 0)
		r = set_node(&config);
	if (r < 0)
		config_deinit(&config);
	else
		*out = config;
	return r;
}

int config_load(struct config *out, const char *path, char *message, size_t message_size)
{
	cleanup(freep) char *text = NULL;
	size_t size;

	if (!path)
		return config_parse(out, "", "", 0, message, message_size);
	int r = yaml_load_file(path, CONFIG_FILE_MAX, &text, &size, message, message_size);
	return r < 0 ? r : config_parse(out, path, text, size, message, message_size);
}

void config_apply(struct config *config, struct config *next, char *waiting, size_t size)
{
	yaml_update(config_fields, config, next, waiting, size);
}

struct config_gpu_settings config_for_gpu(const struct config *config, const struct gpu_traits *gpu)
{
	struct config_gpu_settings settings = config->gpu;

	gpu_select_apply(&gpu_entry, config->gpus, config->n_gpus, gpu, &settings);
	return settings;
}
