/* MPS: the server has the compute channel group of its clients, and what hits one hits all. The
 * daemon is e2e/simcuda's stand-in. The test's own process is no client. */
#include "channels-fixture.h"

#include <fcntl.h>
#include <limits.h>

#define PATIENCE 60000 /* ms */

struct daemon {
	pid_t pid;
	char folder[64]; /* of its pipes */
	char seen[64];   /* where its server's objects are written */
};

static const char *built(const char *what)
{
	static char path[PATH_MAX];
	char self[PATH_MAX / 2];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(n > 0);
	self[n] = '\0';
	snprintf(path, sizeof(path), "%.*s/../%s", (int)(strrchr(self, '/') - self), self, what);
	return path;
}

static struct daemon start_daemon(void)
{
	struct daemon daemon = {.folder = "/tmp/weir-mps-XXXXXX"};
	char control[256];

	assert_non_null(mkdtemp(daemon.folder));
	snprintf(control, sizeof(control), "%s/control", daemon.folder);
	snprintf(daemon.seen, sizeof(daemon.seen), "%s/seen", daemon.folder);
	close(open(daemon.seen, O_CREAT | O_WRONLY, 0600));
	daemon.pid = fork();
	if (!daemon.pid) {
		const char *options = getenv("ASAN_OPTIONS");

		/* A sanitizer wants to be the first library. */
		snprintf(control, sizeof(control), "%s:verify_asan_link_order=0",
			 options ? options : "");
		setenv("ASAN_OPTIONS", control, 1);
		setenv("LD_PRELOAD", built("lib/simwatch.so"), 1);
		setenv("TEST_SEEN", daemon.seen, 1);
		setenv("CUDA_MPS_PIPE_DIRECTORY", daemon.folder, 1);
		close(1); /* its greeting */
		open("/dev/null", O_WRONLY);
		execl(built("bin/sim-mps-control"), "sim-mps-control", "-f", NULL);
		_exit(127);
	}
	for (int i = 0; access(control, F_OK) < 0; i++) {
		assert_true(i < PATIENCE);
		usleep(1000);
	}
	return daemon;
}

static void end_daemon(struct daemon *daemon)
{
	char command[128];

	kill(daemon->pid, SIGKILL);
	waitpid(daemon->pid, NULL, 0);
	snprintf(command, sizeof(command), "rm -rf %s", daemon->folder);
	assert_int_equal(system(command), 0);
}

/* Its answer's first line. */
static const char *ask(const struct daemon *daemon, const char *words)
{
	static char line[64];
	char command[PATH_MAX + 128];
	FILE *out;

	snprintf(command, sizeof(command), "echo %s | CUDA_MPS_PIPE_DIRECTORY=%s %s", words,
		 daemon->folder, built("bin/sim-mps-control"));
	line[0] = '\0';
	out = popen(command, "r");
	assert_non_null(out);
	if (!fgets(line, sizeof(line), out))
		line[0] = '\0';
	pclose(out);
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static pid_t server_of(const struct daemon *daemon)
{
	return atoi(ask(daemon, "get_server_list"));
}

static void await_status(const struct daemon *daemon, const char *status)
{
	char words[64];

	snprintf(words, sizeof(words), "get_server_status %d", (int)server_of(daemon));
	for (int i = 0; strcmp(ask(daemon, words), status) != 0; i++) {
		assert_true(i < PATIENCE / 10);
		usleep(10000);
	}
}

static struct other start_under(const struct daemon *daemon, const char *task)
{
	struct other other;

	setenv("CUDA_MPS_PIPE_DIRECTORY", daemon->folder, 1);
	other = start_client(task, own_folder());
	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
	return other;
}

/* What the library that is preloaded into the server has seen, with the server's descriptor. */
static struct seen objects_of_server(const struct daemon *daemon)
{
	struct seen theirs;
	FILE *file = fopen(daemon->seen, "r");
	int server = (int)syscall(SYS_pidfd_open, server_of(daemon), 0);

	assert_non_null(file);
	assert_int_equal(fread(&theirs, sizeof(theirs), 1, file), 1);
	fclose(file);
	assert_true(server >= 0);
	theirs.fd = (int)syscall(SYS_pidfd_getfd, server, theirs.fd, 0);
	assert_true(theirs.fd >= 0);
	close(server);
	return theirs;
}

/* The other processes. Those that must be hit end well if they are. */
static int other(const char *task, int socket)
{
	CUstream s;

	share_board();
	setup(NULL);
	ok(cuMemHostRegister(board, sizeof(*board), CU_MEMHOSTREGISTER_DEVICEMAP));
	s = new_stream(CU_STREAM_NON_BLOCKING);
	if (!strncmp(task, "hold", 4))
		hold_on_board(s, 2);
	if (!strcmp(task, "gate-hit"))
		ok(cuStreamWaitValue32(s, pointer_to(&board->go), 1, CU_STREAM_WAIT_VALUE_EQ));
	send_seen(socket, &seen);
	if (!strcmp(task, "wild")) {
		CUdeviceptr nowhere = 64;

		wait_for(&board->ready, 1);
		ok(launch2(fx.wild, 1, s, &nowhere, NULL));
	}
	if (!strcmp(task, "idle"))
		pause();
	if (!strcmp(task, "hold-ended"))
		return cuStreamSynchronize(s) != CUDA_ERROR_MPS_CLIENT_TERMINATED ||
		       cuCtxSynchronize() != CUDA_ERROR_MPS_CLIENT_TERMINATED;
	return cuStreamSynchronize(s) != (strstr(task, "hit") || !strcmp(task, "wild")
						  ? CUDA_ERROR_ILLEGAL_ADDRESS
						  : CUDA_SUCCESS);
}

/* The server's group is its clients'; only they stop. */
static void test_group_of_the_server(void **state)
{
	struct daemon daemon;
	struct other client;
	struct seen server;
	char words[64];

	(void)state;
	begin();
	daemon = start_daemon();
	client = start_under(&daemon, "hold");
	assert_int_equal(client.seen.compute, 0);
	assert_int_not_equal(client.seen.copy, 0);
	snprintf(words, sizeof(words), "get_client_list %d", (int)server_of(&daemon));
	assert_int_equal(atoi(ask(&daemon, words)), client.pid);
	server = objects_of_server(&daemon);
	assert_int_equal(server.n_channels, 8);
	assert_int_equal(set_slice(&server, 50), RM_OK);
	disable(&server);
	use_all_slots();
	atomic_store(&board->go, 1);
	use_all_slots();
	assert_int_equal(board->list[0], 0);
	enable(&server);
	expect_exit(&client);
	assert_int_equal(board->list[0], 2);
	close(server.fd);
	end_daemon(&daemon);
}

/* A client that is killed in mid-kernel: those of its server fail, others do not. */
static void test_killed_in_mid_kernel(void **state)
{
	struct daemon daemon, apart;
	struct other victim, queued, gated, idle, other;

	(void)state;
	begin();
	daemon = start_daemon();
	apart = start_daemon();
	victim = start_under(&daemon, "hold");
	queued = start_under(&daemon, "hold-hit");
	gated = start_under(&daemon, "gate-hit");
	idle = start_under(&daemon, "idle");
	other = start_under(&apart, "hold");
	await_status(&daemon, "ACTIVE");
	kill_hard(&victim);
	expect_exit(&queued);
	expect_exit(&gated);
	await_status(&daemon, "FAULT");
	kill_hard(&idle);
	await_status(&daemon, "ACTIVE");
	atomic_store(&board->go, 1);
	expect_exit(&other);
	await_status(&apart, "ACTIVE");
	use_all_slots();
	/* The server recovers. */
	victim = start_under(&daemon, "hold");
	expect_exit(&victim);
	end_daemon(&daemon);
	end_daemon(&apart);
}

static void test_fault_of_a_client(void **state)
{
	struct daemon daemon;
	struct other wild, gated;

	(void)state;
	begin();
	daemon = start_daemon();
	wild = start_under(&daemon, "wild");
	gated = start_under(&daemon, "gate-hit");
	atomic_store(&board->ready, 1);
	expect_exit(&wild);
	expect_exit(&gated);
	end_daemon(&daemon);
}

/* The server ends a client's work in mid-kernel: no other client is hit, nor when it then dies. */
static void test_terminated(void **state)
{
	struct daemon daemon;
	struct other ended, client;
	char words[64];

	(void)state;
	begin();
	daemon = start_daemon();
	ended = start_under(&daemon, "hold-ended");
	client = start_under(&daemon, "hold");
	snprintf(words, sizeof(words), "terminate_client %d %d", (int)server_of(&daemon),
		 (int)ended.pid);
	assert_string_equal(ask(&daemon, words), "");
	expect_exit(&ended);
	snprintf(words, sizeof(words), "terminate_client %d 1", (int)server_of(&daemon));
	assert_string_equal(ask(&daemon, words), "Client 1 not found");
	await_status(&daemon, "ACTIVE");
	atomic_store(&board->go, 1);
	expect_exit(&client);
	end_daemon(&daemon);
}

/* Killing a client without a kernel on the GPU harms no other client. */
static void test_killed_idle(void **state)
{
	struct daemon daemon;
	struct other idle, client;

	(void)state;
	begin();
	daemon = start_daemon();
	idle = start_under(&daemon, "idle");
	client = start_under(&daemon, "hold");
	kill_hard(&idle);
	atomic_store(&board->go, 1);
	expect_exit(&client);
	end_daemon(&daemon);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_shared, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_group_of_the_server), TEST(test_killed_in_mid_kernel),
		TEST(test_fault_of_a_client),   TEST(test_killed_idle),
		TEST(test_terminated),
	};
	int failed;

	if (argc > 2)
		return other(argv[1], atoi(argv[2]));
	make_board();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_board();
	return failed;
}
