/* The plugin as a process, end to end: what it answers a kubelet, and how it ends. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "deviceplugin-v1beta1.pb-c.h"
#include "plugin-fixture.h"
#include "weir/base.h"

static void registers_and_lists_all_shares(void **state)
{
	struct plugin *f = *state;

	plugin_start(f);
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

static enum rpc_status allocate(struct plugin *f, char **ids, size_t n,
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
	struct plugin *f = *state;
	cleanup(codec_freep) V1beta1__AllocateResponse *answer = NULL;
	char *ids[100], names[100][64], text[256];

	plugin_start(f);
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
	struct plugin *f = *state;
	V1beta1__AllocateResponse *answer = NULL;
	char *ids[150], names[150][64], text[256];

	plugin_start(f);
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
	struct plugin *f = *state;
	cleanup(codec_freep) V1beta1__AllocateResponse *answer = NULL;
	char *ids[60], names[60][64], text[256];

	plugin_write_config(f, f->kubelet.dir, "noRoom: wait\n");
	plugin_start(f);
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
	struct plugin *f = *state;
	cleanup(codec_freep) V1beta1__AllocateResponse *answer = NULL;
	char *ids[30], names[30][64], text[256], more[64];
	static char page[1 << 14];
	uint16_t port = free_port();

	snprintf(more, sizeof(more), "metrics: {address: \"127.0.0.1:%u\"}\n", port);
	plugin_write_config(f, f->kubelet.dir, more);
	plugin_start(f);
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

/* A mistake in its file, until the file is as before: the metric says so, and registrations stay.
 */
static void keeps_its_configuration(void **state)
{
	static const char good[] = "weir_plugin_config_last_reload_successful 1\n";
	static const char bad[] = "weir_plugin_config_last_reload_successful 0\n";
	struct plugin *f = *state;
	char port_line[64], more[128];
	static char page[1 << 14];
	uint16_t port = free_port();

	snprintf(port_line, sizeof(port_line), "metrics: {address: \"127.0.0.1:%u\"}\n", port);
	plugin_write_config(f, f->kubelet.dir, port_line);
	plugin_start(f);
	f->before = f->kubelet.registrations;
	get(page, sizeof(page), port, "/metrics");
	assert_non_null(strstr(page, good));

	snprintf(more, sizeof(more), "%sresourceName: gpu\n", port_line);
	plugin_write_config(f, f->kubelet.dir, more);
	f->expected_line = "the previous configuration stays in force";
	fake_kubelet_until(&f->kubelet, plugin_log_says);
	get(page, sizeof(page), port, "/metrics");
	assert_non_null(strstr(page, bad));

	plugin_write_config(f, f->kubelet.dir, port_line);
	for (int i = 0; i < 2000 && !strstr(page, good); i++) {
		usleep(10000);
		get(page, sizeof(page), port, "/metrics");
	}
	assert_non_null(strstr(page, good));
	assert_int_equal(f->kubelet.registrations, f->before);
}

static void prefers_the_fullest_gpu_that_fits(void **state)
{
	struct plugin *f = *state;
	V1beta1__ContainerPreferredAllocationRequest container =
		V1BETA1__CONTAINER_PREFERRED_ALLOCATION_REQUEST__INIT;
	V1beta1__ContainerPreferredAllocationRequest *containers[] = {&container};
	V1beta1__PreferredAllocationRequest request = V1BETA1__PREFERRED_ALLOCATION_REQUEST__INIT;
	cleanup(codec_freep) V1beta1__PreferredAllocationResponse *answer = NULL;
	char *ids[140], names[140][64], text[256];

	plugin_start(f);
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
	struct plugin *f = *state;
	const V1beta1__PreStartContainerRequest request =
		V1BETA1__PRE_START_CONTAINER_REQUEST__INIT;
	const ProtobufCMessageDescriptor *type = &v1beta1__pre_start_container_response__descriptor;
	ProtobufCMessage *answer = NULL;
	char text[256];

	plugin_start(f);
	assert_int_equal(fake_kubelet_call(&f->kubelet, "PreStartContainer", &request.base, type,
					   &answer, text),
			 RPC_OK);
	codec_free(answer);
	assert_int_equal(
		fake_kubelet_call(&f->kubelet, "Reboot", &request.base, type, &answer, text),
		RPC_UNIMPLEMENTED);
}

static void stops_on_sigterm_and_removes_its_socket(void **state)
{
	struct plugin *f = *state;

	plugin_start(f);
	assert_int_equal(kill(f->pid, SIGTERM), 0);
	assert_int_equal(plugin_reap(f), 0);
	assert_int_equal(plugin_count_sockets(f), 0);
}

static void refuses_a_bad_config_in_one_line(void **state)
{
	struct plugin *f = *state;

	plugin_write_config(f, f->kubelet.dir, "resourceName: gpu\n");
	plugin_spawn(f);
	assert_int_equal(plugin_reap(f), 2);
	f->expected_line = "config.yaml:3:15: expected the name of an extended resource like "
			   "weir.dev/gpu-share, not `gpu`";
	assert_true(plugin_log_says(&f->kubelet));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, plugin_set_up, plugin_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(registers_and_lists_all_shares),
		TEST(allocates_shares_of_one_gpu),
		TEST(refuses_what_no_gpu_can_give),
		TEST(lets_a_container_without_room_wait),
		TEST(tells_what_it_does),
		TEST(keeps_its_configuration),
		TEST(prefers_the_fullest_gpu_that_fits),
		TEST(answers_pre_start_and_refuses_strangers),
		TEST(stops_on_sigterm_and_removes_its_socket),
		TEST(refuses_a_bad_config_in_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
