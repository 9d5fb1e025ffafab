/* What goes wrong around a loop: full disks, connections that end in the middle, many slow clients,
 * the host process killed. Nothing may leak, and the others go on. */
#include "fixture.h"

#include "tests/descriptors.h"
#include "workloads/loop/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOW_BYTES (256u << 10)

static const struct weir_loop_options usual = {.threads = 64};
static const struct weir_loop_options pool = {.threads = 64, .no_uring = true};
static const struct weir_loop_options *const both[] = {&usual, &pool};

static void make_file(const char *path, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	for (size_t i = 0; i < size; i++)
		fputc('a', file);
	assert_int_equal(fclose(file), 0);
}

/* Also in the middle of a transfer of several pieces. */
static void a_full_disk_is_an_error(void **state)
{
	struct rlimit before, limit;

	(void)state;
	make_file(fixture_path("from"), 5u << 20);
	fixture_text(0, fixture_path("from"));
	for (size_t i = 0; i < 2; i++) {
		fixture_text(256, "/dev/full");
		assert_int_equal(fixture_run("copy_file", both[i], 1000), 0);
		assert_int_equal((int64_t)fx.seen[0], -ENOSPC);
		assert_int_equal(fixture_run("copy_file", both[i], 5u << 20), 0);
		assert_int_equal((int64_t)fx.seen[0], -ENOSPC);

		fixture_text(256, fixture_path("limited"));
		signal(SIGXFSZ, SIG_IGN);
		getrlimit(RLIMIT_FSIZE, &before);
		limit = before;
		limit.rlim_cur = (2u << 20) + 100;
		setrlimit(RLIMIT_FSIZE, &limit);
		assert_int_equal(fixture_run("copy_file", both[i], 5u << 20), 0);
		setrlimit(RLIMIT_FSIZE, &before);
		/* What the kernel is told has been written. */
		assert_int_equal((int64_t)fx.seen[0], (2u << 20) + 100);
	}
}

static void nothing_is_left_open(void **state)
{
	(void)state;
	int before = open_descriptors();

	make_file(fixture_path("from"), 10000);
	for (size_t i = 0; i < 2; i++) {
		/* The kernel does not close the file that it cannot copy. */
		fixture_text(0, fixture_path("from"));
		fixture_text(256, "/dev/full");
		assert_int_equal(fixture_run("copy_file", both[i], 1000), 0);
		assert_int_equal(open_descriptors(), before);
	}
}

/* Of a loop that runs. */
static uint16_t port_of(const struct weir_loop *loop)
{
	uint16_t port;

	while (!(port = weir_loop_port(loop, 0)))
		usleep(1000);
	return port;
}

/* One byte each, all before the first answer is read; then all end, every second one by a reset. */
struct crowd {
	const struct weir_loop *loop;
	unsigned clients, answered;
};

static void end_client(int fd, bool resets)
{
	if (resets)
		sockets_reset(fd);
	else
		close(fd);
}

static void be_clients(struct crowd *crowd, uint16_t port)
{
	int *fds = calloc(crowd->clients, sizeof(int));
	char byte = 'a';

	for (unsigned i = 0; i < crowd->clients; i++)
		fds[i] = sockets_connect(port, false);
	for (unsigned i = 0; i < crowd->clients; i++)
		(void)!send(fds[i], &byte, 1, MSG_NOSIGNAL);
	for (unsigned i = 0; i < crowd->clients; i++)
		crowd->answered += recv(fds[i], &byte, 1, 0) == 1 && byte == 'A';
	for (unsigned i = 0; i < crowd->clients; i++)
		end_client(fds[i], i & 1);
	free(fds);
}

static void *be_crowd(void *data)
{
	struct crowd *crowd = data;

	be_clients(crowd, port_of(crowd->loop));
	return NULL;
}

static void serve_crowd(const struct weir_loop_options *options, unsigned clients)
{
	struct crowd crowd = {.clients = clients};
	pthread_t thread;
	int before = open_descriptors();

	fixture_text(0, "127.0.0.1:0");
	struct weir_loop *loop = fixture_new("server", options);
	crowd.loop = loop;
	pthread_create(&thread, NULL, be_crowd, &crowd);
	assert_int_equal(fixture_finish(loop, clients), 0);
	pthread_join(thread, NULL);
	assert_int_equal(crowd.answered, clients);
	assert_int_equal(fx.seen[0], clients);
	assert_int_equal(open_descriptors(), before);
}

/* More clients than callbacks: 2 blocks of 8. */
static void many_slow_clients_are_served(void **state)
{
	struct rlimit limit;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	unsigned clients = limit.rlim_cur > 1500 ? 600 : 200;
	for (size_t i = 0; i < 2; i++)
		serve_crowd(both[i], clients);
}

/* In a process of their own, which has as many descriptors. It is told the port, and ends with 0 if
 * all were answered. */
static pid_t start_crowd(unsigned clients, int *told)
{
	struct crowd crowd = {.clients = clients};
	uint16_t port = 0;
	int pipes[2];

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	pid_t child = fork();
	if (!child) {
		close(pipes[1]);
		if (read(pipes[0], &port, sizeof(port)) == sizeof(port))
			be_clients(&crowd, port);
		_exit(crowd.answered != clients);
	}
	close(pipes[0]);
	*told = pipes[1];
	return child;
}

struct herald {
	const struct weir_loop *loop;
	int told;
};

static void *tell_port(void *data)
{
	const struct herald *herald = data;
	uint16_t port = port_of(herald->loop);

	(void)!write(herald->told, &port, sizeof(port));
	return NULL;
}

static void ten_thousand_slow_clients_are_served(void **state)
{
	const unsigned clients = 10000;
	struct weir_loop_options many = {.threads = 64, .files = clients + 100};
	struct rlimit limit;
	struct herald herald;
	pthread_t thread;
	int before = open_descriptors(), status = 0;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < clients + 200) {
		print_message("only %u descriptors: left out\n", (unsigned)limit.rlim_cur);
		skip();
	}
	pid_t crowd = start_crowd(clients, &herald.told);
	fixture_text(0, "127.0.0.1:0");
	struct weir_loop *loop = fixture_new("server", &many);
	herald.loop = loop;
	pthread_create(&thread, NULL, tell_port, &herald);
	assert_int_equal(fixture_finish(loop, clients), 0);
	pthread_join(thread, NULL);
	close(herald.told);
	assert_int_equal(waitpid(crowd, &status, 0), crowd);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	assert_int_equal(fx.seen[0], clients);
	assert_int_equal(open_descriptors(), before);
}

/* Those that find no room wait until one leaves. */
static void more_clients_than_files_wait(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct weir_loop_options few = *both[i];
		few.files = 8;
		struct weir_loop *loop = fixture_new("server", &few);
		struct crowd crowds[20];
		pthread_t threads[20];
		fixture_text(0, "127.0.0.1:0");
		for (size_t k = 0; k < 20; k++) {
			crowds[k] = (struct crowd){.loop = loop, .clients = 1};
			pthread_create(&threads[k], NULL, be_crowd, &crowds[k]);
		}
		assert_int_equal(fixture_finish(loop, 20), 0);
		for (size_t k = 0; k < 20; k++) {
			pthread_join(threads[k], NULL);
			assert_int_equal(crowds[k].answered, 1);
		}
	}
}

/* It sends on while it reads a few bytes now and then, so the loop's sends fit only in parts. */
static void *read_slowly(void *data)
{
	struct crowd *crowd = data;
	int fd = sockets_connect(port_of(crowd->loop), false), small = 16384;
	size_t sent = 0, came = 0;
	char out[4096], in[4000];
	bool good = true;

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	memset(out, 'a', sizeof(out));
	while (came < SLOW_BYTES && good) {
		size_t left = SLOW_BYTES - sent < sizeof(out) ? SLOW_BYTES - sent : sizeof(out);
		ssize_t n = left ? send(fd, out, left, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
		sent += n > 0 ? (size_t)n : 0;
		if (n > 0)
			continue;
		n = recv(fd, in, sizeof(in), 0);
		for (ssize_t i = 0; i < n; i++)
			good &= in[i] == 'A';
		came += n > 0 ? (size_t)n : 0;
		good &= n > 0;
	}
	crowd->answered = good;
	close(fd);
	return NULL;
}

static void slow_readers_get_all(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct crowd crowds[4];
		pthread_t threads[4];
		int before = open_descriptors();
		fixture_text(0, "127.0.0.1:0");
		struct weir_loop *loop = fixture_new("server", both[i]);
		for (size_t k = 0; k < 4; k++) {
			crowds[k] = (struct crowd){.loop = loop};
			pthread_create(&threads[k], NULL, read_slowly, &crowds[k]);
		}
		assert_int_equal(fixture_finish(loop, 4), 0);
		for (size_t k = 0; k < 4; k++) {
			pthread_join(threads[k], NULL);
			assert_int_equal(crowds[k].answered, 1);
		}
		assert_true(fx.seen[1] >= 4 * SLOW_BYTES);
		assert_int_equal(open_descriptors(), before);
	}
}

/* The other end dies while a large answer is on its way, and never reads. */
static void *never_read(void *data)
{
	struct crowd *crowd = data;
	int fd = sockets_connect(port_of(crowd->loop), false);
	char *bytes = calloc(1, 1u << 20);

	(void)!send(fd, bytes, 1u << 20, MSG_NOSIGNAL);
	usleep(50000);
	end_client(fd, true);
	free(bytes);
	return NULL;
}

static void a_client_that_never_reads_is_dropped(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct crowd crowd = {.clients = 1};
		pthread_t thread;
		int before = open_descriptors();
		fixture_text(0, "127.0.0.1:0");
		struct weir_loop *loop = fixture_new("server", both[i]);
		crowd.loop = loop;
		pthread_create(&thread, NULL, never_read, &crowd);
		assert_int_equal(fixture_finish(loop, 1), 0);
		pthread_join(thread, NULL);
		assert_int_equal(open_descriptors(), before);
	}
}

static void a_stopped_loop_leaves_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		int before = open_descriptors();
		struct weir_loop *loop = fixture_new("server", both[i]);
		weir_loop_stop(loop);
		fixture_text(0, "127.0.0.1:0");
		assert_int_equal(fixture_finish(loop, 1), -ECANCELED);
		assert_int_equal(open_descriptors(), before);
	}
}

/* Free memory of the GPU. */
static size_t free_memory(void)
{
	size_t left, all;

	assert_int_equal(cuMemGetInfo(&left, &all), CUDA_SUCCESS);
	return left;
}

/* Another process copies a large file again and again, and is killed in the middle. */
static void a_killed_loop_leaves_nothing(void **state)
{
	char from[128], to[128];

	(void)state;
	make_file(fixture_path("large"), 8u << 20);
	snprintf(from, sizeof(from), "%s", fixture_path("large"));
	snprintf(to, sizeof(to), "%s", fixture_path("copy"));
	for (unsigned i = 0; i < 4; i++) {
		size_t before = free_memory();
		pid_t child = fork();
		if (!child) {
			setenv("LD_LIBRARY_PATH", SIM_FOLDER, 1);
			execl(LOOP_RUNNER, LOOP_RUNNER, "--kernel", "copy_file", "--n",
			      i & 2 ? "3000000" : "3000", "--text", from, "--text2", to,
			      "--ready-file", fixture_path("ready"), i & 1 ? "--pool" : NULL, NULL);
			_exit(1);
		}
		while (access(fixture_path("ready"), F_OK) < 0 || access(to, F_OK) < 0)
			usleep(1000);
		usleep(20000 * i);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		unlink(fixture_path("ready"));
		unlink(to);
		while (free_memory() != before)
			usleep(1000);
		/* The GPU is free for others. */
		assert_int_equal(fixture_run("tasks", &usual, 10), 0);
		assert_int_equal(fx.seen[0], 22);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_disk_is_an_error),
		cmocka_unit_test(nothing_is_left_open),
		cmocka_unit_test(many_slow_clients_are_served),
		cmocka_unit_test(ten_thousand_slow_clients_are_served),
		cmocka_unit_test(more_clients_than_files_wait),
		cmocka_unit_test(slow_readers_get_all),
		cmocka_unit_test(a_client_that_never_reads_is_dropped),
		cmocka_unit_test(a_stopped_loop_leaves_nothing),
		cmocka_unit_test(a_killed_loop_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
