/* The plugin's configuration file: its defaults, and a check of every value. README.md has the
 * keys. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir/gpu-select.h"
#include "weir/health.h"
#include "weir/log.h"

#define CONFIG_FILE_MAX (1u << 20)
#define CDI_KIND_MAX    128u /* with NUL */

/* How a container gets its GPUs: by device nodes and NVIDIA_VISIBLE_DEVICES, or by CDI. */
enum device_list_strategy { DEVICE_LIST_ENVVAR, DEVICE_LIST_CDI_CRI, DEVICE_LIST_CDI_ANNOTATIONS };
/* Parts of GPUs: on as few GPUs as possible, or spread over all. */
enum allocation_strategy { ALLOCATION_PACK, ALLOCATION_SPREAD };
/* A container for which no GPU has room: its pod fails, or its start does until the pod is
 * replaced. */
enum no_room { NO_ROOM_FAIL, NO_ROOM_WAIT };
enum driver_mount { DRIVER_MOUNT_AUTO, DRIVER_MOUNT_ALWAYS, DRIVER_MOUNT_NEVER };

struct config_mount {
	char *host_path;
	char *container_path;
	bool read_only;
};

struct config_pair {
	char *key;
	char *value;
};

/* Settings that an entry of `gpus:` overrides for its GPUs. */
struct config_gpu_settings {
	enum gpu_mode mode;
	uint32_t shares; /* offered as devices of the resource, 0..100 */
};

struct config_gpu {
	struct gpu_select select;
	struct config_gpu_settings values, mask;
};

struct config {
	char *resource_name;
	enum allocation_strategy allocation;
	enum no_room no_room;
	enum device_list_strategy device_list;
	enum log_level log_level;
	char *plugin_dir;       /* the kubelet's, in this process's file system */
	char *agent_socket_dir; /* on the host */
	bool gpu_sockets;       /* containers get only the folder of their GPU in it */
	struct {
		char *dir;     /* the agent's, on the host, with a folder for each GPU */
		bool required; /* refuse containers while the GPU's daemon does not answer */
	} mps;
	char *metrics_address; /* of /metrics and /readyz; empty: none */
	char *node_root;       /* the host's root in this process's file system; empty: "/" */
	char *library_path;    /* on the host, and in containers */
	char *nvml_path;       /* the same for the NVML shim; empty: none */
	char *preload_path;    /* on the host */
	struct {
		char *dir;  /* of CDI specifications, in this process's file system */
		char *kind; /* vendor/class */
	} cdi;
	struct {
		bool enabled;
		uint32_t shares; /* of each GPU for claims, where gpus: says nothing else */
		char *node;      /* its name in the cluster */
		char *kubeconfig;
		char *registry_dir;  /* the kubelet's, as the kubelet sees it, too */
		char *state_dir;     /* has the file of prepared claims */
		char *pod_resources; /* the kubelet's socket; empty: no pod has shares */
	} dra;
	struct {
		enum driver_mount mount;
		char *root;      /* on the host */
		char *libraries; /* folder on the host; empty: search under root */
		char *nvml;      /* library, in this process's file system; empty: search */
	} driver;
	struct {
		struct config_mount *mounts;
		size_t n_mounts;
		struct config_pair *env;
		size_t n_env;
	} container;
	struct health_settings health;
	struct config_gpu_settings gpu; /* of GPUs without entry */
	struct config_gpu *gpus;
	size_t n_gpus;
};

/* Defaults only. 0 or -ENOMEM. */
int config_init(struct config *config);
/* Each returns 0, or a negative errno and one line `NAME:LINE:COLUMN: what was expected` in
 * @message. @out gets the defaults of what the file leaves out. */
int config_parse(struct config *out, const char *name, const char *text, size_t size, char *message,
		 size_t message_size);
/* @text_out: a NULL that gets the file's text, for free(), even if the configuration is wrong. */
int config_load(struct config *out, const char *path, char **text_out, char *message,
		size_t message_size);
void config_deinit(struct config *config);

struct gpu;
/* The settings in force for one GPU. */
struct config_gpu_settings config_for_gpu(const struct config *config, const struct gpu *gpu);

/* Vendor/class by the specification of CDI. */
bool config_cdi_kind_valid(const char *kind);
/* Whether Weir writes the specification of its kind, as its vendor. */
bool config_cdi_is_ours(const struct config *config);
/* By the kubelet's rules for extended resources. */
bool config_resource_name_valid(const char *name);
