/* Mode mps-per-level: a whole agent, and MPS daemons played by e2e/simcuda's mps-control. Processes
 * ask which server they join; the test's process also plays servers, and a tenant that cheats. */
#include "agent-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hardware/slices.h"
#include "mps/mps-server.h"

#define LOW    1 /* uids */
#define NORMAL 2
#define HIGH   3

static struct fake first; /* makes the GPU known */
static struct gpu *gpu;
static char program[PATH_MAX];

/* The driver. */

static uint64_t slice;
static bool stopped;

bool __wrap_channel_group_is_device(int fd);
bool __wrap_channel_group_is_device(int fd)
{
	return fd >= 0;
}

int __wrap_channel_group_set_slice(int fd, const struct channel_group *group, uint64_t us);
int __wrap_channel_group_set_slice(int fd, const struct channel_group *group, uint64_t us)
{
	(void)fd, (void)group;
	__atomic_store_n(&slice, us, __ATOMIC_SEQ_CST);
	return 0;
}

int __wrap_channel_group_get_slice(int fd, const struct channel_group *group, uint64_t *us);
int __wrap_channel_group_get_slice(int fd, const struct channel_group *group, uint64_t *us)
{
	(void)fd, (void)group;
	*us = __atomic_load_n(&slice, __ATOMIC_SEQ_CST);
	return 0;
}

int __wrap_channel_group_stop(int fd, const struct channel_group *group, bool stop);
int __wrap_channel_group_stop(int fd, const struct channel_group *group, bool stop)
{
	(void)fd, (void)group;
	__atomic_store_n(&stopped, stop, __ATOMIC_SEQ_CST);
	return 0;
}

int __wrap_channel_group_gpu(int fd, const struct channel_group *group, uint8_t uuid[16]);
int __wrap_channel_group_gpu(int fd, const struct channel_group *group, uint8_t uuid[16])
{
	(void)fd, (void)group;
	memcpy(uuid, gpu->uuid, 16);
	return 0;
}

/* The daemons. */

static const char *path_of(unsigned level, const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/mps/%s/level-%u/%s", rig_folder, gpu->id, level, name);
	return path;
}

static void tell(unsigned level, const char *command, int pid)
{
	char line[2 * PATH_MAX + 256];

	snprintf(line, sizeof(line), "echo '%s %d' | CUDA_MPS_PIPE_DIRECTORY=%s %s", command, pid,
		 path_of(level, "pipe"), program);
	assert_int_equal(system(line), 0);
}

static struct mps_daemon *daemon_of(uint8_t level)
{
	for (struct mps_daemon *daemon = agent.mps.daemons; daemon; daemon = daemon->next)
		if (daemon->request.level == level)
			return daemon;
	return NULL;
}

/* A process's question. */

static int ask_with(uid_t uid, const uint8_t uuid[16])
{
	struct weir_pipes question = {0};
	int fd = fake_connect();

	next_identity.uid = uid;
	weir_header_init(&question.header, WEIR_PIPES, sizeof(question));
	memcpy(question.gpu, uuid, 16);
	assert_int_equal(weir_message_send(fd, &question, sizeof(question), NULL, 0), 0);
	return fd;
}

static int ask(uid_t uid)
{
	return ask_with(uid, gpu->uuid);
}

/* The final answer; *@pipe: its descriptor. */
static enum weir_pipes_status answer(int fd, int *pipe, bool *later)
{
	union weir_message message = {0};
	int fds[WEIR_FDS_MAX], r = -EAGAIN;

	*later = false;
	*pipe = -1;
	for (;;) {
		rig_wait((r = fake_receive(fd, &message, fds)) != -EAGAIN);
		assert_int_equal(r, 0);
		assert_int_equal(message.header.type, WEIR_PIPES_ANSWER);
		if (message.pipes_answer.status != WEIR_PIPES_LATER)
			break;
		*later = true;
	}
	if (message.pipes_answer.status == WEIR_PIPES_OK)
		*pipe = fds[0];
	return message.pipes_answer.status;
}

static bool is_socket_of(int pipe, unsigned level)
{
	struct stat given, own;

	return fstat(pipe, &given) == 0 && stat(path_of(level, "pipe/control"), &own) == 0 &&
	       S_ISSOCK(given.st_mode) && given.st_ino == own.st_ino && given.st_dev == own.st_dev;
}

/* Joins the server of the level; true: it had to wait. */
static bool join(uid_t uid, unsigned level)
{
	int pipe, fd = ask(uid);
	bool later;

	assert_int_equal(answer(fd, &pipe, &later), WEIR_PIPES_OK);
	assert_true(is_socket_of(pipe, level));
	close(pipe);
	close(fd);
	rig_pump();
	return later;
}

static void expect_none(int fd)
{
	int pipe;
	bool later;

	assert_int_equal(answer(fd, &pipe, &later), WEIR_PIPES_NONE);
	close(fd);
	rig_pump();
}

/* Levels are asked for, and each starts its daemon. */
static void each_level_has_a_server(void **state)
{
	static char text[65536];

	(void)state;
	assert_null(daemon_of(0));
	assert_true(join(LOW, 0));
	assert_null(daemon_of(2));
	assert_true(join(HIGH, 2));
	assert_int_not_equal(daemon_of(0)->pid, daemon_of(2)->pid);
	assert_false(join(LOW, 0));
	assert_int_equal(daemon_of(0)->starts, 1);
	assert_null(daemon_of(1));
	rig_fetch("/metrics", text, sizeof(text));
	assert_non_null(strstr(text, "level=\"low\"} 1\n"));
	assert_non_null(strstr(text, "weir_mps_foreign_clients_total{gpu="));
	char *status = rig_status();
	assert_non_null(strstr(status, "\"mode\":\"mps-per-level\""));
	assert_non_null(strstr(status, "\"servers\":[{\"level\":2,\"up\":true"));
	free(status);
}

/* The descriptor is no way to other files of the node, nor to another level's server. */
static void a_descriptor_leads_nowhere_else(void **state)
{
	int pipe, fd = ask(LOW);
	bool later;

	(void)state;
	assert_int_equal(answer(fd, &pipe, &later), WEIR_PIPES_OK);
	assert_int_equal(openat(pipe, "..", O_PATH), -1);
	assert_int_equal(errno, ENOTDIR);
	assert_int_equal(fchdir(pipe), -1);
	assert_true(fcntl(pipe, F_GETFL) & O_PATH);
	close(pipe);
	close(fd);
}

/* libweir finds the descriptor by a link that the agent made beside its socket. */
static void links_lead_to_descriptors(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char target[64] = "", path[128];
	int pipe, fd = ask(HIGH), client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool later;

	(void)state;
	assert_int_equal(answer(fd, &pipe, &later), WEIR_PIPES_OK);
	snprintf(path, sizeof(path), "%s/" WEIR_PIPES_NAME "/%d/control", rig_folder,
		 WEIR_PIPES_FD);
	assert_true(readlink(path, target, sizeof(target) - 1) > 0);
	assert_string_equal(target, "/proc/self/fd/1000");
	assert_int_equal(dup2(pipe, WEIR_PIPES_FD), WEIR_PIPES_FD);
	snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", path);
	assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
	close(WEIR_PIPES_FD);
	close(client);
	close(pipe);
	close(fd);
	/* The mode goes, and the links with it. */
	agent.config.gpu.mode = GPU_MODE_TIMESLICE;
	pipes_link(&agent.pipes);
	assert_int_equal(lstat(path, &(struct stat){0}), -1);
}

static void without_a_server_there_is_none(void **state)
{
	static const uint8_t other[16] = "another";

	(void)state;
	expect_none(ask_with(LOW, other));
	agent.config.gpu.mode = GPU_MODE_MPS;
	expect_none(ask(LOW));
	agent.config.gpu.mode = GPU_MODE_MPS_PER_LEVEL;
	free(agent.config.mps.program);
	agent.config.mps.program = strdup("/nowhere/control");
	expect_none(ask(LOW));
	free(agent.config.mps.program);
	agent.config.mps.program = strdup(program);
}

static void zeros_mean_the_only_gpu(void **state)
{
	static const uint8_t any[16];
	int pipe, fd = ask_with(LOW, any);
	bool later;

	(void)state;
	assert_int_equal(answer(fd, &pipe, &later), WEIR_PIPES_OK);
	close(pipe);
	close(fd);
}

/* What a tenant says of itself changes nothing, and nobody asks twice at once. */
static void lies_are_refused(void **state)
{
	struct weir_pipes question = {0};
	struct weir_pipes_answer foreign = {0};

	(void)state;
	fake_leave(&first);
	rig_wait(agent.sessions.n == 0);
	weir_header_init(&question.header, WEIR_PIPES, sizeof(question));
	weir_header_init(&foreign.header, WEIR_PIPES_ANSWER, sizeof(foreign));
	struct fake fake = fake_join(LOW);
	assert_int_equal(weir_message_send(fake.fd, &question, sizeof(question), NULL, 0), 0);
	expect_refused(fake.fd, WEIR_REFUSED_MESSAGE);
	int fd = fake_connect();
	assert_int_equal(weir_message_send(fd, &foreign, sizeof(foreign), NULL, 0), 0);
	expect_refused(fd, WEIR_REFUSED_MESSAGE);
	fd = fake_connect();
	assert_int_equal(weir_message_send(fd, &question, sizeof(question), &fd, 1), 0);
	expect_refused(fd, WEIR_REFUSED_MESSAGE);
	/* It goes away while it waits. */
	fd = ask(HIGH);
	rig_pump();
	close(fd);
	rig_wait(agent.sessions.n == 0);
	first = fake_join(NORMAL);
}

static void in_the_wrong_server(void **state)
{
	(void)state;
	join(LOW, 0);
	join(NORMAL, 1);
	struct mps_daemon *low = daemon_of(0), *high = mps_want_level(&agent.mps, gpu, 2);
	rig_wait(high->state == MPS_UP);
	tell(0, "sim_enter", getpid());
	rig_wait(low->n_clients == 1);
	tell(2, "sim_enter", getpid());
	rig_wait(high->foreign == 1);
	assert_int_equal(low->foreign, 0);
	/* It is told once. */
	uint64_t looked = agent.pipes.pruned;
	agent.pipes.pruned = 0;
	rig_wait(agent.pipes.pruned != 0 && agent.pipes.pruned != looked);
	assert_int_equal(high->foreign, 1);
	tell(0, "sim_leave", getpid());
	tell(2, "sim_leave", getpid());
}

/* The server's hand-over. */

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
	rig_wait(__atomic_load_n(&slice, __ATOMIC_SEQ_CST) == SLICE_BELOW);
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
	rig_wait(__atomic_load_n(&stopped, __ATOMIC_SEQ_CST));
	/* Its process hears until when, again and again. */
	uint64_t until = expect_stopped(fd);
	assert_true(until > loop_now());
	assert_true(expect_stopped(fd) > until);
	scheduler_hold(&agent.scheduler, clients[0], 0);
	while (expect_stopped(fd))
		;
	rig_wait(!__atomic_load_n(&stopped, __ATOMIC_SEQ_CST));
	/* One that comes meanwhile lets it go on, too. */
	scheduler_hold(&agent.scheduler, clients[0], 600 * NS_PER_S);
	rig_wait(__atomic_load_n(&stopped, __ATOMIC_SEQ_CST));
	struct fake three = fake_join(LOW);
	rig_wait(!__atomic_load_n(&stopped, __ATOMIC_SEQ_CST));
	close(fd);
	fake_leave(&one);
	fake_leave(&two);
	fake_leave(&three);
}

static void a_new_level_has_another_server(void **state)
{
	struct weir_hello hello = fake_hello(WEIR_BIT_NONE);
	struct fake fake = {.fd = fake_connect()};
	union weir_message message;
	int fds[WEIR_FDS_MAX];

	(void)state;
	join(LOW, 0);
	next_identity.uid = LOW;
	hello.flags = WEIR_HELLO_TAKES_BIT | WEIR_HELLO_TAKES_PIPES;
	assert_int_equal(weir_message_send(fake.fd, &hello, sizeof(hello), NULL, 0), 0);
	rig_pump();
	fake_welcome(&fake);
	agent.config.rules[0].level = 2;
	for (struct tenant *tenant = agent.tenants.all; tenant; tenant = tenant->hh.next)
		sessions_decide(&agent.sessions, tenant);
	do
		rig_wait(fake_receive(fake.fd, &message, fds) == 0);
	while (message.header.type == WEIR_LEVEL);
	assert_int_equal(message.header.type, WEIR_PIPES_ANSWER);
	assert_int_equal(message.pipes_answer.level, 2);
	assert_true(is_socket_of(fds[0], 2));
	close(fds[0]);
	fake_leave(&fake);
}

/* The next agent finds the daemons. */
static void daemons_outlive_the_agent(void **state)
{
	(void)state;
	join(LOW, 0);
	pid_t pid = daemon_of(0)->pid;
	tell(0, "sim_enter", getpid());
	mps_deinit(&agent.mps);
	assert_int_equal(mps_init(&agent.mps, &agent.loop, &agent.config.mps), 0);
	assert_int_equal(daemon_of(0)->state, MPS_DRAINING);
	mps_allow_levels(&agent.mps, gpu, true);
	rig_wait(daemon_of(0)->state == MPS_UP);
	assert_int_equal(daemon_of(0)->pid, pid);
	/* Without the mode they end with their last client. */
	mps_allow_levels(&agent.mps, gpu, false);
	tell(0, "sim_leave", getpid());
	rig_wait(daemon_of(0)->state == MPS_ENDED);
}

static int set_up(void **state)
{
	struct config_mps *mps = &agent.config.mps;

	rig_set_up(state);
	agent.config.rules[0].level = 0;
	agent.config.rules[1].level = 1;
	agent.config.rules[2].level = 2;
	free(mps->program);
	free(mps->dir);
	mps->program = strdup(program);
	assert_true(asprintf(&mps->dir, "%s/mps", rig_folder) > 0);
	mps->check = 20 * NS_PER_MS;
	mps->keep = true;
	agent.config.gpu.mode = GPU_MODE_MPS_PER_LEVEL;
	slice = 0;
	stopped = false;
	pipes_link(&agent.pipes);
	first = fake_join(NORMAL);
	gpu = agent.gpus.all;
	self_test_off(&gpu->self_test, "the test's driver works");
	gpu->self_test.state = SELF_TEST_WORKS;
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	agent.config.mps.keep = false;
	rig_tear_down(state);
	snprintf(command, sizeof(command), "rm -rf %s/mps %s/mps-pipes", rig_folder, rig_folder);
	return system(command);
}

static int find_program(void **state)
{
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 32);

	program[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(program, '/');
	if (!slash)
		return -1;
	snprintf(slash, 32, "/../bin/sim-mps-control");
	return rig_make_folder(state);
}

#define PIPES_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PIPES_TEST(each_level_has_a_server),
		PIPES_TEST(a_descriptor_leads_nowhere_else),
		PIPES_TEST(links_lead_to_descriptors),
		PIPES_TEST(without_a_server_there_is_none),
		PIPES_TEST(zeros_mean_the_only_gpu),
		PIPES_TEST(lies_are_refused),
		PIPES_TEST(in_the_wrong_server),
		PIPES_TEST(servers_get_slices),
		PIPES_TEST(others_are_no_servers),
		PIPES_TEST(held_servers_stop),
		PIPES_TEST(a_new_level_has_another_server),
		PIPES_TEST(daemons_outlive_the_agent),
	};

	return cmocka_run_group_tests(tests, find_program, rig_remove_folder);
}
