/* Messages to bytes and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec.h"
#include "deviceplugin-v1beta1.pb-c.h"
#include "weir/base.h"

static const ProtobufCServiceDescriptor *const service = &v1beta1__device_plugin__descriptor;

static void writes_the_kubelets_wire_format(void **state)
{
	/* Field 1 "v1beta1", 2 "e", 3 "r", 4 {2: true}. */
	static const uint8_t expected[] = {0x0a, 7,   'v',  '1', 'b', 'e',  't', 'a',  '1', 0x12,
					   1,    'e', 0x1a, 1,   'r', 0x22, 2,   0x10, 1};
	V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
	V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
	cleanup(bytes_deinit) struct bytes bytes = {0};

	(void)state;
	options.get_preferred_allocation_available = true;
	request.version = (char *)"v1beta1";
	request.endpoint = (char *)"e";
	request.resource_name = (char *)"r";
	request.options = &options;
	assert_int_equal(codec_encode(&bytes, &request.base), 0);
	assert_int_equal(bytes.size, sizeof(expected));
	assert_memory_equal(bytes.data, expected, sizeof(expected));
}

/* NUMA node 0 is an empty message, but the message exists. */
static void keeps_the_first_numa_node(void **state)
{
	static const uint8_t expected[] = {0x1a, 2, 0x0a, 0};
	V1beta1__NUMANode node = V1BETA1__NUMANODE__INIT, *nodes[] = {&node};
	V1beta1__TopologyInfo topology = V1BETA1__TOPOLOGY_INFO__INIT;
	V1beta1__Device device = V1BETA1__DEVICE__INIT;
	cleanup(bytes_deinit) struct bytes bytes = {0};

	(void)state;
	topology.nodes = nodes;
	topology.n_nodes = 1;
	device.topology = &topology;
	assert_int_equal(codec_encode(&bytes, &device.base), 0);
	assert_int_equal(bytes.size, sizeof(expected));
	assert_memory_equal(bytes.data, expected, sizeof(expected));
}

static void reads_what_it_wrote(void **state)
{
	char *ids[] = {(char *)"a", (char *)"b"};
	V1beta1__PreStartContainerRequest request = V1BETA1__PRE_START_CONTAINER_REQUEST__INIT;
	cleanup(bytes_deinit) struct bytes bytes = {0};

	(void)state;
	request.devices_ids = ids;
	request.n_devices_ids = 2;
	assert_int_equal(codec_encode(&bytes, &request.base), 0);
	cleanup(codec_freep) V1beta1__PreStartContainerRequest *read = (void *)codec_decode(
		&v1beta1__pre_start_container_request__descriptor, bytes.data, bytes.size);
	assert_non_null(read);
	assert_int_equal(read->n_devices_ids, 2);
	assert_string_equal(read->devices_ids[1], "b");
}

static void reads_an_empty_message(void **state)
{
	(void)state;
	cleanup(codec_freep) ProtobufCMessage *message =
		codec_decode(&v1beta1__empty__descriptor, NULL, 0);
	assert_non_null(message);
}

static void refuses_a_message_cut_short(void **state)
{
	static const uint8_t bytes[] = {0x0a, 9, 'a'};

	(void)state;
	assert_null(codec_decode(&v1beta1__pre_start_container_request__descriptor, bytes,
				 sizeof(bytes)));
}

/* Two bytes decode to a pair of 40 bytes, and need as much again while decoding. */
static void refuses_a_message_that_blows_up(void **state)
{
	enum { SIZE = 1 << 20 };
	uint8_t *bytes = malloc(SIZE);

	(void)state;
	assert_non_null(bytes);
	for (size_t i = 0; i < SIZE; i += 2) {
		bytes[i] = 0x0a;
		bytes[i + 1] = 0;
	}
	ProtobufCMessage *message =
		codec_decode(&v1beta1__container_allocate_response__descriptor, bytes, SIZE);
	codec_free(message);
	assert_null(message);
	free(bytes);
}

static void finds_methods_by_their_path(void **state)
{
	char path[64];

	(void)state;
	assert_int_equal(service->n_methods, 5);
	for (unsigned i = 0; i < service->n_methods; i++) {
		snprintf(path, sizeof(path), "/v1beta1.DevicePlugin/%s", service->methods[i].name);
		assert_int_equal(codec_method(service, path), (int)i);
	}
	assert_int_equal(codec_method(service, "/v1beta1.DevicePlugin/Allocate"), 3);
}

static void refuses_other_paths(void **state)
{
	static const char *const paths[] = {
		"",
		"/",
		"v1beta1.DevicePlugin/Allocate",
		"/v1beta1.DevicePlugin",
		"/v1beta1.DevicePlugin/",
		"/v1beta1.DevicePlugin/allocate",
		"/v1beta1.DevicePlugin/Allocate2",
		"/v1beta1.DevicePluginX/Allocate",
		"/v1beta1.Registration/Register",
	};

	(void)state;
	for (size_t i = 0; i < countof(paths); i++)
		assert_int_equal(codec_method(service, paths[i]), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_the_kubelets_wire_format),
		cmocka_unit_test(keeps_the_first_numa_node),
		cmocka_unit_test(reads_what_it_wrote),
		cmocka_unit_test(reads_an_empty_message),
		cmocka_unit_test(refuses_a_message_cut_short),
		cmocka_unit_test(refuses_a_message_that_blows_up),
		cmocka_unit_test(finds_methods_by_their_path),
		cmocka_unit_test(refuses_other_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
