/* Mode mps-per-level: processes ask which server they join. The test's process also plays a tenant
 * that cheats. */
#include "pipes-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		PIPES_TEST(each_level_has_a_server),   PIPES_TEST(a_descriptor_leads_nowhere_else),
		PIPES_TEST(links_lead_to_descriptors), PIPES_TEST(without_a_server_there_is_none),
		PIPES_TEST(zeros_mean_the_only_gpu),   PIPES_TEST(lies_are_refused),
		PIPES_TEST(in_the_wrong_server),       PIPES_TEST(a_new_level_has_another_server),
		PIPES_TEST(daemons_outlive_the_agent),
	};

	return RUN_PIPES_TESTS(tests);
}
