/* Before its first call of the driver a process asks which MPS server it joins. Each test plays the
 * agent, and a forked child is the process. */
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "weir/base.h"

#define VARIABLE "CUDA_MPS_PIPE_DIRECTORY"
#define PATIENCE 60000 /* ms */

static char folder[] = "/tmp/weir-pipes-XXXXXX";
static int listener; /* the agent's */
static int servers[2];

static const char *path_of(const char *name)
{
	static char path[96];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static int listen_at(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path_of(name));
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

/* As the agent has it. */
static void make_links(void)
{
	char name[64], target[64];

	assert_int_equal(mkdir(path_of(WEIR_PIPES_NAME), 0755), 0);
	for (int i = WEIR_PIPES_FD; i < WEIR_PIPES_FD + WEIR_PIPES_NUMBERS; i++) {
		snprintf(name, sizeof(name), WEIR_PIPES_NAME "/%d", i);
		assert_int_equal(mkdir(path_of(name), 0755), 0);
		snprintf(name, sizeof(name), WEIR_PIPES_NAME "/%d/control", i);
		snprintf(target, sizeof(target), "/proc/self/fd/%d", i);
		assert_int_equal(symlink(target, path_of(name)), 0);
	}
}

static bool readable(int fd)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	return poll(&wait, 1, PATIENCE) == 1;
}

/* Takes the connection and its question. */
static int asked(struct weir_pipes *question)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	size_t n;

	assert_true(readable(listener));
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(readable(fd));
	assert_int_equal(weir_message_receive(fd, &message, fds, &n), 0);
	assert_int_equal(message.header.type, WEIR_PIPES);
	*question = message.pipes;
	return fd;
}

static void answer(int fd, enum weir_pipes_status status, const char *server)
{
	struct weir_pipes_answer message = {.status = status};
	int pipe = server ? open(path_of(server), O_PATH | O_CLOEXEC) : -1;

	weir_header_init(&message.header, WEIR_PIPES_ANSWER, sizeof(message));
	assert_int_equal(weir_message_send(fd, &message, sizeof(message), &pipe, server ? 1 : 0),
			 0);
	closep(&pipe);
}

/* Whom libcuda would reach. */
static bool reaches(int server)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	const char *given = getenv(VARIABLE);

	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/control", given ? given : "");
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || !readable(server))
		return false;
	return close(accept(server, NULL, NULL)) == 0 && close(fd) == 0;
}

static int init(void)
{
	return cuInit(0) == CUDA_SUCCESS ? 0 : 100;
}

static int joins_the_first(void)
{
	return init() || !reaches(servers[0]);
}

static pid_t process(int (*body)(void))
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(body());
	return pid;
}

static void expect_success(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void joins_the_server_that_the_agent_says(void **state)
{
	static const uint8_t gpu[16] = {0x12, 0x34, [15] = 0xef};
	struct weir_pipes question;

	(void)state;
	setenv("WEIR_GPU", "GPU-12340000-0000-0000-0000-0000000000ef", 1);
	pid_t pid = process(joins_the_first);
	int fd = asked(&question);
	assert_memory_equal(question.gpu, gpu, 16);
	answer(fd, WEIR_PIPES_LATER, NULL);
	answer(fd, WEIR_PIPES_OK, "server-0");
	expect_success(pid);
	close(fd);
	unsetenv("WEIR_GPU");
}

/* It does not have the parent's descriptor. */
static int child_of_one(void)
{
	if (joins_the_first())
		return 1;
	setenv("WEIR_CHILD", "1", 1);
	execl("/proc/self/exe", "child", NULL);
	return 127;
}

static void children_ask_for_themselves(void **state)
{
	static const uint8_t any[16];
	struct weir_pipes question;

	(void)state;
	pid_t pid = process(child_of_one);
	int fd = asked(&question);
	assert_memory_equal(question.gpu, any, 16);
	answer(fd, WEIR_PIPES_OK, "server-0");
	close(fd);
	fd = asked(&question);
	answer(fd, WEIR_PIPES_NONE, NULL);
	expect_success(pid);
	close(fd);
}

/* What the parent set leads nowhere; libcuda must not see it. */
static int child(void)
{
	return !getenv(VARIABLE) || init() || getenv(VARIABLE);
}

static int forks(void)
{
	int status;

	if (joins_the_first())
		return 1;
	pid_t pid = fork();
	if (pid == 0)
		_exit(init() || !reaches(servers[1]));
	return waitpid(pid, &status, 0) != pid || status;
}

static void forked_children_too(void **state)
{
	struct weir_pipes question;

	(void)state;
	pid_t pid = process(forks);
	for (int i = 0; i < 2; i++) {
		int fd = asked(&question);
		answer(fd, WEIR_PIPES_OK, i ? "server-1" : "server-0");
		close(fd);
	}
	expect_success(pid);
}

static int keeps_its_own(void)
{
	setenv(VARIABLE, "/elsewhere", 1);
	int failed = init();
	const char *value = getenv(VARIABLE);
	return failed || !value || strcmp(value, "/elsewhere") != 0;
}

static void a_programs_own_choice_stays(void **state)
{
	struct pollfd wait = {.fd = listener, .events = POLLIN};

	(void)state;
	expect_success(process(keeps_its_own));
	assert_int_equal(poll(&wait, 1, 0), 0);
}

static int goes_without(void)
{
	return init() || getenv(VARIABLE);
}

static void refusals_are_no_errors(void **state)
{
	struct weir_refused refused = {.reason = WEIR_REFUSED_GPU};
	struct weir_pipes question;

	(void)state;
	weir_header_init(&refused.header, WEIR_REFUSED, sizeof(refused));
	pid_t pid = process(goes_without);
	int fd = asked(&question);
	assert_int_equal(weir_message_send(fd, &refused, sizeof(refused), NULL, 0), 0);
	expect_success(pid);
	close(fd);
	/* An old agent ignores the question, and sees the end of the connection. */
	pid = process(goes_without);
	fd = asked(&question);
	close(fd);
	expect_success(pid);
}

static int has_few_descriptors(void)
{
	struct rlimit few = {WEIR_PIPES_FD - 1, WEIR_PIPES_FD - 1};

	return setrlimit(RLIMIT_NOFILE, &few) || goes_without();
}

static void without_the_number_it_goes_without(void **state)
{
	struct weir_pipes question;

	(void)state;
	pid_t pid = process(has_few_descriptors);
	int fd = asked(&question);
	answer(fd, WEIR_PIPES_OK, "server-0");
	expect_success(pid);
	close(fd);
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	setenv("WEIR_DRIVER", NULL_DRIVER, 1);
	setenv("WEIR_SOCKET", path_of("agent.sock"), 1);
	unsetenv(VARIABLE);
	listener = listen_at("agent.sock");
	servers[0] = listen_at("server-0");
	servers[1] = listen_at("server-1");
	make_links();
	return 0;
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(joins_the_server_that_the_agent_says),
		cmocka_unit_test(children_ask_for_themselves),
		cmocka_unit_test(forked_children_too),
		cmocka_unit_test(a_programs_own_choice_stays),
		cmocka_unit_test(refusals_are_no_errors),
		cmocka_unit_test(without_the_number_it_goes_without),
	};

	if (getenv("WEIR_CHILD"))
		return child();
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
