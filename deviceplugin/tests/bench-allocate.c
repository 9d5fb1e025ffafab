/* Measures Allocate at the kubelet's end of the socket, with a plugin process and the GPUs of
 * $BENCH_NVML. Prints one line of JSON. */
#include "fake-kubelet.h"

#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "deviceplugin-v1beta1.pb-c.h"
#include "weir/base.h"

#define ROUNDS 2000
#define SHARES 10

static double milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void built(char *out, size_t size, const char *name)
{
	char self[512];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		abort();
	self[n] = '\0';
	snprintf(out, size, "%.400s/../%s", dirname(self), name);
}

static pid_t start_plugin(const char *dir)
{
	char program[512], config[128];

	built(program, sizeof(program), "bin/weir-device-plugin");
	snprintf(config, sizeof(config), "%s/config.yaml", dir);
	FILE *file = fopen(config, "we");
	if (!file)
		abort();
	fprintf(file, "pluginDir: %s\nlogLevel: error\ndriver: {mount: never, nvml: '%s'}\n", dir,
		getenv("BENCH_NVML"));
	fclose(file);
	pid_t pid = fork();
	if (pid == 0) {
		execl(program, program, "--config", config, (char *)NULL);
		_exit(127);
	}
	return pid;
}

static bool has_list(const struct fake_kubelet *kubelet)
{
	return kubelet->stream && kubelet->lists;
}

/* ms */
static double allocate(struct fake_kubelet *kubelet, unsigned first)
{
	V1beta1__ContainerAllocateRequest container = V1BETA1__CONTAINER_ALLOCATE_REQUEST__INIT;
	V1beta1__ContainerAllocateRequest *containers[] = {&container};
	V1beta1__AllocateRequest request = V1BETA1__ALLOCATE_REQUEST__INIT;
	cleanup(codec_freep) ProtobufCMessage *answer = NULL;
	char names[SHARES][64], *ids[SHARES], text[256];

	/* GPU::SHARE */
	int n = (int)(strstr(kubelet->ids[0], "::") - kubelet->ids[0]);
	for (unsigned i = 0; i < SHARES; i++) {
		snprintf(names[i], sizeof(names[i]), "%.*s::%02u", n, kubelet->ids[0], first + i);
		ids[i] = names[i];
	}
	container.devices_ids = ids;
	container.n_devices_ids = SHARES;
	request.container_requests = containers;
	request.n_container_requests = 1;
	double began = milliseconds();
	if (fake_kubelet_call(kubelet, "Allocate", &request.base,
			      &v1beta1__allocate_response__descriptor, &answer, text) != RPC_OK) {
		fprintf(stderr, "bench-allocate: %s: %s\n", names[0], text);
		exit(1);
	}
	return milliseconds() - began;
}

int main(void)
{
	static double took[ROUNDS];
	struct fake_kubelet kubelet;

	if (!getenv("BENCH_NVML"))
		return 2;
	fake_kubelet_init(&kubelet);
	fake_kubelet_start(&kubelet);
	pid_t plugin = start_plugin(kubelet.dir);
	fake_kubelet_until(&kubelet, has_list);
	for (unsigned i = 0; i < ROUNDS; i++)
		took[i] = allocate(&kubelet, i % (100 / SHARES) * SHARES);
	qsort(took, ROUNDS, sizeof(*took), compare);
	printf("{\"devices\": %u, \"n\": %d, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": "
	       "%.3f}\n",
	       kubelet.devices, ROUNDS, took[ROUNDS / 2], took[ROUNDS * 99 / 100],
	       took[ROUNDS - 1]);
	kill(plugin, SIGTERM);
	waitpid(plugin, NULL, 0);
	fake_kubelet_deinit(&kubelet);
	return 0;
}
