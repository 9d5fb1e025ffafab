/* The CDI specification, checked by the rules of its schema, and the device names in answers. */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
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
#include "cdi.h"
#include "codec.h"
#include "config.h"
#include "container-spec.h"
#include "driver.h"
#include "gpu.h"
#include "weir/base.h"

static const struct gpu gpus[] = {
	{.uuid = "GPU-a1b2", .minor = 0},
	{.uuid = "GPU-\"odd\\", .minor = 7}, /* no node; text that JSON must escape */
};
static const struct grant part = {.n_shares = 30, .n_gpus = 1, .gpus = {0}};
static const struct grant both = {.n_shares = 200, .n_gpus = 2, .gpus = {0, 1}, .whole = true};

struct fixture {
	char root[32];
	struct config config;
	struct driver driver;
	char *text;
	cJSON *spec;
	V1beta1__ContainerAllocateResponse *answer;
};

static void make(const struct fixture *f, const char *name)
{
	char command[256];

	snprintf(command, sizeof(command), "mkdir -p '%s/%s' && rmdir '%s/%s' && : > '%s/%s'",
		 f->root, name, f->root, name, f->root, name);
	assert_int_equal(system(command), 0);
}

static void replace_text(char **field, const char *format, const char *value)
{
	free(*field);
	assert_true(asprintf(field, format, value) > 0);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->root, "/tmp/weir-cdi-XXXXXX");
	assert_non_null(mkdtemp(f->root));
	assert_int_equal(config_init(&f->config), 0);
	replace_text(&f->config.node_root, "%s", f->root);
	replace_text(&f->config.cdi.dir, "%s/cdi", f->root);
	f->config.device_list = DEVICE_LIST_CDI_CRI;
	make(f, "dev/nvidia0");
	make(f, "dev/nvidiactl");
	make(f, "dev/nvidia-uvm");
	make(f, "usr/lib64/libcuda.so.1");
	make(f, "usr/bin/nvidia-smi");
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	char command[64];

	if (f->answer)
		codec_free(&f->answer->base);
	cJSON_Delete(f->spec);
	free(f->text);
	driver_deinit(&f->driver);
	config_deinit(&f->config);
	snprintf(command, sizeof(command), "rm -rf '%s'", f->root);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

static void build(struct fixture *f)
{
	assert_int_equal(driver_init(&f->driver, &f->config), 0);
	assert_int_equal(cdi_format(&f->text, &f->config, &f->driver, gpus, countof(gpus)), 0);
	f->spec = cJSON_ParseWithOpts(f->text, NULL, true);
	assert_non_null(f->spec);
}

/* The schema: optional and required members of an object, and their types. */
struct rule {
	const char *name;
	bool required;
	void (*check)(const cJSON *value);
};

static void check_object(const cJSON *object, const struct rule *rules)
{
	const cJSON *member;

	assert_true(cJSON_IsObject(object));
	cJSON_ArrayForEach(member, object)
	{
		const struct rule *rule = rules;
		while (rule->name && strcmp(rule->name, member->string) != 0)
			rule++;
		if (!rule->name)
			fail_msg("the schema knows no `%s`", member->string);
		rule->check(member);
	}
	for (; rules->name; rules++)
		if (rules->required && !cJSON_GetObjectItemCaseSensitive(object, rules->name))
			fail_msg("the schema wants `%s`", rules->name);
}

static void check_each(const cJSON *array, void (*check)(const cJSON *value))
{
	const cJSON *entry;

	assert_true(cJSON_IsArray(array));
	cJSON_ArrayForEach(entry, array)
	{
		check(entry);
	}
}

static void check_path(const cJSON *value)
{
	assert_true(cJSON_IsString(value) && value->valuestring[0] == '/');
}

static void check_version(const cJSON *value)
{
	unsigned major, minor, patch;
	char rest;

	assert_true(cJSON_IsString(value));
	assert_int_equal(sscanf(value->valuestring, "%u.%u.%u%c", &major, &minor, &patch, &rest),
			 3);
}

static void check_kind(const cJSON *value)
{
	assert_true(cJSON_IsString(value) && config_cdi_kind_valid(value->valuestring));
}

static void check_env(const cJSON *value)
{
	const char *equals = cJSON_IsString(value) ? strchr(value->valuestring, '=') : NULL;

	assert_true(equals && equals != value->valuestring);
}

static void check_envs(const cJSON *value)
{
	check_each(value, check_env);
}

static void check_permissions(const cJSON *value)
{
	assert_true(cJSON_IsString(value));
	assert_int_equal(strspn(value->valuestring, "rwm"), strlen(value->valuestring));
}

static void check_node(const cJSON *value)
{
	static const struct rule rules[] = {
		{"path", true, check_path},
		{"hostPath", false, check_path},
		{"permissions", false, check_permissions},
		{0},
	};

	check_object(value, rules);
}

static void check_nodes(const cJSON *value)
{
	check_each(value, check_node);
}

static void check_option(const cJSON *value)
{
	assert_true(cJSON_IsString(value) && value->valuestring[0]);
}

static void check_options(const cJSON *value)
{
	check_each(value, check_option);
}

static void check_mount(const cJSON *value)
{
	static const struct rule rules[] = {
		{"hostPath", true, check_path},
		{"containerPath", true, check_path},
		{"options", false, check_options},
		{0},
	};

	check_object(value, rules);
}

static void check_mounts(const cJSON *value)
{
	check_each(value, check_mount);
}

static void check_edits(const cJSON *value)
{
	static const struct rule rules[] = {
		{"env", false, check_envs},
		{"deviceNodes", false, check_nodes},
		{"mounts", false, check_mounts},
		{0},
	};

	check_object(value, rules);
}

/* Container runtimes refuse a device without edits. */
static void check_device_edits(const cJSON *value)
{
	check_edits(value);
	assert_true(cJSON_GetArraySize(value) > 0);
}

static void check_text(const cJSON *value)
{
	assert_true(cJSON_IsString(value) && value->valuestring[0]);
}

static void check_device(const cJSON *value)
{
	static const struct rule rules[] = {
		{"name", true, check_text},
		{"containerEdits", true, check_device_edits},
		{0},
	};

	check_object(value, rules);
}

static void check_devices(const cJSON *value)
{
	check_each(value, check_device);
	assert_true(cJSON_GetArraySize(value) > 0);
}

static void keeps_to_the_schema(void **state)
{
	static const struct rule rules[] = {
		{"cdiVersion", true, check_version},
		{"kind", true, check_kind},
		{"devices", true, check_devices},
		{"containerEdits", false, check_edits},
		{0},
	};
	struct fixture *f = *state;

	build(f);
	check_object(f->spec, rules);
}

static const cJSON *at(const cJSON *value, const char *name)
{
	value = cJSON_GetObjectItemCaseSensitive(value, name);
	assert_non_null(value);
	return value;
}

static const char *text_at(const cJSON *array, int i, const char *name)
{
	return cJSON_GetStringValue(at(cJSON_GetArrayItem(array, i), name));
}

static void a_device_has_its_gpus_node(void **state)
{
	struct fixture *f = *state;

	build(f);
	const cJSON *devices = at(f->spec, "devices");
	assert_int_equal(cJSON_GetArraySize(devices), 2);
	assert_string_equal(text_at(devices, 0, "name"), "GPU-a1b2");
	const cJSON *edits = at(cJSON_GetArrayItem(devices, 0), "containerEdits");
	assert_string_equal(text_at(at(edits, "deviceNodes"), 0, "path"), "/dev/nvidia0");
	assert_string_equal(text_at(devices, 1, "name"), "GPU-\"odd\\");
	edits = at(cJSON_GetArrayItem(devices, 1), "containerEdits");
	assert_null(cJSON_GetObjectItemCaseSensitive(edits, "deviceNodes"));
}

static void all_have_what_the_driver_needs(void **state)
{
	struct fixture *f = *state;

	build(f);
	const cJSON *edits = at(f->spec, "containerEdits");
	assert_int_equal(cJSON_GetArraySize(at(edits, "deviceNodes")), 2);
	assert_string_equal(text_at(at(edits, "deviceNodes"), 1, "path"), "/dev/nvidia-uvm");
	const cJSON *mounts = at(edits, "mounts");
	assert_int_equal(cJSON_GetArraySize(mounts), 3); /* in two folders, and nvidia-smi */
	assert_string_equal(text_at(mounts, 0, "hostPath"), "/usr/lib64/libcuda.so.1");
	assert_string_equal(text_at(mounts, 0, "containerPath"), DRIVER_DIR_DEBIAN "/libcuda.so.1");
}

static void the_driver_is_omitted_if_the_plugin_does_not_mount_it(void **state)
{
	struct fixture *f = *state;

	f->config.driver.mount = DRIVER_MOUNT_NEVER;
	build(f);
	assert_int_equal(cJSON_GetArraySize(at(at(f->spec, "containerEdits"), "mounts")), 0);
}

static void answer(struct fixture *f, const struct grant *grant)
{
	build(f);
	assert_int_equal(container_spec(&f->answer, &f->config, &f->driver, gpus, grant), 0);
}

static bool has_env(const struct fixture *f, const char *key, const char *value)
{
	for (size_t i = 0; i < f->answer->n_envs; i++)
		if (strcmp(f->answer->envs[i]->key, key) == 0)
			return strcmp(f->answer->envs[i]->value, value) == 0;
	return false;
}

static bool has_mount(const struct fixture *f, const char *container)
{
	for (size_t i = 0; i < f->answer->n_mounts; i++)
		if (strcmp(f->answer->mounts[i]->container_path, container) == 0)
			return true;
	return false;
}

static void an_answer_names_the_device_and_has_weirs_part(void **state)
{
	struct fixture *f = *state;

	answer(f, &part);
	assert_int_equal(f->answer->n_cdi_devices, 1);
	assert_string_equal(f->answer->cdi_devices[0]->name, "weir.dev/gpu=GPU-a1b2");
	assert_int_equal(f->answer->n_devices, 0);
	assert_int_equal(f->answer->n_annotations, 0);
	assert_true(has_env(f, "NVIDIA_VISIBLE_DEVICES", "void"));
	assert_true(has_env(f, "WEIR_GPU", "GPU-a1b2"));
	assert_true(has_mount(f, "/etc/ld.so.preload"));
	assert_false(has_mount(f, DRIVER_DIR_DEBIAN "/libcuda.so.1"));
}

static void whole_gpus_are_several_devices(void **state)
{
	struct fixture *f = *state;

	answer(f, &both);
	assert_int_equal(f->answer->n_cdi_devices, 2);
	assert_string_equal(f->answer->cdi_devices[1]->name, "weir.dev/gpu=GPU-\"odd\\");
	assert_false(has_mount(f, "/etc/ld.so.preload"));
}

static void annotations_say_the_same(void **state)
{
	struct fixture *f = *state;

	f->config.device_list = DEVICE_LIST_CDI_ANNOTATIONS;
	answer(f, &both);
	assert_int_equal(f->answer->n_cdi_devices, 0);
	assert_int_equal(f->answer->n_annotations, 1);
	assert_string_equal(f->answer->annotations[0]->key, "cdi.k8s.io/weir-device-plugin_gpus");
	assert_string_equal(f->answer->annotations[0]->value,
			    "weir.dev/gpu=GPU-a1b2,weir.dev/gpu=GPU-\"odd\\");
}

static void another_vendors_specification_is_not_written(void **state)
{
	struct fixture *f = *state;

	replace_text(&f->config.cdi.kind, "%s", "nvidia.com/gpu");
	answer(f, &part);
	assert_string_equal(f->answer->cdi_devices[0]->name, "nvidia.com/gpu=GPU-a1b2");
	assert_false(config_cdi_is_ours(&f->config));
	assert_false(has_env(f, "WEIR_DRIVER", DRIVER_DIR_DEBIAN "/libcuda.so.1"));
}

static void writes_a_readable_file_once(void **state)
{
	struct fixture *f = *state;
	struct stat first, second;
	char path[128];

	build(f);
	assert_int_equal(cdi_write(path, sizeof(path), &f->config, f->config.cdi.kind, f->text), 0);
	assert_string_equal(path + strlen(f->root), "/cdi/weir.dev-gpu.json");
	assert_int_equal(stat(path, &first), 0);
	assert_int_equal(first.st_mode & 0777, 0644);
	assert_int_equal(first.st_size, strlen(f->text));
	assert_int_equal(cdi_write(path, sizeof(path), &f->config, f->config.cdi.kind, f->text), 0);
	assert_int_equal(stat(path, &second), 0);
	assert_int_equal(second.st_ino, first.st_ino);
	assert_int_equal(cdi_write(path, sizeof(path), &f->config, f->config.cdi.kind, "{}\n"), 0);
	assert_int_equal(stat(path, &second), 0);
	assert_int_equal(second.st_size, 3);
	replace_text(&f->config.cdi.dir, "%s/dev/nvidia0", f->root);
	assert_int_equal(cdi_write(path, sizeof(path), &f->config, f->config.cdi.kind, f->text),
			 -ENOTDIR);
}

static void knows_kinds(void **state)
{
	(void)state;
	assert_true(config_cdi_kind_valid("weir.dev/gpu"));
	assert_true(config_cdi_kind_valid("a/b_c-1.d2"));
	assert_false(config_cdi_kind_valid("weir.dev"));
	assert_false(config_cdi_kind_valid("/gpu"));
	assert_false(config_cdi_kind_valid("weir.dev/"));
	assert_false(config_cdi_kind_valid("1.dev/gpu"));
	assert_false(config_cdi_kind_valid("weir.dev/gpu-"));
	assert_false(config_cdi_kind_valid("weir.dev/gpu/x"));
	assert_false(config_cdi_kind_valid("weir.dev/g=u"));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(keeps_to_the_schema),
		TEST(a_device_has_its_gpus_node),
		TEST(all_have_what_the_driver_needs),
		TEST(the_driver_is_omitted_if_the_plugin_does_not_mount_it),
		TEST(an_answer_names_the_device_and_has_weirs_part),
		TEST(whole_gpus_are_several_devices),
		TEST(annotations_say_the_same),
		TEST(another_vendors_specification_is_not_written),
		TEST(writes_a_readable_file_once),
		cmocka_unit_test(knows_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
