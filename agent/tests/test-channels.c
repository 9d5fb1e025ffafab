/* The thread that gives the driver's commands, on a driver that only records: the linker replaces
 * the calls of weir/channel-group.h. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "hardware/channels.h"

#include "weir/base.h"

static const uint8_t uuid[16] = "the test's GPU";

/* What the driver knows of the group that the test uses. */
static struct {
	_Atomic uint64_t slice;
	_Atomic bool stopped;
	_Atomic int refuses; /* all calls return this */
	_Atomic int examined;
	_Atomic unsigned stops; /* calls */
	_Atomic bool stays;     /* what the agent says of it meanwhile */
	_Atomic bool refuses_stops;
	_Atomic unsigned refused;
	bool other_gpu;
} driver;

bool __wrap_channel_group_is_device(int fd);
int __wrap_channel_group_set_slice(int fd, const struct channel_group *group, uint64_t us);
int __wrap_channel_group_get_slice(int fd, const struct channel_group *group, uint64_t *us);
int __wrap_channel_group_stop(int fd, const struct channel_group *group, bool stopped);
int __wrap_channel_group_gpu(int fd, const struct channel_group *group, uint8_t out[16]);

bool __wrap_channel_group_is_device(int fd)
{
	return lseek(fd, 0, SEEK_CUR) < 0; /* a pipe stands for the device */
}

int __wrap_channel_group_set_slice(int fd, const struct channel_group *group, uint64_t us)
{
	(void)fd;
	(void)group;
	driver.slice = us;
	return driver.refuses;
}

int __wrap_channel_group_get_slice(int fd, const struct channel_group *group, uint64_t *us)
{
	(void)fd;
	(void)group;
	*us = driver.slice;
	driver.examined++;
	return driver.refuses;
}

int __wrap_channel_group_gpu(int fd, const struct channel_group *group, uint8_t out[16])
{
	(void)fd;
	(void)group;
	memcpy(out, uuid, 16);
	out[0] ^= driver.other_gpu;
	return driver.refuses;
}

static struct loop loop;
static struct channels_gpu gpu;
static struct channels_client client;
static unsigned n_changes;
static int pipes[2];

int __wrap_channel_group_stop(int fd, const struct channel_group *group, bool stopped)
{
	(void)fd;
	assert_int_equal(group->n_channels, 2);
	if (stopped && driver.refuses_stops) {
		driver.refused++;
		return 0x40;
	}
	driver.stays = channels_stays_stopped(&client);
	driver.stopped = stopped;
	driver.stops += stopped;
	return driver.refuses;
}

static void changed(struct channels_client *who)
{
	assert_ptr_equal(who, &client);
	n_changes++;
}

static void take_group(int fd, uint32_t number)
{
	struct channel_group group = {
		.client = 1, .subdevice = 2, .group = number, .n_channels = 2, .channels = {7, 8}};

	channels_take(&gpu, &loop, uuid, &client, &group, fd);
}

#define eventually(condition)                                    \
	do {                                                     \
		uint64_t end_ = monotonic_now() + 30 * NS_PER_S; \
		while (!(condition)) {                           \
			assert_true(monotonic_now() < end_);     \
			assert_true(loop_step(&loop, 1) >= 0);   \
		}                                                \
	} while (0)

static int set_up(void **state)
{
	(void)state;
	memset(&driver, 0, sizeof(driver));
	driver.slice = CHANNELS_DEFAULT_SLICE;
	gpu = (struct channels_gpu){0};
	client = (struct channels_client){.changed = changed};
	n_changes = 0;
	return loop_init(&loop) || pipe2(pipes, O_CLOEXEC);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int tear_down(void **state)
{
	(void)state;
	channels_deinit(&gpu);
	loop_deinit(&loop);
	close(pipes[1]);
	return 0;
}

/* Of @ns that begin now. */
static uint64_t runs_for(uint64_t ns)
{
	uint64_t now = monotonic_now();

	return channels_ran(&client, now + ns) - channels_ran(&client, now);
}

static void test_life(void **state)
{
	(void)state;
	channels_set_slice(&client, 50); /* before there is a group */
	take_group(pipes[0], 5);
	assert_false(client.usable);
	eventually(client.usable && driver.slice == 50);
	channels_stop(&client, true);
	eventually(channels_count(&gpu).stops == 1);
	assert_true(driver.stopped && runs_for(NS_PER_S) == 0);
	channels_stop(&client, false);
	eventually(!driver.stopped && runs_for(NS_PER_S) == NS_PER_S);
	channels_set_slice(&client, 0);
	eventually(driver.slice == CHANNELS_DEFAULT_SLICE);
	channels_stop(&client, true);
	eventually(driver.stopped);
	/* Its session ends while it is stopped. */
	channels_forget(&client);
	eventually(!driver.stopped && !is_open(pipes[0]));
	assert_int_equal(channels_count(&gpu).stops, 2);
	assert_int_equal(n_changes, 1);
}

/* What can be taken back: a call that the thread has not begun. */
static void test_stays_stopped(void **state)
{
	(void)state;
	take_group(pipes[0], 5);
	eventually(client.usable);
	assert_false(channels_stays_stopped(&client));
	channels_stop(&client, true);
	eventually(driver.stopped);
	assert_true(driver.stays);
	eventually(channels_stopped_at(&client));
	assert_true(channels_stays_stopped(&client));
	channels_stop(&client, false);
	eventually(!driver.stopped);
	assert_false(driver.stays);
	eventually(!channels_stopped_at(&client));
	assert_false(channels_stays_stopped(&client));
}

/* Its process has let it go on. */
static void test_stop_again(void **state)
{
	(void)state;
	take_group(pipes[0], 5);
	channels_stop(&client, true);
	eventually(channels_count(&gpu).stops == 1);
	uint64_t stopped_at = channels_stopped_at(&client);
	assert_int_not_equal(stopped_at, 0);
	driver.stopped = false;
	channels_stop_again(&client);
	eventually(driver.stopped && channels_stopped_at(&client) > stopped_at);
	assert_int_equal(driver.stops, 2);
	channels_stop(&client, false);
	eventually(!driver.stopped && !channels_stopped_at(&client));
}

/* A driver that refuses that: the group goes on all the same when it is to. */
static void test_stop_again_is_refused(void **state)
{
	(void)state;
	take_group(pipes[0], 5);
	channels_stop(&client, true);
	eventually(channels_count(&gpu).stops == 1);
	driver.refuses_stops = true;
	channels_stop_again(&client);
	eventually(driver.refused == 1);
	assert_int_not_equal(channels_stopped_at(&client), 0);
	channels_stop(&client, false);
	eventually(!driver.stopped && client.usable);
}

/* The agent before this one has set a slice. */
static void test_another_agents_slice(void **state)
{
	(void)state;
	driver.slice = 50;
	take_group(pipes[0], 5);
	eventually(client.usable && driver.slice == CHANNELS_DEFAULT_SLICE);
	assert_int_equal(client.disobeyed, 0);
}

static void test_the_agent_ends(void **state)
{
	(void)state;
	take_group(pipes[0], 5);
	channels_stop(&client, true);
	eventually(driver.stopped);
	channels_deinit(&gpu);
	assert_false(driver.stopped);
	eventually(!is_open(pipes[0]));
}

static void test_other_descriptors(void **state)
{
	int file = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);

	(void)state;
	assert_true(file >= 0);
	take_group(file, 5);
	assert_false(is_open(file));
	assert_true(client.failed && !client.usable);
	assert_null(gpu.loop);
	close(pipes[0]);
}

static void test_wrong_handles(void **state)
{
	(void)state;
	driver.refuses = 0x57;
	take_group(pipes[0], 5);
	eventually(client.failed);
	assert_false(client.usable);
	assert_int_equal(channels_count(&gpu).refused, 1);
	channels_stop(&client, true);
	channels_forget(&client);
	eventually(!is_open(pipes[0]));
	assert_false(driver.stopped);
}

static void test_another_gpu(void **state)
{
	(void)state;
	driver.other_gpu = true;
	take_group(pipes[0], 5);
	eventually(client.failed);
	assert_false(client.usable);
}

static void test_too_many(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < CHANNELS_GROUPS_MAX; i++)
		take_group(dup(pipes[0]), 5 + i);
	eventually(client.usable);
	take_group(pipes[0], 99);
	assert_false(is_open(pipes[0]));
	assert_true(client.failed);
}

/* It has other channels now: they are stopped, too. */
static void test_the_same_group_again(void **state)
{
	int second = dup(pipes[0]);

	(void)state;
	take_group(pipes[0], 5);
	channels_stop(&client, true);
	eventually(driver.stopped);
	take_group(second, 5);
	eventually(channels_count(&gpu).stops == 2);
	assert_int_equal(client.n_groups, 1);
	assert_true(driver.stopped);
}

/* A process gives itself a longer slice than it has. */
static void test_slices_changed_by_others(void **state)
{
	(void)state;
	take_group(pipes[0], 5);
	channels_set_slice(&client, 50);
	eventually(driver.slice == 50);
	driver.slice = 10000000;
	eventually(client.disobeyed == 1);
	eventually(driver.slice == 50);
	assert_true(client.usable);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_life, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stays_stopped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stop_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stop_again_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_another_agents_slice, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_agent_ends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_descriptors, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_wrong_handles, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_another_gpu, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_too_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_same_group_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_slices_changed_by_others, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
