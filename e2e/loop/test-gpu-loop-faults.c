/* What goes wrong around a loop: full disks, connections that end in the middle, many slow clients,
 * the host process killed. Nothing may leak, and the others go on. */
#include "fixture.h"

#include "tests/descriptors.h"

#include <errno.h>
#include <netinet/in.h>
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

/* A port of a loop that runs. */
static int connect_to(const struct weir_loop *loop)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	while (!v4.sin_port) {
		v4.sin_port = htons(weir_loop_port(loop, 0));
		usleep(1000);
	}
	if (fd < 0 || connect(fd, (struct sockaddr *)&v4, sizeof(v4)) < 0)
		return -1;
	return fd;
}

/* One byte each, all before the first answer is read; then all end, every second one by a reset. */
struct crowd {
	const struct weir_loop *loop;
	unsigned clients, answered;
};

static void end_client(int fd, bool resets)
{
	if (resets)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
			   sizeof(struct linger));
	close(fd);
}

static void *be_crowd(void *data)
{
	struct crowd *crowd = data;
	int *fds = calloc(crowd->clients, sizeof(int));
	char byte = 'a';

	for (unsigned i = 0; i < crowd->clients; i++)
		fds[i] = connect_to(crowd->loop);
	for (unsigned i = 0; i < crowd->clients; i++)
		(void)!send(fds[i], &byte, 1, MSG_NOSIGNAL);
	for (unsigned i = 0; i < crowd->clients; i++)
		crowd->answered += recv(fds[i], &byte, 1, 0) == 1 && byte == 'A';
	for (unsigned i = 0; i < crowd->clients; i++)
		end_client(fds[i], i & 1);
	free(fds);
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

/* The other end dies while a large answer is on its way, and never reads. */
static void *never_read(void *data)
{
	struct crowd *crowd = data;
	int fd = connect_to(crowd->loop);
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
			execl(LOOP_RUNNER, LOOP_RUNNER, "--kernel", "copy_file", "--n", "3000",
			      "--text", from, "--text2", to, "--ready-file", fixture_path("ready"),
			      i & 1 ? "--pool" : NULL, NULL);
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
		cmocka_unit_test(more_clients_than_files_wait),
		cmocka_unit_test(a_client_that_never_reads_is_dropped),
		cmocka_unit_test(a_stopped_loop_leaves_nothing),
		cmocka_unit_test(a_killed_loop_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
