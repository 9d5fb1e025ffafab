/* The plugin as a process: which GPUs it offers, their health, and new configurations. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "plugin-fixture.h"

static void registers_without_any_gpu(void **state)
{
	struct plugin *f = *state;

	unlink(f->gpus);
	plugin_start(f);
	assert_int_equal(f->kubelet.devices, 0);
	f->expected_line = "lists no GPU";
	assert_true(plugin_log_says(&f->kubelet));
}

static void registers_without_nvml(void **state)
{
	struct plugin *f = *state;
	char text[256];

	snprintf(text, sizeof(text), "pluginDir: %s\ndriver: {nvml: /nowhere/libnvidia-ml.so.1}\n",
		 f->kubelet.dir);
	plugin_write(f->config, text);
	plugin_start(f);
	assert_int_equal(f->kubelet.devices, 0);
	f->expected_line = "no NVML: /nowhere/libnvidia-ml.so.1";
	assert_true(plugin_log_says(&f->kubelet));
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
	struct plugin *f = *state;

	plugin_start(f);
	plugin_write(f->gpus, GPU_A " 0 1024 ok\n" GPU_B " 1 1024 lost\n");
	fake_kubelet_until(&f->kubelet, half_healthy);
	plugin_write(f->gpus, GPU_A " 0 1024 ok\n" GPU_B " 1 1024 ok\n");
	fake_kubelet_until(&f->kubelet, all_healthy);
	assert_int_equal(f->kubelet.registrations, 1);
}

/* The errors that NVML reports from now on; NULL: none. */
static void set_errors(struct plugin *f, const char *errors)
{
	char path[160];

	snprintf(path, sizeof(path), "%s.xid", f->gpus);
	if (errors)
		plugin_write(path, errors);
	else
		assert_int_equal(unlink(path), 0);
}

static void reports_errors_that_count(void **state)
{
	struct plugin *f = *state;

	plugin_start(f);
	set_errors(f, "0 31\n1 79\n");
	fake_kubelet_until(&f->kubelet, half_healthy);
	f->expected_line = "XID 31 (GPU memory page fault), ignored";
	assert_true(plugin_log_says(&f->kubelet));
}

static void reports_recovered_gpus(void **state)
{
	struct plugin *f = *state;

	plugin_write_config(f, f->kubelet.dir, "health: {recoverySeconds: 1}\n");
	plugin_start(f);
	set_errors(f, "0 74\n");
	fake_kubelet_until(&f->kubelet, half_healthy);
	fake_kubelet_until(&f->kubelet, all_healthy);

	/* XID 95 needs a reset. A reset looks like this: the GPU is lost and comes back. */
	set_errors(f, "0 74\n1 95\n");
	fake_kubelet_until(&f->kubelet, half_healthy);
	set_errors(f, NULL);
	f->expected_line = "XID 95 (uncontained memory error), until it is reset";
	assert_true(plugin_log_says(&f->kubelet));
	plugin_write(f->gpus, GPU_A " 0 1024 ok\n" GPU_B " 1 1024 lost\n");
	f->expected_line = "does not answer; ignored";
	fake_kubelet_until(&f->kubelet, plugin_log_says);
	plugin_write(f->gpus, GPU_A " 0 1024 ok\n" GPU_B " 1 1024 ok\n");
	fake_kubelet_until(&f->kubelet, all_healthy);
}

static void ignores_a_mig_gpu(void **state)
{
	struct plugin *f = *state;

	plugin_write(f->gpus, GPU_A " 0 1024 mig\n" GPU_B " 1 1024 ok\n");
	plugin_start(f);
	assert_int_equal(f->kubelet.devices, 100);
	assert_string_equal(f->kubelet.ids[0], GPU_B "::00");
}

static bool has_140_devices(const struct fake_kubelet *kubelet)
{
	return plugin_is_back(kubelet) && kubelet->devices == 140;
}

static void applies_a_new_config(void **state)
{
	struct plugin *f = *state;

	plugin_start(f);
	assert_int_equal(f->kubelet.devices, 200);
	f->before = f->kubelet.registrations;
	plugin_write_config(f, f->kubelet.dir, "gpus: [{index: 1, shares: 40}]\n");
	fake_kubelet_until(&f->kubelet, has_140_devices);
	f->before = f->kubelet.registrations;
	kill(f->pid, SIGHUP);
	fake_kubelet_until(&f->kubelet, has_140_devices);
	kill(f->pid, SIGTERM);
	assert_int_equal(plugin_reap(f), 0);
	assert_int_equal(plugin_count_sockets(f), 0);
}

static bool half_healthy_again(const struct fake_kubelet *kubelet)
{
	return plugin_is_back(kubelet) && half_healthy(kubelet);
}

/* A new configuration does not make an unhealthy or lost GPU healthy. */
static void a_new_config_keeps_the_health(void **state)
{
	struct plugin *f = *state;

	plugin_write_config(f, f->kubelet.dir, "health: {recoverySeconds: 1}\n");
	plugin_start(f);
	set_errors(f, "1 95\n");
	fake_kubelet_until(&f->kubelet, half_healthy);
	set_errors(f, NULL);
	f->before = f->kubelet.registrations;
	kill(f->pid, SIGHUP);
	fake_kubelet_until(&f->kubelet, half_healthy_again);

	plugin_write(f->gpus, GPU_A " 0 1024 ok\n" GPU_B " 1 1024 lost\n");
	f->expected_line = "does not answer; ignored";
	fake_kubelet_until(&f->kubelet, plugin_log_says);
	f->before = f->kubelet.registrations;
	kill(f->pid, SIGHUP);
	fake_kubelet_until(&f->kubelet, half_healthy_again);
	plugin_write(f->gpus, GPU_A " 0 1024 ok\n" GPU_B " 1 1024 ok\n");
	fake_kubelet_until(&f->kubelet, all_healthy);
}

static void keeps_its_config_when_the_new_one_is_wrong(void **state)
{
	struct plugin *f = *state;

	plugin_start(f);
	f->expected_line =
		"config.yaml:3:7: expected timeslice, mps or mps-per-level, not `both`; the "
		"previous configuration stays in force";
	plugin_write_config(f, f->kubelet.dir, "mode: both\n");
	fake_kubelet_until(&f->kubelet, plugin_log_says);
	assert_int_equal(f->kubelet.registrations, 1);
	assert_non_null(f->kubelet.stream);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, plugin_set_up, plugin_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(registers_without_any_gpu),
		TEST(registers_without_nvml),
		TEST(reports_lost_and_returned_gpus),
		TEST(reports_errors_that_count),
		TEST(reports_recovered_gpus),
		TEST(ignores_a_mig_gpu),
		TEST(applies_a_new_config),
		TEST(a_new_config_keeps_the_health),
		TEST(keeps_its_config_when_the_new_one_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
