/* The agent's configuration file: its defaults, and a check of every value. */
#pragma once

#include "config/pod-names.h"
#include "policy/policy.h"

#include "weir/gpu-select.h"
#include "weir/health.h"
#include "weir/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONFIG_FILE_MAX     (1u << 20)
#define CONFIG_DURATION_MIN 100000ull /* ns; with shorter quanta the GPU would only switch */
#define CONFIG_DURATION_MAX 3600000000000ull

struct config_kubernetes {
	bool enabled, events, node_labels;
	char *kubeconfig; /* empty: the pod's own credentials */
	char *node;       /* its name in the cluster */
	char *checkpoint; /* the kubelet's, of devices; empty: free shares are not published */
	char *claims;     /* the device plugin's, of resource claims; empty: there are none */
	struct pod_names names;
};

struct config_class {
	char *name; /* of a PriorityClass */
	uint8_t level;
};

struct config_levels {
	uint8_t by_default; /* outside pods, or if the QoS class is unknown */
	uint8_t best_effort, burstable, guaranteed;
	struct config_class *classes;
	size_t n_classes;
	/* Namespaces whose annotations may raise: the level above its class's, weight and memory
	 * above the share's. */
	char **raise;
	size_t n_raise;
};

/* --standalone: the first rule that matches a client gives its level. */
struct config_rule {
	bool has_uid;
	uint32_t uid;
	char *cgroup; /* path, or a prefix that ends with `*`; NULL: any */
	uint8_t level;
	uint32_t share;         /* 0: default */
	uint64_t latency_slo;   /* ns; 0: none */
	uint32_t compute_limit; /* per cent; 0: none */
	uint64_t memory;        /* bytes; 0: none */
	uint32_t yield;         /* policy/yield.h */
	uint32_t min_rate;      /* thousandths; 0: none */
};

enum config_compile_mode {
	COMPILE_AUTO,         /* machine code if the driver accepts it */
	COMPILE_MACHINE_CODE, /* machine code, compiled by weir-compile */
	COMPILE_PTX,          /* PTX, for the driver's own compiler */
	COMPILE_OFF,
};

struct config_compile {
	enum config_compile_mode mode;
	char *program;                /* weir-compile; empty: beside the agent */
	uint32_t helpers;             /* processes at the same time */
	uint32_t memory_mib, seconds; /* limits of each process */
	char *cache_dir;              /* empty: in stateDir */
	uint32_t cache_mib;
};

/* Processes in containers with shares that use a GPU without libweir. */
struct config_unregistered {
	enum unregistered_action {
		UNREGISTERED_IGNORE,
		UNREGISTERED_REPORT,
		UNREGISTERED_KILL, /* report, too */
	} action;
	uint32_t after; /* seconds since it was first seen or last connected */
};

struct config_overruns {
	enum overruns_action {
		OVERRUNS_IGNORE,
		OVERRUNS_REPORT,
		OVERRUNS_KILL, /* report, too */
	} action;
	uint32_t after; /* seconds that a kernel has not left the GPU for others */
};

struct config_mps {
	char *program;   /* nvidia-cuda-mps-control; empty: search */
	char *root;      /* root of the file system that it runs in; empty: ours */
	char *preload;   /* libweir-mps.so in that file system; empty: beside the agent */
	char *dir;       /* with a folder for each GPU */
	bool keep;       /* daemons keep running when the agent ends */
	bool supervisor; /* weir-mps starts the daemons, not the agent */
	bool multi_user; /* a server accepts clients of several users */
	bool required;   /* the agent is not ready while a daemon does not answer */
	uint64_t check;  /* ns between checks of a healthy daemon */
};

/* What an allocation does when the limit allows it and the GPU has no memory left. */
enum memory_full { MEMORY_FULL_FAIL, MEMORY_FULL_WAIT, MEMORY_FULL_DEFAULT };

/* The default memory limit of a container on a GPU. */
struct config_memory {
	enum { MEMORY_NONE, MEMORY_SHARE, MEMORY_BYTES } kind;
	uint64_t bytes; /* of MEMORY_BYTES */
};

/* Settings that an entry of `gpus:` overrides for its GPUs. */
struct config_gpu_settings {
	enum gpu_mode mode;
	bool hardware; /* preemption, where it works */
	struct config_memory memory;
	const struct policy *policy;
	struct policy_settings scheduling;
};

struct config_gpu {
	struct gpu_select select;
	struct config_gpu_settings values, mask;
};

struct config {
	char *socket;
	char *state_dir;
	char *metrics_address; /* empty: none */
	char *control_socket;
	char *nvml; /* path; empty: search the usual places */
	enum log_level log_level;
	uint32_t clients, clients_per_container;
	struct config_kubernetes kubernetes;
	struct config_levels levels;
	struct config_compile compile;
	struct health_settings health;
	struct config_unregistered unregistered;
	enum {
		DISOBEDIENCE_REPORT,
		DISOBEDIENCE_KILL, /* report, too */
	} disobedience;            /* of processes that run although they are held */
	struct config_overruns overruns;
	enum memory_full memory_full;
	uint64_t memory_wait;       /* ns */
	uint32_t memory_overcommit; /* per cent of a GPU that raised limits may add up to */
	struct config_rule *rules;
	size_t n_rules;
	struct config_mps mps;
	struct config_gpu_settings gpu; /* of GPUs without entry */
	struct config_gpu *gpus;
	size_t n_gpus;
};

/* low, normal, high, critical = 0..3. False: no such level. */
bool config_level_parse(const char *name, uint8_t *out);
const char *config_level_name(unsigned level);

/* Each returns 0, or a negative errno and one line `NAME:LINE:COLUMN: what was expected` in
 * @message. @out gets the defaults of what the file leaves out. */
int config_parse(struct config *out, const char *name, const char *text, size_t size, char *message,
		 size_t message_size);
/* @path: NULL: the defaults. */
int config_load(struct config *out, const char *path, char *message, size_t message_size);
void config_deinit(struct config *config);
/* Exchanges what a running agent can change between @config and @next. Writes the other keys that
 * differ to @waiting, separated by commas: they take effect when the agent starts again. */
void config_apply(struct config *config, struct config *next, char *waiting, size_t size);

/* The settings in force for one GPU. */
struct config_gpu_settings config_for_gpu(const struct config *config,
					  const struct gpu_traits *gpu);
