/* What a container gets. The hosts are folders that the tests create. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "allocator.h"
#include "codec.h"
#include "config.h"
#include "container-spec.h"
#include "driver.h"
#include "gpu.h"
#include "weir/base.h"
#include "weir/protocol.h"

#define LIBRARY "/usr/local/lib/weir/" WEIR_VERSION "/libweir.so"

static const struct gpu gpus[] = {
	{.uuid = "GPU-a", .minor = 0},
	{.uuid = "GPU-b", .minor = 1},
};
static const struct grant part = {.n_shares = 30, .n_gpus = 1, .gpus = {1}};
static const struct grant whole = {.n_shares = 200, .n_gpus = 2, .gpus = {0, 1}, .whole = true};

struct fixture {
	char root[32];
	struct config config;
	struct driver driver;
	V1beta1__ContainerAllocateResponse *spec;
};

static void make_file(const struct fixture *f, const char *path, const char *text)
{
	char whole_path[256];

	snprintf(whole_path, sizeof(whole_path), "%s%s", f->root, path);
	for (char *slash = strchr(whole_path + strlen(f->root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(whole_path, 0755);
		*slash = '/';
	}
	FILE *file = fopen(whole_path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->root, "/tmp/weir-host-XXXXXX");
	assert_non_null(mkdtemp(f->root));
	assert_int_equal(config_init(&f->config), 0);
	free(f->config.node_root);
	f->config.node_root = strdup(f->root);
	*state = f;
	return 0;
}

static void unbuild(struct fixture *f)
{
	if (f->spec)
		codec_free(&f->spec->base);
	f->spec = NULL;
	driver_deinit(&f->driver);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	char command[64];

	unbuild(f);
	config_deinit(&f->config);
	snprintf(command, sizeof(command), "rm -rf '%s'", f->root);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

static void make_nodes(const struct fixture *f)
{
	make_file(f, "/dev/nvidia0", "");
	make_file(f, "/dev/nvidia1", "");
	make_file(f, "/dev/nvidiactl", "");
	make_file(f, "/dev/nvidia-uvm", "");
}

static void make_driver(const struct fixture *f, const char *dir)
{
	static const char *const names[] = {
		"libcuda.so",        "libcuda.so.1", "libcuda.so.580.65",
		"libnvidia-ml.so.1", "libGL.so.1",   "libnvidia-ptxjitcompiler.so.1",
	};
	char path[128];

	for (size_t i = 0; i < countof(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		make_file(f, path, "");
	}
}

/* Replaces the specification built before. */
static void build(struct fixture *f, const struct grant *grant)
{
	unbuild(f);
	assert_int_equal(driver_init(&f->driver, &f->config), 0);
	assert_int_equal(container_spec(&f->spec, &f->config, &f->driver, gpus, grant), 0);
}

static const char *env(const struct fixture *f, const char *key)
{
	for (size_t i = 0; i < f->spec->n_envs; i++)
		if (strcmp(f->spec->envs[i]->key, key) == 0)
			return f->spec->envs[i]->value;
	return "(unset)";
}

static const V1beta1__Mount *mounted(const struct fixture *f, const char *container)
{
	for (size_t i = 0; i < f->spec->n_mounts; i++)
		if (strcmp(f->spec->mounts[i]->container_path, container) == 0)
			return f->spec->mounts[i];
	return NULL;
}

static bool has_device(const struct fixture *f, const char *path)
{
	for (size_t i = 0; i < f->spec->n_devices; i++)
		if (strcmp(f->spec->devices[i]->host_path, path) == 0)
			return true;
	return false;
}

static void a_part_gets_libweir_and_the_agent(void **state)
{
	struct fixture *f = *state;

	make_nodes(f);
	build(f, &part);
	assert_string_equal(env(f, "WEIR_GPU"), "GPU-b");
	assert_string_equal(env(f, WEIR_LIMITED_VARIABLE), "1");
	assert_non_null(mounted(f, LIBRARY));
	assert_string_equal(mounted(f, LIBRARY)->host_path, LIBRARY);
	assert_true(mounted(f, LIBRARY)->read_only);
	assert_true(mounted(f, "/usr/local/lib/weir/" WEIR_VERSION "/libweir-nvml.so")->read_only);
	assert_string_equal(mounted(f, "/etc/ld.so.preload")->host_path,
			    "/usr/local/lib/weir/" WEIR_VERSION "/ld.so.preload");
	assert_true(mounted(f, "/run/weir")->read_only);
	assert_string_equal(mounted(f, "/run/weir")->host_path, "/run/weir");
	assert_string_equal(env(f, "CUDA_MPS_PIPE_DIRECTORY"), "(unset)");
	f->config.gpu_sockets = true;
	build(f, &part);
	assert_string_equal(mounted(f, "/run/weir")->host_path, "/run/weir/GPU-b");
}

static void a_part_gets_the_nodes_of_its_gpu(void **state)
{
	struct fixture *f = *state;

	make_nodes(f);
	build(f, &part);
	assert_true(has_device(f, "/dev/nvidia1"));
	assert_false(has_device(f, "/dev/nvidia0"));
	assert_true(has_device(f, "/dev/nvidiactl"));
	assert_true(has_device(f, "/dev/nvidia-uvm"));
	assert_false(has_device(f, "/dev/nvidia-modeset")); /* this host has none */
	assert_string_equal(f->spec->devices[0]->permissions, "rw");
	assert_string_equal(env(f, "NVIDIA_VISIBLE_DEVICES"), "GPU-b");
	assert_string_equal(env(f, "CUDA_VISIBLE_DEVICES"), "(unset)");
}

static void without_nodes_a_variable_selects_the_gpu(void **state)
{
	struct fixture *f = *state;

	build(f, &part);
	assert_int_equal(f->spec->n_devices, 0);
	assert_string_equal(env(f, "CUDA_VISIBLE_DEVICES"), "GPU-b");
}

static void whole_gpus_are_left_alone(void **state)
{
	struct fixture *f = *state;

	make_nodes(f);
	build(f, &whole);
	assert_string_equal(env(f, "NVIDIA_VISIBLE_DEVICES"), "GPU-a,GPU-b");
	assert_string_equal(env(f, "WEIR_GPU"), "(unset)");
	assert_string_equal(env(f, WEIR_LIMITED_VARIABLE), "(unset)");
	assert_true(has_device(f, "/dev/nvidia0"));
	assert_true(has_device(f, "/dev/nvidia1"));
	assert_null(mounted(f, LIBRARY));
	assert_null(mounted(f, "/etc/ld.so.preload"));
	assert_null(mounted(f, "/run/weir"));
}

static void the_driver_is_mounted_where_nobody_else_does(void **state)
{
	struct fixture *f = *state;

	make_nodes(f);
	make_driver(f, DRIVER_DIR_DEBIAN);
	make_file(f, "/usr/bin/nvidia-smi", "");
	build(f, &part);
	const V1beta1__Mount *cuda = mounted(f, "/usr/lib64/libcuda.so.1");
	assert_non_null(cuda);
	assert_string_equal(cuda->host_path, DRIVER_DIR_DEBIAN "/libcuda.so.1");
	assert_true(cuda->read_only);
	assert_non_null(mounted(f, DRIVER_DIR_DEBIAN "/libcuda.so.1"));
	assert_non_null(mounted(f, DRIVER_DIR_DEBIAN "/libnvidia-ptxjitcompiler.so.1"));
	assert_null(mounted(f, DRIVER_DIR_DEBIAN "/libGL.so.1"));
	assert_null(mounted(f, DRIVER_DIR_DEBIAN "/libcuda.so"));
	assert_non_null(mounted(f, "/usr/bin/nvidia-smi"));
	assert_string_equal(env(f, "WEIR_DRIVER"), DRIVER_DIR_DEBIAN "/libcuda.so.1");
	assert_string_equal(env(f, "LD_LIBRARY_PATH"), "(unset)");
}

static void a_dangling_library_is_skipped(void **state)
{
	struct fixture *f = *state;
	char path[128];

	make_driver(f, "/usr/lib64");
	snprintf(path, sizeof(path), "%s/usr/lib64/libnvidia-nvvm.so.4", f->root);
	assert_int_equal(symlink("gone.so", path), 0);
	snprintf(path, sizeof(path), "%s/usr/lib64/libnvidia-cfg.so.1", f->root);
	assert_int_equal(symlink("/usr/lib64/libGL.so.1", path), 0); /* in the host's file system */
	build(f, &part);
	assert_null(mounted(f, "/usr/lib64/libnvidia-nvvm.so.4"));
	assert_non_null(mounted(f, "/usr/lib64/libnvidia-cfg.so.1"));
}

static void the_nvidia_runtime_mounts_the_driver_itself(void **state)
{
	struct fixture *f = *state;

	make_nodes(f);
	make_driver(f, DRIVER_DIR_DEBIAN);
	make_file(f, "/etc/containerd/config.toml",
		  "[plugins.cri.containerd]\n  default_runtime_name  = \"nvidia\"\n");
	build(f, &part);
	assert_null(mounted(f, DRIVER_DIR_DEBIAN "/libcuda.so.1"));
	assert_string_equal(env(f, "WEIR_DRIVER"), "(unset)");
	assert_string_equal(env(f, "NVIDIA_VISIBLE_DEVICES"), "GPU-b");
}

/* As containerd 2 writes it: in single quotes. */
static void the_nvidia_runtime_is_found_with_any_quotes(void **state)
{
	struct fixture *f = *state;

	make_driver(f, DRIVER_DIR_DEBIAN);
	make_file(f, "/etc/containerd/config.toml", "default_runtime_name = 'nvidia'\n");
	build(f, &part);
	assert_null(mounted(f, DRIVER_DIR_DEBIAN "/libcuda.so.1"));
}

static void the_nvidia_runtime_in_a_comment_does_not_count(void **state)
{
	struct fixture *f = *state;

	make_driver(f, DRIVER_DIR_DEBIAN);
	make_file(f, "/etc/containerd/config.toml",
		  "# default_runtime_name = \"nvidia\"\n"
		  "  #default_runtime_name = \"nvidia\"\n"
		  "default_runtime_name = \"runc\"\n");
	build(f, &part);
	assert_non_null(mounted(f, DRIVER_DIR_DEBIAN "/libcuda.so.1"));
}

static void the_config_overrides_the_search(void **state)
{
	struct fixture *f = *state;

	make_driver(f, "/opt/driver");
	make_file(f, "/etc/docker/daemon.json", "{\"default-runtime\": \"nvidia\"}");
	f->config.driver.mount = DRIVER_MOUNT_ALWAYS;
	free(f->config.driver.libraries);
	f->config.driver.libraries = strdup("/opt/driver");
	build(f, &part);
	assert_string_equal(mounted(f, "/usr/lib64/libcuda.so.1")->host_path,
			    "/opt/driver/libcuda.so.1");
}

static void mps_needs_a_running_daemon(void **state)
{
	struct fixture *f = *state;

	f->config.gpu.mode = GPU_MODE_MPS;
	build(f, &part);
	assert_string_equal(env(f, "CUDA_MPS_PIPE_DIRECTORY"), "(unset)");
	/* Of another GPU. */
	make_file(f, "/run/weir-mps/GPU-a/ready", "");
	build(f, &part);
	assert_string_equal(env(f, "CUDA_MPS_PIPE_DIRECTORY"), "(unset)");
	make_file(f, "/run/weir-mps/GPU-b/ready", "");
	build(f, &part);
	assert_string_equal(env(f, "CUDA_MPS_PIPE_DIRECTORY"), "(unset)");
	make_file(f, "/run/weir-mps/GPU-b/client/control", "");
	build(f, &part);
	assert_string_equal(env(f, "CUDA_MPS_PIPE_DIRECTORY"), "/run/weir-mps");
	assert_string_equal(mounted(f, "/run/weir-mps")->host_path, "/run/weir-mps/GPU-b/client");
	assert_true(mounted(f, "/run/weir-mps")->read_only);
}

/* A folder of pipes in every pod would let a pod choose its server. */
static void mps_per_level_mounts_no_pipes(void **state)
{
	struct fixture *f = *state;

	f->config.gpu.mode = GPU_MODE_MPS_PER_LEVEL;
	f->config.mps.required = true;
	make_file(f, "/run/weir-mps/GPU-b/client/control", "");
	make_file(f, "/run/weir-mps/GPU-b/ready", "");
	make_file(f, "/run/weir-mps/GPU-b/level-2/client/control", "");
	make_file(f, "/run/weir-mps/GPU-b/level-2/ready", "");
	build(f, &part);
	assert_string_equal(env(f, "CUDA_MPS_PIPE_DIRECTORY"), "(unset)");
	assert_null(mounted(f, "/run/weir-mps"));
	assert_false(container_spec_lacks_mps(&f->config, &gpus[1]));
}

static void mps_may_be_required(void **state)
{
	struct fixture *f = *state;

	assert_false(container_spec_lacks_mps(&f->config, &gpus[1]));
	f->config.gpu.mode = GPU_MODE_MPS;
	assert_false(container_spec_lacks_mps(&f->config, &gpus[1]));
	f->config.mps.required = true;
	assert_true(container_spec_lacks_mps(&f->config, &gpus[1]));
	make_file(f, "/run/weir-mps/GPU-b/client/control", "");
	make_file(f, "/run/weir-mps/GPU-b/ready", "");
	assert_false(container_spec_lacks_mps(&f->config, &gpus[1]));
}

static void adds_mounts_and_variables_of_the_config(void **state)
{
	struct fixture *f = *state;
	struct config_mount *mount = calloc(1, sizeof(*mount));
	struct config_pair *pair = calloc(1, sizeof(*pair));

	*mount = (struct config_mount){strdup("/sim"), strdup("/opt/sim"), false};
	*pair = (struct config_pair){strdup("SIM"), strdup("1")};
	f->config.container.mounts = mount;
	f->config.container.n_mounts = 1;
	f->config.container.env = pair;
	f->config.container.n_env = 1;
	build(f, &part);
	assert_string_equal(mounted(f, "/opt/sim")->host_path, "/sim");
	assert_false(mounted(f, "/opt/sim")->read_only);
	assert_string_equal(env(f, "SIM"), "1");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_part_gets_libweir_and_the_agent),
		TEST(a_part_gets_the_nodes_of_its_gpu),
		TEST(without_nodes_a_variable_selects_the_gpu),
		TEST(whole_gpus_are_left_alone),
		TEST(the_driver_is_mounted_where_nobody_else_does),
		TEST(a_dangling_library_is_skipped),
		TEST(the_nvidia_runtime_mounts_the_driver_itself),
		TEST(the_nvidia_runtime_is_found_with_any_quotes),
		TEST(the_nvidia_runtime_in_a_comment_does_not_count),
		TEST(the_config_overrides_the_search),
		TEST(mps_needs_a_running_daemon),
		TEST(mps_per_level_mounts_no_pipes),
		TEST(mps_may_be_required),
		TEST(adds_mounts_and_variables_of_the_config),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
