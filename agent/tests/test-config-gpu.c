/* Settings for some GPUs: which entry wins, and the messages about mistakes. */
#include "config/config.h"
#include "weir/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define UUID "GPU-01234567-89ab-cdef-0123-456789abcdef"

static char message[512];

static int parse(struct config *config, const char *text)
{
	message[0] = '\0';
	return config_parse(config, "f.yaml", text, strlen(text), message, sizeof(message));
}

static void refuses(const char *text, const char *expected)
{
	struct config config;

	assert_true(parse(&config, text) < 0);
	assert_string_equal(message, expected);
}

static struct config_gpu_settings settings_of(const char *text, const struct gpu_traits *gpu)
{
	struct config config;

	assert_int_equal(parse(&config, text), 0);
	struct config_gpu_settings settings = config_for_gpu(&config, gpu);
	config_deinit(&config);
	return settings;
}

static const struct gpu_traits h200 = {UUID, 1, "NVIDIA H200"};

static void test_node(void **state)
{
	struct config_gpu_settings settings = settings_of("", &h200);

	(void)state;
	assert_int_equal(settings.mode, GPU_MODE_TIMESLICE);
	assert_int_equal(settings.memory.kind, MEMORY_NONE);
	assert_ptr_equal(settings.policy, &policy_whpf);
	assert_int_equal(settings.scheduling.quantum, policy_defaults.quantum);
	settings = settings_of(
		"{mode: mps, memoryDefault: share, policy: wfq, scheduling: {quantum: 5ms}}",
		&h200);
	assert_int_equal(settings.mode, GPU_MODE_MPS);
	assert_int_equal(settings.memory.kind, MEMORY_SHARE);
	assert_ptr_equal(settings.policy, &policy_wfq);
	assert_int_equal(settings.scheduling.quantum, 5000000);
}

static void test_others_are_left_alone(void **state)
{
	static const char text[] =
		"gpus: [{index: 0, mode: mps}, {product: '*A100*', policy: ffs}, "
		"{uuid: GPU-00000000-0000-0000-0000-000000000000, mode: mps}]";
	struct config_gpu_settings settings = settings_of(text, &h200);

	(void)state;
	assert_int_equal(settings.mode, GPU_MODE_TIMESLICE);
	assert_ptr_equal(settings.policy, &policy_whpf);
}

/* For each key, UUID wins before index before product, whatever their order in the file. */
static void test_the_most_specific_wins(void **state)
{
	static const char text[] =
		"policy: static\n"
		"scheduling: {quantum: 1ms, minQuantum: 1ms, aging: 1s}\n"
		"gpus:\n"
		"- {uuid: " UUID ", scheduling: {aging: never}}\n"
		"- {index: 1, policy: dynamic, scheduling: {aging: 2s, quantum: 3ms}}\n"
		"- {product: 'NVIDIA H*', mode: mps, policy: ffs, memoryDefault: 8Gi, "
		"scheduling: {aging: 4s, quantum: 5ms, maxOverhead: 7}}\n"
		"- {product: '*', mode: timeslice, memoryDefault: share, scheduling: "
		"{evictionCost: 1ms}}\n";
	struct config_gpu_settings settings = settings_of(text, &h200);

	(void)state;
	assert_int_equal(settings.scheduling.aging, POLICY_NEVER);
	assert_ptr_equal(settings.policy, &policy_dynamic);
	assert_int_equal(settings.scheduling.quantum, 3000000);
	assert_int_equal(settings.mode, GPU_MODE_MPS);
	assert_int_equal(settings.memory.kind, MEMORY_BYTES);
	assert_int_equal(settings.memory.bytes, 8ull << 30);
	assert_int_equal(settings.scheduling.max_overhead, 70000);
	assert_int_equal(settings.scheduling.cost, 1000000);
	assert_int_equal(settings.scheduling.min_quantum, 1000000);
}

static void test_unknown_index(void **state)
{
	static const struct gpu_traits hearsay = {UUID, -1, ""};

	(void)state;
	assert_int_equal(settings_of("gpus: [{index: 0, mode: mps}]", &hearsay).mode,
			 GPU_MODE_TIMESLICE);
	assert_int_equal(settings_of("gpus: [{product: '*', mode: mps}]", &hearsay).mode,
			 GPU_MODE_MPS);
}

static void test_mistakes(void **state)
{
	(void)state;
	refuses("mode: both\n", "f.yaml:1:7: expected timeslice, mps or mps-per-level, not `both`");
	refuses("gpus:\n- {mode: mps}\n",
		"f.yaml:2:3: expected `uuid`, `index` or `product` in this entry");
	refuses("gpus:\n- {index: 0, product: a}\n",
		"f.yaml:2:23: expected one of `uuid`, `index` and `product`");
	refuses("gpus:\n- {index: 0}\n- {index: 1}\n- {index: 0}\n",
		"f.yaml:4:3: this GPU has an entry already");
	refuses("gpus: [{uuid: " UUID "}, {uuid: gpu-1}]\n",
		"f.yaml:1:65: expected GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx, not `gpu-1`");
	refuses("gpus: [{index: 64}]\n", "f.yaml:1:16: expected a number from 0 to 63");
	refuses("gpus: [{product: ''}]\n",
		"f.yaml:1:18: expected a product's name, like `NVIDIA H200*`");
	refuses("gpus: [{index: 0, policy: best}]\n",
		"f.yaml:1:27: expected a policy (hpf, whpf, ffs, "
		"static, dynamic, wfq, levels, coexec), not `best`");
	refuses("gpus: [{index: 0, share: 5}]\n", "f.yaml:1:19: unknown key `share`");
	refuses("gpus: {index: 0}\n", "f.yaml:1:7: expected a list");
	refuses("mps: {keep: maybe}\n", "f.yaml:1:13: expected true or false");
	refuses("memoryDefault: half\n",
		"f.yaml:1:16: expected none, share, or " MEMORY_EXPECTED ", not `half`");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_node),
		cmocka_unit_test(test_others_are_left_alone),
		cmocka_unit_test(test_the_most_specific_wins),
		cmocka_unit_test(test_unknown_index),
		cmocka_unit_test(test_mistakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
