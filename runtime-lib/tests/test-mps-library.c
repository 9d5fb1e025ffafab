/* libweir-mps.so in an MPS server: the test is the server, libcuda in it, and the agent. */
#include "shim/ioctl.h"

#include "weir/base.h"
#include "weir/protocol.h"
#include "weir/rm.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE 60000 /* ms */
#define DEVICE   1u    /* handles */
#define CLIENT   7u

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int listener = -1, agent = -1, control = -1;

/* The driver. */

static int gone_on;

bool __wrap_channel_group_is_device(int fd);
bool __wrap_channel_group_is_device(int fd)
{
	return fd == control;
}

int __wrap_channel_group_stop(int fd, const struct channel_group *group, bool stop);
int __wrap_channel_group_stop(int fd, const struct channel_group *group, bool stop)
{
	return fd == control && group->client == CLIENT && !stop ? 0 : -1;
}

int __wrap_channel_group_set_slice(int fd, const struct channel_group *group, uint64_t us);
int __wrap_channel_group_set_slice(int fd, const struct channel_group *group, uint64_t us)
{
	if (fd == control && group->client == CLIENT && us == CHANNEL_GROUP_SLICE)
		__atomic_add_fetch(&gone_on, 1, __ATOMIC_SEQ_CST);
	return 0;
}

/* libcuda. */

static void make_object(uint32_t parent, uint32_t object, uint32_t class, void *params)
{
	struct rm_alloc made = {.client = CLIENT,
				.parent = parent,
				.object = object,
				.class = class,
				.params = (uintptr_t)params};

	channel_groups_watch(control, RM_REQUEST(RM_IOCTL_ALLOC, struct rm_alloc), &made);
}

static void free_object(uint32_t object)
{
	struct rm_free gone = {.client = CLIENT, .object = object};

	channel_groups_watch(control, RM_REQUEST(RM_IOCTL_FREE, struct rm_free), &gone);
}

static void make_group(uint32_t group)
{
	struct rm_channel_group_params params = {.engine = RM_ENGINE_COMPUTE};

	make_object(DEVICE, 2, RM_CLASS_SUBDEVICE, NULL);
	make_object(DEVICE, group, RM_CLASS_CHANNEL_GROUP, &params);
}

static void make_channel(uint32_t group, uint32_t channel)
{
	make_object(group, channel, 0xc86f, NULL);
}

/* The agent. */

static void begin_listening(void)
{
	unlink(address.sun_path);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 8), 0);
}

static bool readable(int fd)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	return poll(&wait, 1, PATIENCE) == 1;
}

static void accept_server(void)
{
	assert_true(readable(listener));
	agent = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(agent >= 0);
}

/* The next message about this group with so many channels. */
static struct channel_group told(uint32_t group, uint32_t n)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	size_t n_fds;

	do {
		assert_true(readable(agent));
		assert_int_equal(weir_message_receive(agent, &message, fds, &n_fds), 0);
		assert_int_equal(message.header.type, WEIR_CHANNELS);
		assert_int_equal(message.channels.group.client, CLIENT);
		close(fds[0]);
	} while (message.channels.group.group != group || message.channels.group.n_channels != n);
	return message.channels.group;
}

static void expect_end(void)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX], r;
	size_t n = 0;

	do {
		assert_true(readable(agent));
		r = weir_message_receive(agent, &message, fds, &n);
		for (size_t i = 0; r == 0 && i < n; i++)
			close(fds[i]);
	} while (r == 0);
	assert_int_equal(close(agent), 0);
}

static void wait_for(const int *value, int at_least)
{
	for (int left = PATIENCE; __atomic_load_n(value, __ATOMIC_SEQ_CST) < at_least; left--) {
		assert_true(left > 0);
		usleep(1000);
	}
}

static void stop_until(uint64_t until)
{
	struct weir_stopped message = {.until = until};

	weir_header_init(&message.header, WEIR_STOPPED, sizeof(message));
	assert_int_equal(weir_message_send(agent, &message, sizeof(message), NULL, 0), 0);
}

static void hands_its_groups_over(void **state)
{
	(void)state;
	make_group(10);
	make_channel(10, 11);
	accept_server();
	told(10, 1);
	make_channel(10, 12);
	struct channel_group group = told(10, 2);
	assert_int_equal(group.channels[1], 12);
	assert_int_equal(group.subdevice, 2);
}

/* What a client of the server leaves behind must not be stopped: the driver would refuse. */
static void takes_back_what_is_freed(void **state)
{
	(void)state;
	free_object(11);
	expect_end();
	accept_server();
	struct channel_group group = told(10, 1);
	assert_int_equal(group.channels[0], 12);
	make_group(20);
	make_channel(20, 21);
	told(20, 1);
	free_object(20);
	expect_end();
	accept_server();
	told(10, 1);
}

static void goes_on_without_the_agent(void **state)
{
	(void)state;
	__atomic_store_n(&gone_on, 0, __ATOMIC_SEQ_CST);
	stop_until(monotonic_now() + 3600 * NS_PER_S);
	close(listener);
	close(agent);
	wait_for(&gone_on, 1);
	/* The next one hears of the groups. */
	begin_listening();
	accept_server();
	told(10, 1);
}

/* It is stopped, or stuck. */
static void goes_on_when_the_agent_forgets_it(void **state)
{
	(void)state;
	__atomic_store_n(&gone_on, 0, __ATOMIC_SEQ_CST);
	stop_until(monotonic_now() + 3600 * NS_PER_S);
	stop_until(monotonic_now() + NS_PER_MS);
	wait_for(&gone_on, 1);
}

static void ends_with_its_last_group(void **state)
{
	(void)state;
	free_object(CLIENT);
	expect_end();
}

static int set_up(void **state)
{
	(void)state;
	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/weir-mps-%d.sock",
		 (int)getpid());
	setenv("WEIR_MPS_SOCKET", address.sun_path, 1);
	control = open("/dev/null", O_RDWR | O_CLOEXEC);
	begin_listening();
	return control < 0;
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(address.sun_path);
}

int main(void)
{
	/* One process: each test goes on where the last one ended. */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hands_its_groups_over),
		cmocka_unit_test(takes_back_what_is_freed),
		cmocka_unit_test(goes_on_without_the_agent),
		cmocka_unit_test(goes_on_when_the_agent_forgets_it),
		cmocka_unit_test(ends_with_its_last_group),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
