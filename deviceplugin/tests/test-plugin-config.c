/* The configuration file: its keys, and the messages about mistakes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config.h"
#include "gpu.h"
#include "weir/base.h"

static int parse(struct config *out, const char *text, char message[256])
{
	return config_parse(out, "f", text, strlen(text), message, 256);
}

static void has_defaults_for_everything(void **state)
{
	cleanup(config_deinit) struct config config = {0};
	char message[256];

	(void)state;
	assert_int_equal(parse(&config, "", message), 0);
	assert_string_equal(config.resource_name, "weir.dev/gpu-share");
	assert_int_equal(config.gpu.mode, GPU_MODE_TIMESLICE);
	assert_int_equal(config.allocation, ALLOCATION_PACK);
	assert_int_equal(config.device_list, DEVICE_LIST_ENVVAR);
	assert_string_equal(config.cdi.dir, "/var/run/cdi");
	assert_string_equal(config.cdi.kind, "weir.dev/gpu");
	assert_string_equal(config.plugin_dir, "/var/lib/kubelet/device-plugins");
	assert_string_equal(config.library_path, "/usr/local/lib/weir/" WEIR_VERSION "/libweir.so");
	assert_string_equal(config.nvml_path,
			    "/usr/local/lib/weir/" WEIR_VERSION "/libweir-nvml.so");
	assert_int_equal(config.health.n_ignored_xids, 0);
	assert_int_equal(config.health.recovery, 60);
	assert_true(config.health.ecc);
	assert_false(config.dra.enabled);
	assert_int_equal(config.gpu.shares, 100);
}

/* Claims get all shares, where nothing else is said, and the resource gets the rest. */
static void divides_shares_between_resource_and_claims(void **state)
{
	static const char text[] = "dra: {enabled: true, nodeName: n, shares: 60}\n"
				   "gpus: [{index: 1, shares: 70}]\n";
	cleanup(config_deinit) struct config config = {0};
	const struct gpu gpus[] = {{.uuid = "GPU-a"}, {.uuid = "GPU-b", .index = 1}};
	char message[256];

	(void)state;
	assert_int_equal(parse(&config, text, message), 0);
	assert_int_equal(config_for_gpu(&config, &gpus[0]).shares, 40);
	assert_int_equal(config_for_gpu(&config, &gpus[1]).shares, 70);
	config_deinit(&config);
	assert_int_equal(parse(&config, "dra: {enabled: true, nodeName: n}", message), 0);
	assert_int_equal(config_for_gpu(&config, &gpus[0]).shares, 0);
}

static void claims_need_the_name_of_the_node(void **state)
{
	cleanup(config_deinit) struct config config = {0};
	char message[256];

	(void)state;
	unsetenv("NODE_NAME");
	assert_int_equal(parse(&config, "dra: {enabled: true}", message), -EINVAL);
	assert_string_equal(message, "f: expected `dra.nodeName`, or NODE_NAME");
	setenv("NODE_NAME", "n7", 1);
	assert_int_equal(parse(&config, "dra: {enabled: true}", message), 0);
	assert_string_equal(config.dra.node, "n7");
	unsetenv("NODE_NAME");
}

static void reads_every_key(void **state)
{
	static const char text[] =
		"resourceName: example.com/slice\n"
		"mode: mps\n"
		"allocation: spread\n"
		"noRoom: wait\n"
		"metrics: {address: \"[::]:9478\"}\n"
		"deviceListStrategy: cdi-annotations\n"
		"cdi: {dir: /cdi, kind: nvidia.com/gpu}\n"
		"logLevel: debug\n"
		"pluginDir: /p\n"
		"agentSocketDir: /a\n"
		"gpuSockets: true\n"
		"nodeRoot: /host/\n"
		"library: {hostPath: /l, nvmlPath: ''}\n"
		"preload: {hostPath: /pre}\n"
		"mps: {dir: /m, required: true}\n"
		"gpus: [{index: 0, shares: 50}, {product: 'A*', mode: timeslice, shares: 0}]\n"
		"driver: {mount: always, root: /run/d, libraries: /libs/, nvml: n}\n"
		"container:\n"
		"  mounts: [{hostPath: /h, containerPath: /c, readOnly: false},\n"
		"           {hostPath: /i, containerPath: /d}]\n"
		"  env: {A: b, C_1: ''}\n"
		"health: {ignoredXids: [1, 2], recoverySeconds: 5, ecc: false}\n";
	cleanup(config_deinit) struct config config = {0};
	char message[256];

	(void)state;
	assert_int_equal(parse(&config, text, message), 0);
	assert_string_equal(config.resource_name, "example.com/slice");
	assert_int_equal(config.gpu.mode, GPU_MODE_MPS);
	assert_int_equal(config.allocation, ALLOCATION_SPREAD);
	assert_int_equal(config.no_room, NO_ROOM_WAIT);
	assert_string_equal(config.metrics_address, "[::]:9478");
	assert_int_equal(config.device_list, DEVICE_LIST_CDI_ANNOTATIONS);
	assert_string_equal(config.cdi.dir, "/cdi");
	assert_string_equal(config.cdi.kind, "nvidia.com/gpu");
	assert_int_equal(config.log_level, LOG_DEBUG);
	assert_string_equal(config.plugin_dir, "/p");
	assert_string_equal(config.agent_socket_dir, "/a");
	assert_true(config.gpu_sockets);
	assert_string_equal(config.node_root, "/host");
	assert_string_equal(config.library_path, "/l");
	assert_string_equal(config.nvml_path, "");
	assert_string_equal(config.preload_path, "/pre");
	assert_string_equal(config.mps.dir, "/m");
	assert_true(config.mps.required);
	const struct gpu gpus[] = {{.uuid = "GPU-a", .index = 0, .product = "A100"},
				   {.uuid = "GPU-b", .index = 1, .product = "A100"},
				   {.uuid = "GPU-c", .index = 2, .product = "H200"}};
	assert_int_equal(config_for_gpu(&config, &gpus[0]).shares, 50);
	assert_int_equal(config_for_gpu(&config, &gpus[0]).mode, GPU_MODE_TIMESLICE);
	assert_int_equal(config_for_gpu(&config, &gpus[1]).shares, 0);
	assert_int_equal(config_for_gpu(&config, &gpus[2]).shares, 100);
	assert_int_equal(config_for_gpu(&config, &gpus[2]).mode, GPU_MODE_MPS);
	assert_int_equal(config.driver.mount, DRIVER_MOUNT_ALWAYS);
	assert_string_equal(config.driver.root, "/run/d");
	assert_string_equal(config.driver.libraries, "/libs");
	assert_string_equal(config.driver.nvml, "n");
	assert_int_equal(config.container.n_mounts, 2);
	assert_false(config.container.mounts[0].read_only);
	assert_true(config.container.mounts[1].read_only);
	assert_string_equal(config.container.mounts[1].container_path, "/d");
	assert_int_equal(config.container.n_env, 2);
	assert_string_equal(config.container.env[1].key, "C_1");
	assert_int_equal(config.health.n_ignored_xids, 2);
	assert_int_equal(config.health.ignored_xids[1], 2);
	assert_int_equal(config.health.recovery, 5);
	assert_false(config.health.ecc);
}

static void reports_where_a_mistake_is(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"modes: mps\n", "f:1:1: unknown key `modes`"},
		{"mode: shared\n", "f:1:7: expected timeslice, mps or mps-per-level, not `shared`"},
		{"gpus: [{index: 0, shares: 101}]\n", "f:1:27: expected a number from 0 to 100"},
		{"gpus: [{shares: 1}]\n",
		 "f:1:8: expected `uuid`, `index` or `product` in this entry"},
		{"driver:\n  mount: yes\n", "f:2:10: expected auto, always or never, not `yes`"},
		{"pluginDir: plugins\n", "f:1:12: expected an absolute path"},
		{"pluginDir: /1234567890123456789012345678901234567890123456789012345678901234\n",
		 "f:1:12: expected a path of at most 64 bytes"},
		{"container: {mounts: [{hostPath: /h}]}\n",
		 "f:1:22: expected `hostPath` and `containerPath` in this mount"},
		{"container: {env: {1A: b}}\n",
		 "f:1:19: expected the name of an environment variable"},
		{"health: {ignoredXids: [0]}\n", "f:1:24: expected a number from 1 to 100000"},
		{"logLevel: loud\n", "f:1:11: expected error, warning, info or debug, not `loud`"},
		{"library: [a]\n", "f:1:10: expected a mapping"},
		{"allocation: packed\n", "f:1:13: expected pack or spread, not `packed`"},
		{"deviceListStrategy: cdi\n",
		 "f:1:21: expected envvar, cdi-cri or cdi-annotations, not `cdi`"},
		{"cdi: {kind: gpu}\n", "f:1:13: expected a CDI kind like weir.dev/gpu, not `gpu`"},
	};

	(void)state;
	for (size_t i = 0; i < countof(cases); i++) {
		cleanup(config_deinit) struct config config = {0};
		char message[256] = "";
		assert_int_equal(parse(&config, cases[i].text, message), -22);
		assert_string_equal(message, cases[i].message);
	}
}

static void reports_a_missing_file(void **state)
{
	struct config config;
	char message[256], *text = NULL;

	(void)state;
	assert_true(config_load(&config, "/nowhere/c.yaml", &text, message, sizeof(message)) < 0);
	assert_string_equal(message, "/nowhere/c.yaml: No such file or directory");
	assert_true(config_load(&config, "/", &text, message, sizeof(message)) < 0);
	assert_string_equal(message, "/: Is a directory");
	assert_null(text);
}

static void knows_names_of_extended_resources(void **state)
{
	static const char *const good[] = {"weir.dev/gpu-share", "a/b", "x.y.z/A_b.c-d"};
	static const char *const bad[] = {
		"",
		"gpu",
		"/gpu",
		"weir.dev/",
		"weir.dev/-a",
		"weir.dev/a/b",
		"Weir.dev/a",
		"weir..dev/a",
		"-weir.dev/a",
		"requests.weir.dev/a",
		"kubernetes.io/gpu",
		"x.kubernetes.io/gpu",
		"weir.dev/a b",
		"weir.dev/1234567890123456789012345678901234567890123456789012345678901234",
	};

	(void)state;
	for (size_t i = 0; i < countof(good); i++)
		assert_true(config_resource_name_valid(good[i]));
	for (size_t i = 0; i < countof(bad); i++)
		assert_false(config_resource_name_valid(bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_defaults_for_everything),
		cmocka_unit_test(divides_shares_between_resource_and_claims),
		cmocka_unit_test(claims_need_the_name_of_the_node),
		cmocka_unit_test(reads_every_key),
		cmocka_unit_test(reports_where_a_mistake_is),
		cmocka_unit_test(reports_a_missing_file),
		cmocka_unit_test(knows_names_of_extended_resources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
