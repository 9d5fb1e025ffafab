#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cdi.h"
#include "weir/base.h"
#include "weir/error.h"
#include "weir/yaml.h"

#define HOST_DIR       "/usr/local/lib/weir/" WEIR_VERSION
#define PLUGIN_DIR_MAX 64u /* so that the path of a socket in it fits */

/* Letters, digits, and @inner between them. */
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

/* A DNS name in lower case, which still is one with "requests." before it, as in a quota. */
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

static int read_resource(struct yaml_file *file, const yaml_node_t *value,
			 const struct yaml_field *field, void *target)
{
	const char *text = yaml_scalar(file, value, "a resource name");

	if (!text)
		return -EINVAL;
	if (!config_resource_name_valid(text))
		return yaml_fail(file, value,
				 "expected the name of an extended resource like "
				 "weir.dev/gpu-share, not `%s`",
				 text);
	return yaml_read_text(file, value, field, target);
}

static const char *const allocations[] = {
	[ALLOCATION_PACK] = "pack", [ALLOCATION_SPREAD] = "spread", NULL};
static const char *const device_lists[] = {[DEVICE_LIST_ENVVAR] = "envvar",
					   [DEVICE_LIST_CDI_CRI] = "cdi-cri",
					   [DEVICE_LIST_CDI_ANNOTATIONS] = "cdi-annotations",
					   NULL};
static const char *const driver_mounts[] = {[DRIVER_MOUNT_AUTO] = "auto",
					    [DRIVER_MOUNT_ALWAYS] = "always",
					    [DRIVER_MOUNT_NEVER] = "never",
					    NULL};

static int read_kind(struct yaml_file *file, const yaml_node_t *value,
		     const struct yaml_field *field, void *target)
{
	const char *text = yaml_scalar(file, value, "a CDI kind");

	if (!text)
		return -EINVAL;
	if (!cdi_kind_valid(text))
		return yaml_fail(file, value, "expected a CDI kind like weir.dev/gpu, not `%s`",
				 text);
	return yaml_read_text(file, value, field, target);
}

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

/* A path, or nothing. Slashes at its end go, so that "/" is nothing, too. */
static int read_prefix(struct yaml_file *file, const yaml_node_t *value,
		       const struct yaml_field *field, void *target)
{
	const char *text = yaml_scalar(file, value, "a path");

	if (!text)
		return -EINVAL;
	if (!*text)
		return yaml_read_text(file, value, field, target);
	int r = yaml_read_path(file, value, field, target);
	if (r < 0)
		return r;
	char *path = *(char **)target;
	for (size_t n = strlen(path); n && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	return 0;
}

static const struct yaml_field mount_fields[] = {
	{"hostPath", yaml_read_path, offsetof(struct config_mount, host_path)},
	{"containerPath", yaml_read_path, offsetof(struct config_mount, container_path)},
	{"readOnly", yaml_read_bool, offsetof(struct config_mount, read_only)},
	{0},
};

static int read_mounts(struct yaml_file *file, const yaml_node_t *value,
		       const struct yaml_field *field, void *target)
{
	static const struct yaml_field mount = {.fields = mount_fields};
	struct config *config = target;
	int r = yaml_new_entries(file, value, YAML_SEQUENCE_NODE, &config->container.mounts,
				 &config->container.n_mounts, sizeof(*config->container.mounts));

	(void)field;
	for (size_t i = 0; i < config->container.n_mounts && r == 0; i++) {
		const yaml_node_t *node = yaml_item(file, value, i);
		struct config_mount *entry = &config->container.mounts[i];
		entry->read_only = true;
		r = yaml_read_section(file, node, &mount, entry);
		if (r == 0 && (!entry->host_path || !entry->container_path))
			r = yaml_fail(file, node,
				      "expected `hostPath` and `containerPath` in this mount");
	}
	return r;
}

static bool is_env_name(const char *text)
{
	return *text && !(*text >= '0' && *text <= '9') &&
	       text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				 "0123456789_")] == '\0';
}

static int read_env(struct yaml_file *file, const yaml_node_t *value,
		    const struct yaml_field *field, void *target)
{
	struct config *config = target;
	int r = yaml_new_entries(file, value, YAML_MAPPING_NODE, &config->container.env,
				 &config->container.n_env, sizeof(*config->container.env));

	for (size_t i = 0; i < config->container.n_env && r == 0; i++) {
		const yaml_node_t *key, *text = yaml_pair(file, value, i, &key);
		r = yaml_read_text(file, key, field, &config->container.env[i].key);
		if (r == 0 && !is_env_name(config->container.env[i].key))
			r = yaml_fail(file, key, "expected the name of an environment variable");
		if (r == 0)
			r = yaml_read_text(file, text, field, &config->container.env[i].value);
	}
	return r;
}

#define AT(member) offsetof(struct config, member)

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
	{"kind", read_kind, AT(cdi.kind), .text = "weir.dev/gpu"},
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
	{"mounts", read_mounts, 0},
	{"env", read_env, 0},
	{0},
};
static const struct yaml_field config_fields[] = {
	{"resourceName", read_resource, AT(resource_name), .text = "weir.dev/gpu-share"},
	{"mode", yaml_read_word, AT(mode), .words = gpu_mode_words},
	{"allocation", yaml_read_word, AT(allocation), .words = allocations},
	{"deviceListStrategy", yaml_read_word, AT(device_list), .words = device_lists},
	{"cdi", yaml_read_section, 0, cdi_fields},
	{"logLevel", yaml_read_log_level, AT(log_level)},
	{"pluginDir", read_plugin_dir, AT(plugin_dir), .text = "/var/lib/kubelet/device-plugins"},
	{"agentSocketDir", yaml_read_path, AT(agent_socket_dir), .text = "/run/weir"},
	{"gpuSockets", yaml_read_bool, AT(gpu_sockets)},
	{"nodeRoot", read_prefix, AT(node_root), .text = ""},
	{"library", yaml_read_section, 0, library_fields},
	{"preload", yaml_read_section, 0, preload_fields},
	{"mps", yaml_read_section, 0, mps_fields},
	{"driver", yaml_read_section, 0, driver_fields},
	{"container", yaml_read_section, 0, container_fields},
	{"health", yaml_read_section, AT(health), health_fields},
	{"gpus", config_read_gpus, 0},
	{0},
};

int config_init(struct config *config)
{
	*config = (struct config){.log_level = LOG_INFO, .health = health_defaults};
	int r = yaml_set_texts(config_fields, config);
	if (r < 0)
		config_deinit(config);
	return r;
}

void config_deinit(struct config *config)
{
	yaml_free_texts(config_fields, config);
	for (size_t i = 0; i < config->container.n_mounts; i++) {
		free(config->container.mounts[i].host_path);
		free(config->container.mounts[i].container_path);
	}
	for (size_t i = 0; i < config->container.n_env; i++) {
		free(config->container.env[i].key);
		free(config->container.env[i].value);
	}
	free(config->container.mounts);
	free(config->container.env);
	config_free_gpus(config->gpus, config->n_gpus);
	*config = (struct config){0};
}

int config_parse(struct config *out, const char *name, const char *text, size_t size, char *message,
		 size_t message_size)
{
	struct yaml_file file = {0};
	struct config config;

	int r = config_init(&config);
	if (r < 0)
		return r;
	r = yaml_file_init(&file, name, text, size, message, message_size);
	if (r == 0)
		r = yaml_read(&file, config_fields, &config);
	yaml_file_deinit(&file);
	if (r < 0) {
		config_deinit(&config);
		return r;
	}
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
