/* Mode mps-per-level: what the agent does with the channel groups of a level's server. The test's
 * process plays servers. */
#include "pipes-fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "hardware/slices.h"
#include "mps/mps-server.h"
#include "scheduler/preemption.h"

static int connect_server(unsigned level)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%.100s",
		 path_of(level, "agent.sock"));
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void hand_over(int fd)
{
	struct weir_channels message = {.group = {1, 2, 3, 1, {4}}};

	weir_header_init(&message.header, WEIR_CHANNELS, sizeof(message));
	int device = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_int_equal(weir_message_send(fd, &message, sizeof(message), &device, 1), 0);
	close(device);
}

static void servers_get_slices(void **state)
{
	(void)state;
	join(HIGH, 2);
	join(LOW, 0);
	struct mps_daemon *daemon = daemon_of(0);
	tell(0, "sim_server", getpid());
	int fd = connect_server(0);
	hand_over(fd);
	rig_wait(mps_server_of(daemon));
	assert_int_equal(mps_server_of(daemon)->channels.slice, SLICE_BELOW);
	rig_wait(atomic_load(&driver_slice) == SLICE_BELOW);
	char *status = rig_status();
	char expected[64];
	snprintf(expected, sizeof(expected),
		 "\"hardwarePreemption\":true,\"sliceMicroseconds\":%u}", SLICE_BELOW);
	assert_non_null(strstr(status, expected));
	free(status);
	/* Nobody is above any more. A process that asks the daemon may keep the socket for a
	 * moment. */
	fake_leave(&first);
	rig_wait(gpu->n_level[1] == 0);
	struct fake low = fake_join(LOW);
	assert_int_equal(mps_server_of(daemon)->channels.slice, SLICE_DEFAULT);
	close(fd);
	rig_wait(!mps_server_of(daemon));
	assert_null(gpu->servers[0]);
	fake_leave(&low);
	first = fake_join(NORMAL);
}

/* The GPU is configured when its first client is welcomed. That client's server may be there by
 * then. */
static void a_server_comes_before_its_client(void **state)
{
	struct channels_client server = {0};
	struct gpu early = {.servers = {&server}};

	(void)state;
	preemption_set_slices(&early);
	assert_int_equal(server.slice, 0);
}

static void others_are_no_servers(void **state)
{
	(void)state;
	join(LOW, 0);
	struct mps_daemon *daemon = daemon_of(0);
	tell(0, "sim_server", getppid());
	int fd = connect_server(0);
	hand_over(fd);
	rig_wait(daemon->joined && daemon->n_servers == 1);
	agent.pipes.pruned = 0;
	rig_wait(agent.pipes.pruned != 0);
	assert_false(daemon->joined->known);
	assert_int_equal(daemon->joined->channels.n_groups, 0);
	/* It hangs up, and what it sent is not read. */
	close(fd);
	rig_wait(!daemon->joined);
	assert_null(gpu->servers[0]);
}

static uint64_t expect_stopped(int fd)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	rig_wait(fake_receive(fd, &message, fds) == 0);
	assert_int_equal(message.header.type, WEIR_STOPPED);
	return message.stopped.until;
}

/* All clients of the level are held: the whole server stops. */
static void held_servers_stop(void **state)
{
	(void)state;
	join(LOW, 0);
	tell(0, "sim_server", getpid());
	int fd = connect_server(0);
	hand_over(fd);
	rig_wait(mps_server_of(daemon_of(0)));
	struct fake one = fake_join(LOW), two = fake_join(LOW);
	atomic_store(&one.status->outstanding, 1);
	atomic_store(&two.status->outstanding, 1);
	struct client *clients[2] = {NULL, NULL};
	unsigned n = 0;
	for (struct client *client = gpu->clients; client; client = client->gpu_next)
		if (client->level == 0 && n < 2)
			clients[n++] = client;
	assert_int_equal(n, 2);
	scheduler_hold(&agent.scheduler, clients[0], 600 * NS_PER_S);
	rig_pump();
	assert_false(mps_server_of(daemon_of(0))->channels.stopped);
	scheduler_hold(&agent.scheduler, clients[1], 600 * NS_PER_S);
	rig_wait(mps_server_of(daemon_of(0))->channels.stopped);
	rig_wait(atomic_load(&driver_stopped));
	/* Its process hears until when, again and again. */
	uint64_t until = expect_stopped(fd);
	assert_true(until > loop_now());
	assert_true(expect_stopped(fd) > until);
	scheduler_hold(&agent.scheduler, clients[0], 0);
	while (expect_stopped(fd))
		;
	rig_wait(!atomic_load(&driver_stopped));
	/* One that comes meanwhile lets it go on, too. */
	scheduler_hold(&agent.scheduler, clients[0], 600 * NS_PER_S);
	rig_wait(atomic_load(&driver_stopped));
	struct fake three = fake_join(LOW);
	rig_wait(!atomic_load(&driver_stopped));
	close(fd);
	fake_leave(&one);
	fake_leave(&two);
	fake_leave(&three);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PIPES_TEST(servers_get_slices),
		cmocka_unit_test(a_server_comes_before_its_client),
		PIPES_TEST(others_are_no_servers),
		PIPES_TEST(held_servers_stop),
	};

	return RUN_PIPES_TESTS(tests);
}
