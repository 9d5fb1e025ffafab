/* The operations of a loop's host side, by io_uring and by threads: the same tests for both. */
#include "loop/io.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define LONG_WAIT 10000000000ull /* ns */

static struct io_engine *engine;
static const struct io_engine_type *type;
static char folder[] = "/tmp/weir-loop-io-XXXXXX";

static int begin(void **state)
{
	type = *state;
	return type->new (&engine, 64);
}

static int end(void **state)
{
	(void)state;
	type->free(engine);
	return 0;
}

static struct io *await(void)
{
	struct io *io;

	type->kick(engine);
	for (int i = 0; i < 1000 && !(io = type->reap(engine)); i++)
		type->wait(engine, LONG_WAIT / 100);
	assert_non_null(io);
	return io;
}

static int64_t perform(struct io *io)
{
	type->submit(engine, io);
	assert_ptr_equal(await(), io);
	return io->result;
}

static int open_file(const char *name, int flags)
{
	char path[128];
	struct io io = {.kind = IO_OPEN, .buffer = path, .flags = flags | O_CLOEXEC, .mode = 0600};

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return (int)perform(&io);
}

static void files_are_written_and_read(void **state)
{
	int fd = open_file("a", O_RDWR | O_CREAT | O_TRUNC);
	char text[] = "0123456789", back[20] = "";

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(
		perform(&(struct io){
			.kind = IO_WRITE, .fd = fd, .buffer = text, .size = 10, .offset = 5}),
		10);
	assert_int_equal(perform(&(struct io){.kind = IO_FSYNC, .fd = fd}), 0);
	assert_int_equal(
		perform(&(struct io){
			.kind = IO_READ, .fd = fd, .buffer = back, .size = 20, .offset = 7}),
		8);
	assert_string_equal(back, "23456789");
	assert_int_equal(perform(&(struct io){.kind = IO_WRITE, .fd = fd, .buffer = text}), 0);
	close(fd);
	assert_int_equal(open_file("missing", O_RDONLY), -ENOENT);
	assert_int_equal(
		perform(&(struct io){.kind = IO_READ, .fd = fd, .buffer = back, .size = 1}),
		-EBADF);
}

static void a_full_disk_is_told(void **state)
{
	char text[100] = "x";
	struct rlimit before, limit;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(
		perform(&(struct io){.kind = IO_WRITE, .fd = fd, .buffer = text, .size = 100}),
		-ENOSPC);
	close(fd);
	/* A file that may grow to 64 bytes: a part is written. */
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	limit = before;
	limit.rlim_cur = 64;
	setrlimit(RLIMIT_FSIZE, &limit);
	fd = open_file("b", O_RDWR | O_CREAT | O_TRUNC);
	assert_int_equal(
		perform(&(struct io){.kind = IO_WRITE, .fd = fd, .buffer = text, .size = 100}), 64);
	assert_int_equal(
		perform(&(struct io){
			.kind = IO_WRITE, .fd = fd, .buffer = text, .size = 1, .offset = 64}),
		-EFBIG);
	setrlimit(RLIMIT_FSIZE, &before);
	close(fd);
}

static int listen_here(struct sockaddr_storage *address, socklen_t *size)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*v4 = (struct sockaddr_in){.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	*size = sizeof(*v4);
	assert_int_equal(bind(fd, (struct sockaddr *)v4, *size), 0);
	assert_int_equal(listen(fd, 4), 0);
	getsockname(fd, (struct sockaddr *)v4, size);
	return fd;
}

/* Both ends of a connection. */
static void connect_both(int ends[2])
{
	struct io accepts = {.kind = IO_ACCEPT}, connects = {.kind = IO_CONNECT};

	accepts.fd = listen_here(&connects.address, &connects.address_size);
	connects.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	type->submit(engine, &accepts);
	type->submit(engine, &connects);
	await();
	await();
	assert_int_equal(connects.result, 0);
	assert_true(accepts.result >= 0);
	ends[0] = connects.fd;
	ends[1] = (int)accepts.result;
	close(accepts.fd);
}

static void sockets_carry_all_of_it(void **state)
{
	size_t size = 4u << 20, got = 0;
	uint8_t *sent = malloc(size), *came = calloc(1, size);
	struct io sends = {.kind = IO_SEND, .buffer = sent, .size = size};
	int ends[2];

	(void)state;
	connect_both(ends);
	for (size_t i = 0; i < size; i++)
		sent[i] = (uint8_t)(i * 13 >> 3);
	/* More than fits into the socket: it is sent in parts, while the other end reads slowly. */
	sends.fd = ends[0];
	type->submit(engine, &sends);
	type->kick(engine);
	bool done = false;
	while (got < size) {
		struct io io = {.kind = IO_RECEIVE,
				.fd = ends[1],
				.buffer = came + got,
				.size = size - got < 100000 ? size - got : 100000};
		type->submit(engine, &io);
		struct io *first = await();
		done |= first == &sends;
		if (first == &sends)
			first = await();
		assert_ptr_equal(first, &io);
		assert_true(io.result > 0);
		got += (size_t)io.result;
	}
	if (!done)
		assert_ptr_equal(await(), &sends);
	assert_int_equal(sends.result, size);
	assert_memory_equal(sent, came, size);
	close(ends[0]);
	assert_int_equal(
		perform(&(struct io){.kind = IO_RECEIVE, .fd = ends[1], .buffer = came, .size = 1}),
		0);
	close(ends[1]);
	free(sent);
	free(came);
}

static void a_reset_is_told(void **state)
{
	static char bytes[100];
	int ends[2];

	(void)state;
	connect_both(ends);
	setsockopt(ends[0], SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
		   sizeof(struct linger));
	struct io waits = {.kind = IO_READABLE, .fd = ends[1]};
	type->submit(engine, &waits);
	type->kick(engine);
	close(ends[0]);
	assert_ptr_equal(await(), &waits);
	assert_int_equal(waits.result, 0);
	assert_int_equal(perform(&(struct io){.kind = IO_RECEIVE,
					      .fd = ends[1],
					      .buffer = bytes,
					      .size = 100,
					      .flags = MSG_DONTWAIT}),
			 -ECONNRESET);
	assert_int_equal(
		perform(&(struct io){.kind = IO_SEND, .fd = ends[1], .buffer = bytes, .size = 100}),
		-EPIPE);
	close(ends[1]);
}

/* A byte or more of one connection. */
static struct io receive_ahead(int ends[2], uint64_t size)
{
	struct io ahead = {.kind = IO_RECEIVE_AHEAD, .fd = ends[1], .size = size};

	assert_int_equal(send(ends[0], "abcde", 5, 0), 5);
	perform(&ahead);
	return ahead;
}

/* Linux before 5.19 has no buffers. */
static void a_receive_ahead_has_a_buffer_of_the_engine(void **state)
{
	struct io waits = {.kind = IO_RECEIVE_AHEAD, .size = 3};
	int ends[2], least = 4;

	(void)state;
	if (!engine->ahead)
		skip();
	connect_both(ends);
	setsockopt(ends[1], SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least));
	waits.fd = ends[1];
	type->submit(engine, &waits);
	type->kick(engine);
	assert_int_equal(send(ends[0], "abc", 3, 0), 3);
	usleep(1000);
	assert_null(type->reap(engine));
	assert_int_equal(send(ends[0], "d", 1, 0), 1);
	assert_ptr_equal(await(), &waits);
	assert_int_equal(waits.result, 3);
	assert_memory_equal(waits.buffer, "abc", 3);
	type->give(engine, waits.buffer);
	close(ends[0]);
	assert_int_equal(perform(&waits), 1);
	type->give(engine, waits.buffer);
	assert_int_equal(perform(&waits), 0);
	close(ends[1]);
}

static void receives_ahead_without_an_idle_buffer_are_refused(void **state)
{
	void *buffers[1024];
	unsigned n = 0;
	int ends[2];

	(void)state;
	if (!engine->ahead)
		skip();
	connect_both(ends);
	for (;; n++) {
		struct io ahead = receive_ahead(ends, 1);
		if (ahead.result == -ENOBUFS)
			break;
		assert_int_equal(ahead.result, 1);
		assert_in_range(n, 0, 1022);
		buffers[n] = ahead.buffer;
	}
	assert_in_range(n, 64, 1023);
	for (unsigned i = 0; i < n; i++)
		type->give(engine, buffers[i]);
	for (unsigned i = 0; i < 2 * n; i++) {
		struct io ahead = receive_ahead(ends, IO_AHEAD_MOST);
		assert_in_range(ahead.result, 5, IO_AHEAD_MOST);
		type->give(engine, ahead.buffer);
	}
	close(ends[0]);
	close(ends[1]);
}

static void nobody_listens(void **state)
{
	struct io io = {.kind = IO_CONNECT};
	int fd = listen_here(&io.address, &io.address_size);

	(void)state;
	close(fd);
	io.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(perform(&io), -ECONNREFUSED);
	close(io.fd);
}

static void what_waits_can_be_cancelled(void **state)
{
	static char byte;
	int ends[2];

	(void)state;
	connect_both(ends);
	struct sockaddr_storage address;
	socklen_t size;
	int listener = listen_here(&address, &size);
	struct io waiting[] = {
		{.kind = IO_RECEIVE, .fd = ends[0], .buffer = &byte, .size = 1},
		{.kind = IO_READABLE, .fd = ends[0]},
		{.kind = IO_ACCEPT, .fd = listener},
	};
	for (size_t i = 0; i < 3; i++) {
		type->submit(engine, &waiting[i]);
		type->kick(engine);
	}
	assert_null(type->reap(engine));
	for (size_t i = 0; i < 3; i++) {
		type->cancel(engine, &waiting[i]);
		assert_ptr_equal(await(), &waiting[i]);
		assert_int_equal(waiting[i].result, -ECANCELED);
	}
	close(listener);
	close(ends[0]);
	close(ends[1]);
}

static int64_t answer(struct io *io)
{
	return (int64_t)io->size + 1;
}

static void functions_run(void **state)
{
	struct io calls[20];

	(void)state;
	for (size_t i = 0; i < 20; i++) {
		calls[i] = (struct io){.kind = IO_CALL, .run = answer, .size = i};
		type->submit(engine, &calls[i]);
	}
	for (size_t i = 0; i < 20; i++) {
		struct io *io = await();
		assert_int_equal(io->result, io->size + 1);
	}
}

static void *wake_later(void *data)
{
	(void)data;
	usleep(20000);
	io_wake(engine);
	return NULL;
}

static void a_wait_can_be_ended(void **state)
{
	pthread_t thread;

	(void)state;
	pthread_create(&thread, NULL, wake_later, NULL);
	type->wait(engine, UINT64_MAX);
	pthread_join(thread, NULL);
	/* And by time. */
	type->wait(engine, 1000000);
	assert_null(type->reap(engine));
}

#define TEST(name, of)                                                     \
	{                                                                  \
#name " (" #of ")", name, begin, end, (void *)&of##_engine \
	}
#define BOTH(name) TEST(name, io_uring), TEST(name, io_pool)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(files_are_written_and_read),
		BOTH(a_full_disk_is_told),
		BOTH(sockets_carry_all_of_it),
		BOTH(a_reset_is_told),
		TEST(a_receive_ahead_has_a_buffer_of_the_engine, io_uring),
		TEST(receives_ahead_without_an_idle_buffer_are_refused, io_uring),
		BOTH(nobody_listens),
		BOTH(what_waits_can_be_cancelled),
		BOTH(functions_run),
		BOTH(a_wait_can_be_ended),
	};
	struct io_engine *probe;
	char command[64];
	size_t n = sizeof(tests) / sizeof(tests[0]);

	if (!mkdtemp(folder))
		return 1;
	/* Where io_uring is forbidden, the pool alone is tested. */
	struct CMUnitTest allowed[sizeof(tests) / sizeof(tests[0])];
	bool uring = io_uring_engine.new(&probe, 1) == 0;
	size_t m = 0;
	if (uring)
		io_uring_engine.free(probe);
	for (size_t i = 0; i < n; i++)
		if (uring || tests[i].initial_state != &io_uring_engine)
			allowed[m++] = tests[i];
	int failed = _cmocka_run_group_tests("io", allowed, m, NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command) || failed;
}
