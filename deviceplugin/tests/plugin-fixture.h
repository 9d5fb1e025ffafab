/* The plugin as a process, with a fake kubelet that may misbehave and a fake NVML. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "fake-kubelet.h"

#define GPU_A "GPU-aaaaaaaa-0000-0000-0000-000000000001"
#define GPU_B "GPU-bbbbbbbb-0000-0000-0000-000000000002"

struct plugin {
	struct fake_kubelet kubelet;
	pid_t pid;
	char state[96]; /* folder of the following files */
	char gpus[128], config[128], log[128];
	unsigned before; /* an earlier count of registrations */
	const char *expected_line;
};

/* cmocka's: two GPUs and a configuration, and nothing runs yet. */
int plugin_set_up(void **state);
int plugin_tear_down(void **state);

/* Replaces the file at once, as the plugin may read it at any time. */
void plugin_write(const char *path, const char *text);
/* The plugin's configuration: @dir of the kubelet, and @more lines. */
void plugin_write_config(struct plugin *f, const char *dir, const char *more);

void plugin_spawn(struct plugin *f);
/* Returns its exit status. */
int plugin_reap(struct plugin *f);
/* Kubelet and plugin, until they are connected. */
void plugin_start(struct plugin *f);

/* For fake_kubelet_until(). */
bool plugin_has_stream(const struct fake_kubelet *kubelet);
/* Whether there is a registration since `before`, with its stream. */
bool plugin_is_back(const struct fake_kubelet *kubelet);
/* Whether the log has `expected_line`. */
bool plugin_log_says(const struct fake_kubelet *kubelet);

/* Of the plugin in the kubelet's folder. */
unsigned plugin_count_sockets(const struct plugin *f);
