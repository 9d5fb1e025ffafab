/* Only the process that holds the lock may stop clients by SIGSTOP. When it is killed, they get
 * SIGCONT. In these tests, child processes take the place of agents, each with its weir-freeze. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/process.h"
#include "hardware/freeze-watch.h"
#include "hardware/freeze.h"

#include "weir/base.h"

#define GPU       "GPU-1"
#define ROUNDS    40
#define MOMENT_US 3000 /* an agent has stopped the client by then, or has not */

static char state[] = "/tmp/weir-freeze-XXXXXX";
static struct folder root = {-1, -1};
static struct freezer freezer;
static pid_t client;
static int client_fd;

static _Noreturn void wait_for_signals(void)
{
	for (;;)
		pause();
}

static int set_up(void **unused)
{
	(void)unused;
	client = fork();
	if (client == 0)
		wait_for_signals();
	client_fd = process_open(client);
	freezer = (struct freezer){&root, -1};
	return client < 0 || client_fd < 0;
}

static FILE *children_of(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	return file;
}

/* What agents leave are the test's children, too. */
static int tear_down(void **unused)
{
	pid_t pid;

	(void)unused;
	freezer_deinit(&freezer);
	do {
		FILE *file = children_of(getpid());
		while (fscanf(file, "%d", &pid) == 1)
			kill(pid, SIGKILL);
		fclose(file);
	} while (waitpid(-1, NULL, 0) > 0);
	close(client_fd);
	return 0;
}

static bool is_stopped(void)
{
	char path[64], line[512];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)client);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	fclose(file);
	return strstr(line, ") T") != NULL;
}

/* The kernel stops it soon after the signal. */
static void await_stopped(void)
{
	for (unsigned i = 0; i < 100000 && !is_stopped(); i++)
		usleep(100);
	assert_true(is_stopped());
}

static bool is_noted(void)
{
	char name[64];

	snprintf(name, sizeof(name), GPU "/frozen-%d", (int)client);
	return faccessat(root.dir, name, F_OK, 0) == 0;
}

/* An agent that stops the client as soon as it may, and says so. */
static _Noreturn void be_agent(int says)
{
	freezer_deinit(&freezer);
	if (freeze_watch_start(state) < 0)
		_exit(1);
	freezer_claim(&freezer);
	while (freeze_stop(&freezer, GPU, client, client_fd) < 0)
		usleep(100);
	if (write(says, "x", 1) != 1)
		_exit(1);
	wait_for_signals();
}

struct agent {
	pid_t pid;
	int hears;
};

static struct agent start_agent(void)
{
	struct agent agent = {.pid = -1};
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	agent = (struct agent){fork(), fds[0]};
	if (agent.pid == 0)
		be_agent(fds[1]);
	assert_true(agent.pid > 0);
	close(fds[1]);
	return agent;
}

static void await_stop(const struct agent *agent)
{
	char byte;

	assert_int_equal(read(agent->hears, &byte, 1), 1);
	assert_true(is_noted());
	await_stopped();
}

static void kill_agent(struct agent *agent)
{
	assert_int_equal(kill(agent->pid, SIGKILL), 0);
	close(agent->hears);
}

/* The process beside the agent. */
static pid_t watch_of(const struct agent *agent)
{
	pid_t watch = -1;
	FILE *file = children_of(agent->pid);

	assert_int_equal(fscanf(file, "%d", &watch), 1);
	fclose(file);
	return watch;
}

/* Whether a child of the test is neither the client nor @agent. */
static bool has_others(const struct agent *agent)
{
	FILE *file = children_of(getpid());
	bool found = false;
	pid_t pid;

	while (fscanf(file, "%d", &pid) == 1)
		found |= pid != client && (!agent || pid != agent->pid);
	fclose(file);
	return found;
}

/* Killed agents are gone, and so are the processes that were beside them. */
static void await_others(const struct agent *agent)
{
	while (has_others(agent))
		if (waitpid(-1, NULL, WNOHANG) == 0)
			usleep(100);
}

static void test_one_owner(void **unused)
{
	(void)unused;
	assert_int_equal(freezer_claim(&freezer), 0);
	assert_int_equal(freezer_claim(&freezer), 0);
	pid_t other = fork();
	if (other == 0) {
		struct freezer its = {&root, -1};
		bool refused = freezer_claim(&its) == -EAGAIN &&
			       freeze_stop(&its, GPU, client, client_fd) == -EAGAIN;
		_exit(refused && !is_stopped() && !is_noted() ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_int_equal(status, 0);
	assert_int_equal(freeze_stop(&freezer, GPU, client, client_fd), 0);
	assert_true(is_noted());
	await_stopped();
	freeze_go_on(&freezer, GPU, client, client_fd);
	assert_false(is_stopped() || is_noted());
}

/* A process that has the pid of one that was stopped. */
static void test_another_process(void **unused)
{
	char name[64];

	(void)unused;
	snprintf(name, sizeof(name), GPU "/frozen-%d", (int)client);
	int fd = openat(root.dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(dprintf(fd, "%d\n", 1) > 0);
	close(fd);
	kill(client, SIGSTOP);
	await_stopped();
	assert_int_equal(freezer_claim(&freezer), 0);
	assert_true(is_stopped());
	assert_false(is_noted());
}

/* Without a process beside it: the next agent does it. */
static void test_the_next_agent(void **unused)
{
	(void)unused;
	pid_t agent = fork();
	if (agent == 0)
		_exit(freeze_stop(&freezer, GPU, client, client_fd) < 0);
	assert_int_equal(waitpid(agent, NULL, 0), agent);
	await_stopped();
	assert_int_equal(freezer_claim(&freezer), 0);
	assert_false(is_stopped() || is_noted());
}

/* Then no agent and no weir-freeze is left, and the client runs. */
static void end_with(struct agent *agent)
{
	if (agent)
		kill_agent(agent);
	await_others(NULL);
	assert_false(is_stopped() || is_noted());
}

/* @agent is the only one left, and has stopped the client. */
static void assert_stopped_by(struct agent *agent)
{
	await_others(agent);
	assert_true(is_stopped() && is_noted());
}

static void test_killed(void **unused)
{
	(void)unused;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct agent agent = start_agent();
		await_stop(&agent);
		end_with(&agent);
	}
}

/* The next agent starts at once. What it stops stays stopped, and is let go on when it is killed,
 * too. */
static void test_killed_and_followed(void **unused)
{
	struct agent agent = start_agent();

	(void)unused;
	await_stop(&agent);
	for (unsigned i = 0; i < ROUNDS; i++) {
		kill_agent(&agent);
		agent = start_agent();
		await_stop(&agent);
		assert_stopped_by(&agent);
	}
	end_with(&agent);
}

/* The process beside the former agent does not run until the next one has stopped the client. */
static void test_a_late_one(void **unused)
{
	struct agent former = start_agent();

	(void)unused;
	await_stop(&former);
	pid_t late = watch_of(&former);
	assert_int_equal(kill(late, SIGSTOP), 0);
	kill_agent(&former);
	assert_int_equal(waitpid(former.pid, NULL, 0), former.pid);
	struct agent next = start_agent();
	await_stop(&next);
	assert_int_equal(kill(late, SIGCONT), 0);
	assert_stopped_by(&next);
	end_with(&next);
}

/* Each agent is killed at another time, also while it starts, stops the client or lets it go on. */
static void test_killed_at_any_time(void **unused)
{
	(void)unused;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct agent agent = start_agent();
		usleep(i * MOMENT_US / ROUNDS);
		kill_agent(&agent);
		if (i % 2)
			continue;
		agent = start_agent();
		await_stop(&agent);
		assert_stopped_by(&agent);
		end_with(&agent);
	}
	end_with(NULL);
}

static int make_state(void **unused)
{
	(void)unused;
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || !mkdtemp(state))
		return -1;
	root.dir = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root.dir < 0 || mkdirat(root.dir, GPU, 0700) < 0;
}

static int remove_state(void **unused)
{
	(void)unused;
	unlinkat(root.dir, "freezer", 0);
	unlinkat(root.dir, GPU, AT_REMOVEDIR);
	close(root.dir);
	return rmdir(state);
}

#define FREEZE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FREEZE_TEST(test_one_owner),           FREEZE_TEST(test_another_process),
		FREEZE_TEST(test_the_next_agent),      FREEZE_TEST(test_killed),
		FREEZE_TEST(test_killed_and_followed), FREEZE_TEST(test_a_late_one),
		FREEZE_TEST(test_killed_at_any_time),
	};
	return cmocka_run_group_tests(tests, make_state, remove_state);
}
