#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "allocator.h"
#include "gpu.h"
#include "weir/base.h"
#include "weir/error.h"
#include "weir/yaml.h"

#define HOST_DIR       "/usr/local/lib/weir/" WEIR_VERSION
#define PLUGIN_DIR_MAX 64u /* leaves room for a socket's name */

/* True: letters and digits, with characters of @inner in between. */
static bool is_label(const char *text, size_t n, size_t max, const char *inner)
{
	if (!n || n > max)
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = text[i];
		bool alphanumeric =
			(c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		if (!alphanumeric && (i == 0 || i == n - 1 || !c || !strchr(inner, c)))
			return false;
	}
	return true;
}

/* A DNS name in lower case, short enough for "requests." before it, as in a quota. */
static bool is_domain(const char *text, size_t n)
{
	enum { NAME_MAX_ = 253, LABEL_MAX = 63 };

	if (!n || n + strlen("requests.") > NAME_MAX_)
		return false;
	for (size_t i = 0; i < n; i++)
		if (text[i] >= 'A' && text[i] <= 'Z')
			return false;
	for (size_t at = 0; at <= n;) {
		const char *dot = memchr(text + at, '.', n - at);
		size_t end = dot ? (size_t)(dot - text) : n;
		if (!is_label(text + at, end - at, LABEL_MAX, "-"))
			return false;
		at = end + 1;
	}
	return true;
}

bool config_resource_name_valid(const char *name)
{
	const char *slash = strchr(name, '/');

	return slash && !strstr(name, "kubernetes.io/") &&
	       strncmp(name, "requests.", strlen("requests.")) != 0 &&
	       is_domain(name, (size_t)(slash - name)) &&
	       is_label(slash + 1, strlen(slash + 1), 63, "-_.");
}

/* A letter, then letters, digits and `_-.`; the last one is a letter or digit. */
static bool is_word(const char *text, size_t n)
{
	return is_label(text, n, n, "_-.") && !(text[0] >= '0' && text[0] <= '9');
}

bool config_cdi_kind_valid(const char *kind)
{
	const char *slash = strchr(kind, '/');

	return slash && strlen(kind) < CDI_KIND_MAX && is_word(kind, (size_t)(slash - kind)) &&
	       is_word(slash + 1, strlen(slash + 1));
}

bool config_cdi_is_ours(const struct config *config)
{
	return strncmp(config->cdi.kind, "weir.dev/", strlen("weir.dev/")) == 0;
}

static bool is_resource(const char *text, void *target)
{
	(void)target;
	return config_resource_name_valid(text);
}

static bool is_cdi_kind(const char *text, void *target)
{
	(void)target;
	return config_cdi_kind_valid(text);
}

static const struct yaml_type resource = {
	"a resource name", "the name of an extended resource like weir.dev/gpu-share", is_resource};
static const struct yaml_type cdi_kind = {"a CDI kind", "a CDI kind like weir.dev/gpu",
					  is_cdi_kind};

static const char *const allocations[] = {
	[ALLOCATION_PACK] = "pack", [ALLOCATION_SPREAD] = "spread", NULL};
static const char *const no_rooms[] = {[NO_ROOM_FAIL] = "fail", [NO_ROOM_WAIT] = "wait", NULL};
static const char *const device_lists[] = {[DEVICE_LIST_ENVVAR] = "envvar",
					   [DEVICE_LIST_CDI_CRI] = "cdi-cri",
					   [DEVICE_LIST_CDI_ANNOTATIONS] = "cdi-annotations",
					   NULL};
static const char *const driver_mounts[] = {[DRIVER_MOUNT_AUTO] = "auto",
					    [DRIVER_MOUNT_ALWAYS] = "always",
					    [DRIVER_MOUNT_NEVER] = "never",
					    NULL};

static int read_plugin_dir(struct yaml_file *file, const yaml_node_t *value,
			   const struct yaml_field *field, void *target)
{
	const char *text = yaml_scalar(file, value, "a path");

	if (!text)
		return -EINVAL;
	if (strlen(text) > PLUGIN_DIR_MAX)
		return yaml_fail(file, value, "expected a path of at most %u bytes",
				 PLUGIN_DIR_MAX);
	return yaml_read_path(file, value, field, target);
}

/* A path or "". Removes slashes at the end, so "/" becomes "". */
static int read_prefix(struct yaml_file *file, const yaml_node_t *value,
		       const struct yaml_field *field, void *target)
{
	int r = yaml_read_path_or_empty(file, value, field, target);
	char *path = *(char **)target;

	for (size_t n = r < 0 ? 0 : strlen(path); n && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	return r;
}

static int read_env_name(struct yaml_file *file, const yaml_node_t *value,
			 const struct yaml_field *field, void *target)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_";
	const char *text = yaml_scalar(file, value, "text");

	if (!text)
		return -EINVAL;
	if (!*text || (*text >= '0' && *text <= '9') || text[strspn(text, letters)])
		return yaml_fail(file, value, "expected the name of an environment variable");
	return yaml_read_text(file, value, field, target);
}

#define AT(member) YAML_AT(struct config_pair, member)
static const struct yaml_entry env_entry = {
	.size = sizeof(struct config_pair),
	.fields =
		(const struct yaml_field[]){
			{NULL, read_env_name, AT(key), .text = YAML_NULL},
			{NULL, yaml_read_text, AT(value), .text = YAML_NULL},
			{0},
		},
};

#undef AT
#define AT(member) YAML_AT(struct config_mount, member)
static const struct yaml_field mount_fields[] = {
	{"hostPath", yaml_read_path, AT(host_path), .text = YAML_NULL},
	{"containerPath", yaml_read_path, AT(container_path), .text = YAML_NULL},
	{"readOnly", yaml_read_bool, AT(read_only)},
	{0},
};

static int check_mount(struct yaml_file *file, const yaml_node_t *node,
		       const struct yaml_entry *entry, const void *entries, size_t i)
{
	const struct config_mount *mount = (const struct config_mount *)entries + i;

	(void)entry;
	return mount->host_path && mount->container_path
		       ? 0
		       : yaml_fail(file, node,
				   "expected `hostPath` and `containerPath` in this mount");
}

static const struct config_mount standard_mount = {.read_only = true};
static const struct yaml_entry mount_entry = {sizeof(standard_mount), &standard_mount, mount_fields,
					      check_mount};

#undef AT
#define AT(member) YAML_AT(struct config_gpu, member)
static const struct yaml_field gpu_fields[] = {
	GPU_SELECT_FIELDS,
	{"mode", yaml_read_word, AT(values.mode), .words = gpu_mode_words},
	{"shares", yaml_read_number, AT(values.shares), .max = SHARES_PER_GPU},
	{0},
};
static const struct yaml_entry gpu_entry = {sizeof(struct config_gpu), NULL, gpu_fields,
					    gpu_select_check, sizeof(struct config_gpu_settings)};
static_assert(offsetof(struct config_gpu, values) == sizeof(struct gpu_select), "gpu-select.h");

#undef AT
#define AT(member)         YAML_AT(struct config, member)
#define AT_LIST(member, n) YAML_AT_LIST(struct config, member, n)

static const struct yaml_field library_fields[] = {
	{"hostPath", yaml_read_path, AT(library_path), .text = HOST_DIR "/libweir.so"},
	{"nvmlPath", read_prefix, AT(nvml_path), .text = HOST_DIR "/libweir-nvml.so"},
	{0},
};
static const struct yaml_field preload_fields[] = {
	{"hostPath", yaml_read_path, AT(preload_path), .text = HOST_DIR "/ld.so.preload"},
	{0},
};
static const struct yaml_field mps_fields[] = {
	{"dir", yaml_read_path, AT(mps.dir), .text = "/run/weir-mps"},
	{"required", yaml_read_bool, AT(mps.required)},
	{0},
};
static const struct yaml_field cdi_fields[] = {
	{"dir", yaml_read_path, AT(cdi.dir), .text = "/var/run/cdi"},
	{"kind", yaml_read_typed, AT(cdi.kind), .type = &cdi_kind, .text = "weir.dev/gpu"},
	{0},
};
static const struct yaml_field dra_fields[] = {
	{"enabled", yaml_read_bool, AT(dra.enabled)},
	{"shares", yaml_read_number, AT(dra.shares), .max = SHARES_PER_GPU},
	{"nodeName", yaml_read_text, AT(dra.node), .text = ""},
	{"kubeconfig", yaml_read_text, AT(dra.kubeconfig), .text = ""},
	{"registryDir", read_plugin_dir, AT(dra.registry_dir),
	 .text = "/var/lib/kubelet/plugins_registry"},
	{"stateDir", yaml_read_path, AT(dra.state_dir),
	 .text = "/var/lib/kubelet/plugins/gpu.weir.dev"},
	{"podResources", yaml_read_path_or_empty, AT(dra.pod_resources),
	 .text = "/var/lib/kubelet/pod-resources/kubelet.sock"},
	{0},
};
static const struct yaml_field driver_fields[] = {
	{"mount", yaml_read_word, AT(driver.mount), .words = driver_mounts},
	{"root", yaml_read_path, AT(driver.root), .text = "/"},
	{"libraries", read_prefix, AT(driver.libraries), .text = ""},
	{"nvml", yaml_read_text, AT(driver.nvml), .text = ""},
	{0},
};
static const struct yaml_field container_fields[] = {
	{"mounts", yaml_read_list, AT_LIST(container.mounts, container.n_mounts),
	 .entry = &mount_entry},
	{"env", yaml_read_list, AT_LIST(container.env, container.n_env), .entry = &env_entry},
	{0},
};
static const struct yaml_field metrics_fields[] = {
	{"address", yaml_read_text, AT(metrics_address), .text = ""},
	{0},
};
static const struct yaml_field config_fields[] = {
	{"resourceName", yaml_read_typed, AT(resource_name), .type = &resource,
	 .text = "weir.dev/gpu-share"},
	{"mode", yaml_read_word, AT(gpu.mode), .words = gpu_mode_words},
	{"allocation", yaml_read_word, AT(allocation), .words = allocations},
	{"noRoom", yaml_read_word, AT(no_room), .words = no_rooms},
	{"deviceListStrategy", yaml_read_word, AT(device_list), .words = device_lists},
	{"cdi", yaml_read_section, .fields = cdi_fields},
	{"dra", yaml_read_section, .fields = dra_fields},
	{"logLevel", yaml_read_typed, AT(log_level), .type = &yaml_log_level},
	{"pluginDir", read_plugin_dir, AT(plugin_dir), .text = "/var/lib/kubelet/device-plugins"},
	{"agentSocketDir", yaml_read_path, AT(agent_socket_dir), .text = "/run/weir"},
	{"gpuSockets", yaml_read_bool, AT(gpu_sockets)},
	{"nodeRoot", read_prefix, AT(node_root), .text = ""},
	{"library", yaml_read_section, .fields = library_fields},
	{"preload", yaml_read_section, .fields = preload_fields},
	{"metrics", yaml_read_section, .fields = metrics_fields},
	{"mps", yaml_read_section, .fields = mps_fields},
	{"driver", yaml_read_section, .fields = driver_fields},
	{"container", yaml_read_section, .fields = container_fields},
	{"health", yaml_read_section, AT(health), health_fields},
	{"gpus", yaml_read_list, AT_LIST(gpus, n_gpus), .entry = &gpu_entry},
	{0},
};

void config_deinit(struct config *config)
{
	yaml_free(config_fields, config);
	*config = (struct config){0};
}

/* The chart gives the node's name in the environment. */
static int name_node(struct config *config, const char *file, char *message, size_t message_size)
{
	const char *node = getenv("NODE_NAME");

	if (!config->dra.enabled || *config->dra.node)
		return 0;
	if (!node || !*node) {
		snprintf(message, message_size, "%s: expected `dra.nodeName`, or NODE_NAME", file);
		return -EINVAL;
	}
	free(config->dra.node);
	config->dra.node = strdup(node);
	return config->dra.node ? 0 : error_origin(-ENOMEM);
}

int config_parse(struct config *out, const char *name, const char *text, size_t size, char *message,
		 size_t message_size)
{
	struct config config = {.log_level = LOG_INFO,
				.health = health_defaults,
				.dra = {.shares = SHARES_PER_GPU}};
	int r = yaml_set_texts(config_fields, &config);

	if (r == 0)
		r = yaml_parse(config_fields, &config, name, text, size, message, message_size);
	if (r == 0)
		r = name_node(&config, name, message, message_size);
	config.gpu.shares = SHARES_PER_GPU - (config.dra.enabled ? config.dra.shares : 0);
	if (r < 0)
		config_deinit(&config);
	else
		*out = config;
	return r;
}

int config_init(struct config *config)
{
	char message[1];

	return config_parse(config, "", "", 0, message, sizeof(message));
}

int config_load(struct config *out, const char *path, char **text_out, char *message,
		size_t message_size)
{
	size_t size;
	int r = yaml_load_file(path, CONFIG_FILE_MAX, text_out, &size, message, message_size);

	return r < 0 ? r : config_parse(out, path, *text_out, size, message, message_size);
}

struct config_gpu_settings config_for_gpu(const struct config *config, const struct gpu *gpu)
{
	const struct gpu_traits traits = {gpu->uuid, gpu->index, gpu->product};
	struct config_gpu_settings settings = config->gpu;

	gpu_select_apply(&gpu_entry, config->gpus, config->n_gpus, &traits, &settings);
	return settings;
}
