/* The plugin as a process: kubelets that come late, restart, refuse and lose sockets. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "plugin-fixture.h"
#include "weir/base.h"

static void registers_with_a_restarted_kubelet(void **state)
{
	struct plugin *f = *state;
	char old[64];

	plugin_start(f);
	for (int round = 0; round < 3; round++) {
		snprintf(old, sizeof(old), "%s", f->kubelet.endpoint);
		f->before = f->kubelet.registrations;
		fake_kubelet_stop(&f->kubelet);
		fake_kubelet_start(&f->kubelet);
		fake_kubelet_until(&f->kubelet, plugin_is_back);
		assert_string_not_equal(f->kubelet.endpoint, old);
	}
	assert_int_equal(plugin_count_sockets(f), 1);
}

static void registers_again_when_its_socket_is_deleted(void **state)
{
	struct plugin *f = *state;
	char path[192];

	plugin_start(f);
	f->before = f->kubelet.registrations;
	snprintf(path, sizeof(path), "%s/%s", f->kubelet.dir, f->kubelet.endpoint);
	assert_int_equal(unlink(path), 0);
	fake_kubelet_until(&f->kubelet, plugin_is_back);
	assert_int_equal(plugin_count_sockets(f), 1);
}

/* Kubelets up to 1.36 mistake the late end of an old stream for the end of the new one. */
static void registers_again_when_its_stream_is_ended(void **state)
{
	struct plugin *f = *state;

	plugin_start(f);
	for (int round = 0; round < 2; round++) {
		f->before = f->kubelet.registrations;
		fake_kubelet_end_stream(&f->kubelet);
		fake_kubelet_until(&f->kubelet, plugin_is_back);
	}
}

static void waits_for_a_kubelet_that_is_not_there(void **state)
{
	struct plugin *f = *state;

	plugin_spawn(f);
	f->expected_line = "no kubelet at ";
	fake_kubelet_until(&f->kubelet, plugin_log_says);
	fake_kubelet_start(&f->kubelet);
	fake_kubelet_until(&f->kubelet, plugin_has_stream);
}

static void waits_for_a_directory_that_is_not_there(void **state)
{
	struct plugin *f = *state;

	plugin_write_config(f, "/tmp/weir-no-such-directory", "");
	plugin_spawn(f);
	f->expected_line = "/tmp/weir-no-such-directory: No such file or directory; is a kubelet";
	fake_kubelet_until(&f->kubelet, plugin_log_says);
	assert_int_equal(kill(f->pid, SIGTERM), 0);
	assert_int_equal(plugin_reap(f), 0);
}

static void retries_when_the_kubelet_refuses(void **state)
{
	struct plugin *f = *state;

	f->kubelet.refusal = "the ResourceName \"weir.dev/gpu-share\" is invalid";
	fake_kubelet_start(&f->kubelet);
	plugin_spawn(f);
	f->expected_line = "kubelet does not register weir.dev/gpu-share: the ResourceName";
	fake_kubelet_until(&f->kubelet, plugin_log_says);
	f->kubelet.refusal = NULL;
	fake_kubelet_until(&f->kubelet, plugin_has_stream);
}

static void removes_sockets_of_the_dead_only(void **state)
{
	struct plugin *f = *state;
	struct sockaddr_un dead = {.sun_family = AF_UNIX}, alive = {.sun_family = AF_UNIX};

	fake_kubelet_start(&f->kubelet);
	snprintf(dead.sun_path, sizeof(dead.sun_path), "%s/weir-1-0-0.sock", f->kubelet.dir);
	snprintf(alive.sun_path, sizeof(alive.sun_path), "%s/weir-1-1-0.sock", f->kubelet.dir);
	cleanup(closep) int bound = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cleanup(closep) int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(bound, (struct sockaddr *)&dead, sizeof(dead)), 0);
	assert_int_equal(bind(listening, (struct sockaddr *)&alive, sizeof(alive)), 0);
	assert_int_equal(listen(listening, 1), 0);
	plugin_spawn(f);
	fake_kubelet_until(&f->kubelet, plugin_has_stream);
	assert_int_equal(access(dead.sun_path, F_OK), -1);
	assert_int_equal(access(alive.sun_path, F_OK), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, plugin_set_up, plugin_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(registers_with_a_restarted_kubelet),
		TEST(registers_again_when_its_socket_is_deleted),
		TEST(registers_again_when_its_stream_is_ended),
		TEST(waits_for_a_kubelet_that_is_not_there),
		TEST(waits_for_a_directory_that_is_not_there),
		TEST(retries_when_the_kubelet_refuses),
		TEST(removes_sockets_of_the_dead_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
