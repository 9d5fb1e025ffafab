/* The plugin as a process, end to end, with a fake kubelet that may misbehave and a fake NVML. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <libgen.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "deviceplugin-v1beta1.pb-c.h"
#include "fake-kubelet.h"
#include "weir/base.h"

#define GPU_A "GPU-aaaaaaaa-0000-0000-0000-000000000001"
#define GPU_B "GPU-bbbbbbbb-0000-0000-0000-000000000002"

struct fixture {
	struct fake_kubelet kubelet; /* first member: the predicates below cast it */
	pid_t plugin;
	char state[96]; /* folder of the following files */
	char gpus[128], config[128], log[128];
	unsigned before; /* an earlier count */
	const char *expected_line;
};

static void write_file(const char *path, const char *text)
{
	char temporary[160];

	/* Atomically: the plugin may read it at any time. */
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	FILE *file = fopen(temporary, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(rename(temporary, path), 0);
}

static void built(char *out, size_t size, const char *name)
{
	char self[512];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_in_range(n, 1, sizeof(self) - 1);
	self[n] = '\0';
	snprintf(out, size, "%.400s/../%s", dirname(self), name);
}

static void spawn(struct fixture *f)
{
	char program[512];

	built(program, sizeof(program), "bin/weir-device-plugin");
	f->plugin = fork();
	assert_true(f->plugin >= 0);
	if (f->plugin == 0) {
		int log = open(f->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
		dup2(log, STDERR_FILENO);
		setenv("FAKE_NVML", f->gpus, 1);
		execl(program, program, "--config", f->config, (char *)NULL);
		_exit(127);
	}
}

/* Returns the plugin's exit status. */
static int reap(struct fixture *f)
{
	int status;

	assert_int_equal(waitpid(f->plugin, &status, 0), f->plugin);
	f->plugin = 0;
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void write_config(struct fixture *f, const char *dir, const char *more)
{
	char text[2048], nvml[512];

	built(nvml, sizeof(nvml), "lib/libfake-nvml.so");
	snprintf(text, sizeof(text),
		 "pluginDir: %s\n"
		 "driver: {mount: never, nvml: '%s'}\n"
		 "%s",
		 dir, nvml, more);
	write_file(f->config, text);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	fake_kubelet_init(&f->kubelet);
	strcpy(f->state, "/tmp/weir-plugin-XXXXXX");
	assert_non_null(mkdtemp(f->state));
	snprintf(f->gpus, sizeof(f->gpus), "%s/gpus", f->state);
	snprintf(f->config, sizeof(f->config), "%s/config.yaml", f->state);
	snprintf(f->log, sizeof(f->log), "%s/log", f->state);
	write_file(f->gpus, GPU_A " 0 1024 ok\n" GPU_B " 1 1024 ok\n");
	write_config(f, f->kubelet.dir, "");
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	char command[128];

	if (f->plugin) {
		kill(f->plugin, SIGKILL);
		waitpid(f->plugin, NULL, 0);
	}
	fake_kubelet_deinit(&f->kubelet);
	snprintf(command, sizeof(command), "rm -rf '%s'", f->state);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

static bool has_stream(const struct fake_kubelet *kubelet)
{
	return kubelet->stream && kubelet->lists;
}

/* True: one more registration than before, with its stream. */
static bool is_back(const struct fake_kubelet *kubelet)
{
	const struct fixture *f = container_of(kubelet, struct fixture, kubelet);

	return kubelet->registrations > f->before && kubelet->stream;
}

static bool log_says(const struct fake_kubelet *kubelet)
{
	const struct fixture *f = container_of(kubelet, struct fixture, kubelet);
	char line[2048];
	bool found = false;
	FILE *file = fopen(f->log, "re");

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = strstr(line, f->expected_line);
	fclose(file);
	return found;
}

static unsigned count_sockets(const struct fixture *f)
{
	char command[256], text[16] = "";

	snprintf(command, sizeof(command), "ls '%s' | grep -c '^weir-.*\\.sock$'", f->kubelet.dir);
	FILE *pipe = popen(command, "re");
	assert_non_null(pipe);
	assert_non_null(fgets(text, sizeof(text), pipe));
	pclose(pipe);
	return (unsigned)atoi(text);
}

static void start_all(struct fixture *f)
{
	fake_kubelet_start(&f->kubelet);
	spawn(f);
	fake_kubelet_until(&f->kubelet, has_stream);
}

static void registers_and_lists_all_shares(void **state)
{
	struct fixture *f = *state;

	start_all(f);
	assert_string_equal(f->kubelet.resource, "weir.dev/gpu-share");
	assert_true(f->kubelet.prefers);
	assert_int_equal(f->kubelet.devices, 200);
	assert_int_equal(f->kubelet.healthy, 200);
	assert_string_equal(f->kubelet.ids[7], GPU_A "::07");
}

/* Names shares @first.. of @gpu. */
static void name_shares(char **out, char (*text)[64], const char *gpu, unsigned first, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		snprintf(text[i], sizeof(text[i]), "%s::%02u", gpu, first + i);
		out[i] = text[i];
	}
}

static enum rpc_status allocate(struct fixture *f, char **ids, size_t n,
				V1beta1__AllocateResponse **out, char *text)
{
	V1beta1__ContainerAllocateRequest container = V1BETA1__CONTAINER_ALLOCATE_REQUEST__INIT;
	V1beta1__ContainerAllocateRequest *containers[] = {&container};
	V1beta1__AllocateRequest request = V1BETA1__ALLOCATE_REQUEST__INIT;
	ProtobufCMessage *answer = NULL;

	container.devices_ids = ids;
	container.n_devices_ids = n;
	request.container_requests = containers;
	request.n_container_requests = 1;
	enum rpc_status status =
		fake_kubelet_call(&f->kubelet, "Allocate", &request.base,
				  &v1beta1__allocate_response__descriptor, &answer, text);
	*out = (V1beta1__AllocateResponse *)answer;
	return status;
}

static void allocates_shares_of_one_gpu(void **state)
{
	struct fixture *f = *state;
	cleanup(codec_freep) V1beta1__AllocateResponse *answer = NULL;
	char *ids[100], names[100][64], text[256];

	start_all(f);
	name_shares(ids, names, GPU_B, 10, 30);
	assert_int_equal(allocate(f, ids, 30, &answer, text), RPC_OK);
	assert_int_equal(answer->n_container_responses, 1);
	const V1beta1__ContainerAllocateResponse *container = answer->container_responses[0];
	bool named = false, preloaded = false;
	for (size_t i = 0; i < container->n_envs; i++)
		named |= strcmp(container->envs[i]->key, "WEIR_GPU") == 0 &&
			 strcmp(container->envs[i]->value, GPU_B) == 0;
	for (size_t i = 0; i < container->n_mounts; i++)
		preloaded |=
			strcmp(container->mounts[i]->container_path, "/etc/ld.so.preload") == 0;
	assert_true(named);
	assert_true(preloaded);
}

static void refuses_what_no_gpu_can_give(void **state)
{
	struct fixture *f = *state;
	V1beta1__AllocateResponse *answer = NULL;
	char *ids[150], names[150][64], text[256];

	start_all(f);
	name_shares(ids, names, GPU_A, 0, 100);
	name_shares(ids + 100, names + 100, GPU_B, 0, 50);
	assert_int_equal(allocate(f, ids, 150, &answer, text), RPC_RESOURCE_EXHAUSTED);
	assert_string_equal(text, "weir.dev/gpu-share: 150 shares do not fit on one GPU (at most "
				  "100, or a multiple of 100 for whole GPUs)");

	name_shares(ids, names, GPU_A, 0, 20);
	name_shares(ids + 20, names + 20, GPU_B, 0, 40);
	assert_int_equal(allocate(f, ids, 60, &answer, text), RPC_RESOURCE_EXHAUSTED);
	assert_non_null(strstr(text, "no GPU of this node had 60 shares free"));

	ids[0] = ids[1];
	assert_int_equal(allocate(f, ids, 2, &answer, text), RPC_INVALID_ARGUMENT);
	assert_non_null(strstr(text, "named twice"));
	ids[0] = (char *)"GPU-somebody-elses::00";
	assert_int_equal(allocate(f, ids, 1, &answer, text), RPC_INVALID_ARGUMENT);
	assert_non_null(strstr(text, "no such device"));
	assert_int_equal(allocate(f, ids, 0, &answer, text), RPC_RESOURCE_EXHAUSTED);
}

/* With `noRoom: wait` the answer has only a mount that cannot be made, and says why. */
static void lets_a_container_without_room_wait(void **state)
{
	struct fixture *f = *state;
	cleanup(codec_freep) V1beta1__AllocateResponse *answer = NULL;
	char *ids[60], names[60][64], text[256];

	write_config(f, f->kubelet.dir, "noRoom: wait\n");
	start_all(f);
	name_shares(ids, names, GPU_A, 0, 20);
	name_shares(ids + 20, names + 20, GPU_B, 0, 40);
	assert_int_equal(allocate(f, ids, 60, &answer, text), RPC_OK);
	const V1beta1__ContainerAllocateResponse *container = answer->container_responses[0];
	assert_int_equal(container->n_envs + container->n_devices + container->n_cdi_devices, 0);
	assert_int_equal(container->n_mounts, 1);
	assert_non_null(strstr(container->mounts[0]->host_path,
			       "/dev/null/weir.dev/gpu-share: no GPU of this node had 60 shares"));
	/* What is not ours is refused as before. */
	cleanup(codec_freep) V1beta1__AllocateResponse *none = NULL;
	ids[0] = ids[1];
	assert_int_equal(allocate(f, ids, 2, &none, text), RPC_INVALID_ARGUMENT);
	assert_int_equal(allocate(f, ids, 0, &none, text), RPC_RESOURCE_EXHAUSTED);
}

/* The answer to GET @path at the plugin's port. */
static void get(char *out, size_t size, uint16_t port, const char *path)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t n = 0;

	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_true(dprintf(fd, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path) > 0);
	for (ssize_t r = 1; r > 0 && n<size - 1; n += r> 0 ? (size_t)r : 0)
		r = read(fd, out + n, size - 1 - n);
	out[n] = '\0';
	close(fd);
}

/* A port that was free a moment ago. */
static uint16_t free_port(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	close(fd);
	return ntohs(address.sin_port);
}

static void tells_what_it_does(void **state)
{
	struct fixture *f = *state;
	cleanup(codec_freep) V1beta1__AllocateResponse *answer = NULL;
	char *ids[30], names[30][64], text[256], more[64];
	static char page[1 << 14];
	uint16_t port = free_port();

	snprintf(more, sizeof(more), "metrics: {address: \"127.0.0.1:%u\"}\n", port);
	write_config(f, f->kubelet.dir, more);
	start_all(f);
	name_shares(ids, names, GPU_B, 0, 30);
	assert_int_equal(allocate(f, ids, 30, &answer, text), RPC_OK);
	get(page, sizeof(page), port, "/metrics");
	assert_non_null(strstr(page, "weir_plugin_registered 1\n"));
	assert_non_null(
		strstr(page, "weir_plugin_shares{gpu=\"" GPU_B "\",healthy=\"true\"} 100\n"));
	assert_non_null(strstr(page, "weir_plugin_allocations_total{result=\"allocated\"} 1\n"));
	get(page, sizeof(page), port, "/readyz");
	assert_non_null(strstr(page, "200 OK"));
}

static void prefers_the_fullest_gpu_that_fits(void **state)
{
	struct fixture *f = *state;
	V1beta1__ContainerPreferredAllocationRequest container =
		V1BETA1__CONTAINER_PREFERRED_ALLOCATION_REQUEST__INIT;
	V1beta1__ContainerPreferredAllocationRequest *containers[] = {&container};
	V1beta1__PreferredAllocationRequest request = V1BETA1__PREFERRED_ALLOCATION_REQUEST__INIT;
	cleanup(codec_freep) V1beta1__PreferredAllocationResponse *answer = NULL;
	char *ids[140], names[140][64], text[256];

	start_all(f);
	name_shares(ids, names, GPU_A, 0, 100);
	name_shares(ids + 100, names + 100, GPU_B, 60, 40);
	container.available_deviceids = ids;
	container.n_available_deviceids = 140;
	container.allocation_size = 25;
	request.container_requests = containers;
	request.n_container_requests = 1;
	assert_int_equal(fake_kubelet_call(&f->kubelet, "GetPreferredAllocation", &request.base,
					   &v1beta1__preferred_allocation_response__descriptor,
					   (ProtobufCMessage **)&answer, text),
			 RPC_OK);
	assert_int_equal(answer->n_container_responses, 1);
	assert_int_equal(answer->container_responses[0]->n_deviceids, 25);
	assert_string_equal(answer->container_responses[0]->deviceids[0], GPU_B "::60");
}

static void answers_pre_start_and_refuses_strangers(void **state)
{
	struct fixture *f = *state;
	const V1beta1__PreStartContainerRequest request =
		V1BETA1__PRE_START_CONTAINER_REQUEST__INIT;
	const ProtobufCMessageDescriptor *type = &v1beta1__pre_start_container_response__descriptor;
	ProtobufCMessage *answer = NULL;
	char text[256];

	start_all(f);
	assert_int_equal(fake_kubelet_call(&f->kubelet, "PreStartContainer", &request.base, type,
					   &answer, text),
			 RPC_OK);
	codec_free(answer);
	assert_int_equal(
		fake_kubelet_call(&f->kubelet, "Reboot", &request.base, type, &answer, text),
		RPC_UNIMPLEMENTED);
}

static void registers_with_a_restarted_kubelet(void **state)
{
	struct fixture *f = *state;
	char old[64];

	start_all(f);
	for (int round = 0; round < 3; round++) {
		snprintf(old, sizeof(old), "%s", f->kubelet.endpoint);
		f->before = f->kubelet.registrations;
		fake_kubelet_stop(&f->kubelet);
		fake_kubelet_start(&f->kubelet);
		fake_kubelet_until(&f->kubelet, is_back);
		assert_string_not_equal(f->kubelet.endpoint, old);
	}
	assert_int_equal(count_sockets(f), 1);
}

static void registers_again_when_its_socket_is_deleted(void **state)
{
	struct fixture *f = *state;
	char path[192];

	start_all(f);
	f->before = f->kubelet.registrations;
	snprintf(path, sizeof(path), "%s/%s", f->kubelet.dir, f->kubelet.endpoint);
	assert_int_equal(unlink(path), 0);
	fake_kubelet_until(&f->kubelet, is_back);
	assert_int_equal(count_sockets(f), 1);
}

/* Kubelets up to 1.36 mistake the late end of an old stream for the end of the new one. */
static void registers_again_when_its_stream_is_ended(void **state)
{
	struct fixture *f = *state;

	start_all(f);
	for (int round = 0; round < 2; round++) {
		f->before = f->kubelet.registrations;
		fake_kubelet_end_stream(&f->kubelet);
		fake_kubelet_until(&f->kubelet, is_back);
	}
}

static void waits_for_a_kubelet_that_is_not_there(void **state)
{
	struct fixture *f = *state;

	spawn(f);
	f->expected_line = "no kubelet at ";
	fake_kubelet_until(&f->kubelet, log_says);
	fake_kubelet_start(&f->kubelet);
	fake_kubelet_until(&f->kubelet, has_stream);
}

static void waits_for_a_directory_that_is_not_there(void **state)
{
	struct fixture *f = *state;

	write_config(f, "/tmp/weir-no-such-directory", "");
	spawn(f);
	f->expected_line = "/tmp/weir-no-such-directory: No such file or directory; is a kubelet";
	fake_kubelet_until(&f->kubelet, log_says);
	assert_int_equal(kill(f->plugin, SIGTERM), 0);
	assert_int_equal(reap(f), 0);
}

static void retries_when_the_kubelet_refuses(void **state)
{
	struct fixture *f = *state;

	f->kubelet.refusal = "the ResourceName \"weir.dev/gpu-share\" is invalid";
	fake_kubelet_start(&f->kubelet);
	spawn(f);
	f->expected_line = "kubelet does not register weir.dev/gpu-share: the ResourceName";
	fake_kubelet_until(&f->kubelet, log_says);
	f->kubelet.refusal = NULL;
	fake_kubelet_until(&f->kubelet, has_stream);
}

static void removes_sockets_of_the_dead_only(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_un dead = {.sun_family = AF_UNIX}, alive = {.sun_family = AF_UNIX};

	fake_kubelet_start(&f->kubelet);
	snprintf(dead.sun_path, sizeof(dead.sun_path), "%s/weir-1-0-0.sock", f->kubelet.dir);
	snprintf(alive.sun_path, sizeof(alive.sun_path), "%s/weir-1-1-0.sock", f->kubelet.dir);
	cleanup(closep) int bound = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cleanup(closep) int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(bound, (struct sockaddr *)&dead, sizeof(dead)), 0);
	assert_int_equal(bind(listening, (struct sockaddr *)&alive, sizeof(alive)), 0);
	assert_int_equal(listen(listening, 1), 0);
	spawn(f);
	fake_kubelet_until(&f->kubelet, has_stream);
	assert_int_equal(access(dead.sun_path, F_OK), -1);
	assert_int_equal(access(alive.sun_path, F_OK), 0);
}

static void registers_without_any_gpu(void **state)
{
	struct fixture *f = *state;

	unlink(f->gpus);
	start_all(f);
	assert_int_equal(f->kubelet.devices, 0);
	f->expected_line = "lists no GPU";
	assert_true(log_says(&f->kubelet));
}

static void registers_without_nvml(void **state)
{
	struct fixture *f = *state;
	char text[256];

	snprintf(text, sizeof(text), "pluginDir: %s\ndriver: {nvml: /nowhere/libnvidia-ml.so.1}\n",
		 f->kubelet.dir);
	write_file(f->config, text);
	start_all(f);
	assert_int_equal(f->kubelet.devices, 0);
	f->expected_line = "no NVML: /nowhere/libnvidia-ml.so.1";
	assert_true(log_says(&f->kubelet));
}

static bool half_healthy(const struct fake_kubelet *kubelet)
{
	return kubelet->devices == 200 && kubelet->healthy == 100;
}

static bool all_healthy(const struct fake_kubelet *kubelet)
{
	return kubelet->devices == 200 && kubelet->healthy == 200;
}

static void reports_lost_and_returned_gpus(void **state)
{
	struct fixture *f = *state;

	start_all(f);
	write_file(f->gpus, GPU_A " 0 1024 ok\n" GPU_B " 1 1024 lost\n");
	fake_kubelet_until(&f->kubelet, half_healthy);
	write_file(f->gpus, GPU_A " 0 1024 ok\n" GPU_B " 1 1024 ok\n");
	fake_kubelet_until(&f->kubelet, all_healthy);
	assert_int_equal(f->kubelet.registrations, 1);
}

/* The errors that NVML reports from now on; NULL: none. */
static void set_errors(struct fixture *f, const char *errors)
{
	char path[160];

	snprintf(path, sizeof(path), "%s.xid", f->gpus);
	if (errors)
		write_file(path, errors);
	else
		assert_int_equal(unlink(path), 0);
}

static void reports_errors_that_count(void **state)
{
	struct fixture *f = *state;

	start_all(f);
	set_errors(f, "0 31\n1 79\n");
	fake_kubelet_until(&f->kubelet, half_healthy);
	f->expected_line = "XID 31 (GPU memory page fault), ignored";
	assert_true(log_says(&f->kubelet));
}

static void reports_recovered_gpus(void **state)
{
	struct fixture *f = *state;

	write_config(f, f->kubelet.dir, "health: {recoverySeconds: 1}\n");
	start_all(f);
	set_errors(f, "0 74\n");
	fake_kubelet_until(&f->kubelet, half_healthy);
	fake_kubelet_until(&f->kubelet, all_healthy);

	/* XID 95 needs a reset. A reset looks like this: the GPU is lost and comes back. */
	set_errors(f, "0 74\n1 95\n");
	fake_kubelet_until(&f->kubelet, half_healthy);
	set_errors(f, NULL);
	f->expected_line = "XID 95 (uncontained memory error), until it is reset";
	assert_true(log_says(&f->kubelet));
	write_file(f->gpus, GPU_A " 0 1024 ok\n" GPU_B " 1 1024 lost\n");
	f->expected_line = "does not answer; ignored";
	fake_kubelet_until(&f->kubelet, log_says);
	write_file(f->gpus, GPU_A " 0 1024 ok\n" GPU_B " 1 1024 ok\n");
	fake_kubelet_until(&f->kubelet, all_healthy);
}

static void ignores_a_mig_gpu(void **state)
{
	struct fixture *f = *state;

	write_file(f->gpus, GPU_A " 0 1024 mig\n" GPU_B " 1 1024 ok\n");
	start_all(f);
	assert_int_equal(f->kubelet.devices, 100);
	assert_string_equal(f->kubelet.ids[0], GPU_B "::00");
}

static bool has_140_devices(const struct fake_kubelet *kubelet)
{
	return is_back(kubelet) && kubelet->devices == 140;
}

static void applies_a_new_config(void **state)
{
	struct fixture *f = *state;

	start_all(f);
	assert_int_equal(f->kubelet.devices, 200);
	f->before = f->kubelet.registrations;
	write_config(f, f->kubelet.dir, "gpus: [{index: 1, shares: 40}]\n");
	fake_kubelet_until(&f->kubelet, has_140_devices);
	f->before = f->kubelet.registrations;
	kill(f->plugin, SIGHUP);
	fake_kubelet_until(&f->kubelet, has_140_devices);
	kill(f->plugin, SIGTERM);
	assert_int_equal(reap(f), 0);
	assert_int_equal(count_sockets(f), 0);
}

static bool half_healthy_again(const struct fake_kubelet *kubelet)
{
	return is_back(kubelet) && half_healthy(kubelet);
}

/* A new configuration does not make an unhealthy or lost GPU healthy. */
static void a_new_config_keeps_the_health(void **state)
{
	struct fixture *f = *state;

	write_config(f, f->kubelet.dir, "health: {recoverySeconds: 1}\n");
	start_all(f);
	set_errors(f, "1 95\n");
	fake_kubelet_until(&f->kubelet, half_healthy);
	set_errors(f, NULL);
	f->before = f->kubelet.registrations;
	kill(f->plugin, SIGHUP);
	fake_kubelet_until(&f->kubelet, half_healthy_again);

	write_file(f->gpus, GPU_A " 0 1024 ok\n" GPU_B " 1 1024 lost\n");
	f->expected_line = "does not answer; ignored";
	fake_kubelet_until(&f->kubelet, log_says);
	f->before = f->kubelet.registrations;
	kill(f->plugin, SIGHUP);
	fake_kubelet_until(&f->kubelet, half_healthy_again);
	write_file(f->gpus, GPU_A " 0 1024 ok\n" GPU_B " 1 1024 ok\n");
	fake_kubelet_until(&f->kubelet, all_healthy);
}

static void keeps_its_config_when_the_new_one_is_wrong(void **state)
{
	struct fixture *f = *state;

	start_all(f);
	f->expected_line =
		"config.yaml:3:7: expected timeslice, mps or mps-per-level, not `both`; the "
		"previous configuration stays in force";
	write_config(f, f->kubelet.dir, "mode: both\n");
	fake_kubelet_until(&f->kubelet, log_says);
	assert_int_equal(f->kubelet.registrations, 1);
	assert_non_null(f->kubelet.stream);
}

static void stops_on_sigterm_and_removes_its_socket(void **state)
{
	struct fixture *f = *state;

	start_all(f);
	assert_int_equal(kill(f->plugin, SIGTERM), 0);
	assert_int_equal(reap(f), 0);
	assert_int_equal(count_sockets(f), 0);
}

static void refuses_a_bad_config_in_one_line(void **state)
{
	struct fixture *f = *state;

	write_config(f, f->kubelet.dir, "resourceName: gpu\n");
	spawn(f);
	assert_int_equal(reap(f), 2);
	f->expected_line = "config.yaml:3:15: expected the name of an extended resource like "
			   "weir.dev/gpu-share, not `gpu`";
	assert_true(log_says(&f->kubelet));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(registers_and_lists_all_shares),
		TEST(allocates_shares_of_one_gpu),
		TEST(refuses_what_no_gpu_can_give),
		TEST(lets_a_container_without_room_wait),
		TEST(tells_what_it_does),
		TEST(prefers_the_fullest_gpu_that_fits),
		TEST(answers_pre_start_and_refuses_strangers),
		TEST(registers_with_a_restarted_kubelet),
		TEST(registers_again_when_its_socket_is_deleted),
		TEST(registers_again_when_its_stream_is_ended),
		TEST(waits_for_a_kubelet_that_is_not_there),
		TEST(waits_for_a_directory_that_is_not_there),
		TEST(retries_when_the_kubelet_refuses),
		TEST(removes_sockets_of_the_dead_only),
		TEST(registers_without_any_gpu),
		TEST(registers_without_nvml),
		TEST(reports_lost_and_returned_gpus),
		TEST(reports_errors_that_count),
		TEST(reports_recovered_gpus),
		TEST(ignores_a_mig_gpu),
		TEST(applies_a_new_config),
		TEST(a_new_config_keeps_the_health),
		TEST(keeps_its_config_when_the_new_one_is_wrong),
		TEST(stops_on_sigterm_and_removes_its_socket),
		TEST(refuses_a_bad_config_in_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
