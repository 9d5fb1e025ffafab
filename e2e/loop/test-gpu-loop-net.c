/* Loops on the simulated GPU: sockets, timers, calls of the host, ends. */
#include "fixture.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS 2u

static const struct weir_loop_options usual = {.threads = 64};
static const struct weir_loop_options pool = {.threads = 64, .no_uring = true};

static void nap(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* A client of `server`: @messages of @size bytes, each echoed with another case. */
struct client {
	pthread_t thread;
	const struct weir_loop *loop;
	const char *path; /* of a Unix socket; NULL: TCP */
	unsigned messages;
	size_t size;
	bool resets; /* ends with a reset, with half a message sent */
	bool pauses; /* within each message */
	unsigned good;
};

static int connect_to(const struct client *client)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_un local = {.sun_family = AF_UNIX};
	int fd = socket(client->path ? AF_UNIX : AF_INET, SOCK_STREAM, 0);

	if (client->path) {
		snprintf(local.sun_path, sizeof(local.sun_path), "%s", client->path);
		while (connect(fd, (struct sockaddr *)&local, sizeof(local)) < 0)
			nap(1);
		return fd;
	}
	while (!v4.sin_port) {
		v4.sin_port = htons(weir_loop_port(client->loop, 0));
		nap(1);
	}
	if (connect(fd, (struct sockaddr *)&v4, sizeof(v4)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool transfer(int fd, uint8_t *bytes, size_t size, bool in)
{
	for (size_t at = 0; at < size;) {
		ssize_t n = in ? recv(fd, bytes + at, size - at, 0)
			       : send(fd, bytes + at, size - at, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

static bool send_message(const struct client *client, int fd, uint8_t *bytes)
{
	size_t first = client->pauses ? client->size * 3 / 4 : client->size;

	if (!transfer(fd, bytes, first, false))
		return false;
	if (client->pauses)
		nap(4);
	return transfer(fd, bytes + first, client->size - first, false);
}

static void *be_client(void *data)
{
	struct client *client = data;
	uint8_t *sent = malloc(client->size), *came = calloc(client->size, 1);
	int fd = connect_to(client);

	for (unsigned i = 0; i < client->messages; i++) {
		for (size_t k = 0; k < client->size; k++)
			sent[k] = (uint8_t)(i * 31 + k * 7);
		bool good =
			send_message(client, fd, sent) && transfer(fd, came, client->size, true);
		for (size_t k = 0; k < client->size; k++)
			good &= came[k] == (sent[k] ^ 0x20);
		client->good += good;
	}
	if (client->resets) {
		(void)!send(fd, sent, client->size / 2, MSG_NOSIGNAL);
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
			   sizeof(struct linger));
	}
	close(fd);
	free(sent);
	free(came);
	return NULL;
}

static void serve_by(const char *kernel, const struct weir_loop_options *options,
		     const struct client *plan, size_t n, uint64_t message)
{
	struct weir_loop *loop = fixture_new(kernel, options);
	struct client clients[64];

	for (size_t i = 0; i < n; i++) {
		clients[i] = plan[i];
		clients[i].loop = loop;
		pthread_create(&clients[i].thread, NULL, be_client, &clients[i]);
	}
	assert_int_equal(fixture_finish(loop, n | message << 16), 0);
	uint64_t bytes = 0;
	for (size_t i = 0; i < n; i++) {
		pthread_join(clients[i].thread, NULL);
		assert_int_equal(clients[i].good, clients[i].messages);
		bytes += clients[i].messages * clients[i].size;
	}
	assert_int_equal(fx.seen[0], n);
	assert_true(fx.seen[1] >= bytes);
}

static void serve(const struct weir_loop_options *options, const struct client *plan, size_t n)
{
	serve_by("server", options, plan, n, 0);
}

static void serve_all_ways(const struct weir_loop_options *options)
{
	struct client small[8],
		large[2] = {{.messages = 2, .size = 300000}, {.messages = 3, .size = 5000}};

	for (size_t i = 0; i < 8; i++)
		small[i] = (struct client){.messages = 20, .size = 1 + 100 * i, .resets = i & 1};
	fixture_text(0, "127.0.0.1:0");
	serve(options, small, 8);
	serve(options, large, 2);
	char path[128], address[256];
	snprintf(path, sizeof(path), "%s", fixture_path("socket"));
	snprintf(address, sizeof(address), "unix:%s", path);
	fixture_text(0, address);
	for (size_t i = 0; i < 8; i++)
		small[i].path = path;
	serve(options, small, 8);
	/* The socket of the one before is in the way, and is replaced. */
	serve(options, small, 2);
}

static void connections_are_served(void **state)
{
	(void)state;
	serve_all_ways(&usual);
}

static void connections_are_served_without_uring(void **state)
{
	(void)state;
	serve_all_ways(&pool);
}

/* More comes than a block asks for: what is left comes with the next receive. Or less: it waits for
 * all. */
static void messages_come_in_other_parts_than_asked_for(void **state)
{
	static const size_t sizes[] = {16, 17, 100, 3000, 4097, 70000, 1500000};
	struct client clients[8];

	fixture_text(0, "127.0.0.1:0");
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		for (size_t i = 0; i < 8; i++)
			clients[i] = (struct client){.messages = sizes[k] > 100000 ? 2 : 5,
						     .size = sizes[k],
						     .resets = i & 1};
		serve_by("frugal_server", *state, clients, 8, 0);
		for (size_t i = 0; i < 8; i++)
			clients[i].pauses = i & 2;
		serve_by("rest_server", *state, clients, 8, sizes[k]);
		serve_by("whole_server", *state, clients, 8, sizes[k]);
	}
}

/* However a byte comes: with the watch, beside the slot, or through a buffer. */
static void each_byte_counts_once(void **state)
{
	static const size_t sizes[] = {17, 3000, 4097, 70000};
	static const char *const kernels[] = {"server", "frugal_server", "rest_server",
					      "whole_server"};
	struct client clients[4];

	fixture_text(0, "127.0.0.1:0");
	for (size_t k = 0; k < 4; k++) {
		for (size_t i = 0; i < 4; i++)
			clients[i] =
				(struct client){.messages = 5, .size = sizes[k], .pauses = i & 2};
		for (size_t of = 0; of < 4; of++) {
			serve_by(kernels[of], *state, clients, 4, of < 2 ? 0 : sizes[k]);
			assert_int_equal(fx.stats.bytes_in, 20 * sizes[k]);
			assert_int_equal(fx.stats.bytes_out, 20 * sizes[k]);
		}
	}
}

/* Connects when the kernel has left. */
static void *wait_and_connect(void *data)
{
	const struct client *client = data;
	struct weir_loop_stats stats;

	do {
		nap(5);
		weir_loop_stats(client->loop, &stats);
	} while (!weir_loop_port(client->loop, 0) || stats.on_gpu || stats.waiting[1] != BLOCKS);
	return be_client(data);
}

static void idle_server_leaves_the_gpu(void **state)
{
	struct weir_loop *loop = fixture_new("server", &usual);
	struct client client = {.messages = 1, .size = 10, .loop = loop};
	pthread_t late;

	(void)state;
	fixture_text(0, "127.0.0.1:0");
	pthread_create(&late, NULL, wait_and_connect, &client);
	assert_int_equal(fixture_finish(loop, 1), 0);
	pthread_join(late, NULL);
	assert_int_equal(client.good, 1);
	assert_true(fx.stats.blocked >= 1);
	assert_true(fx.stats.blocked_ns > 0);
}

static void ends_connect(const struct weir_loop_options *options, uint64_t bytes)
{
	struct weir_loop_options one = *options;
	char address[256];

	one.blocks = 1;
	snprintf(address, sizeof(address), "unix:%s", fixture_path("both"));
	fixture_text(0, address);
	assert_int_equal(fixture_run("both_ends", &one, bytes), 0);
	assert_int_equal((int64_t)fx.seen[2], 0);
	assert_int_equal(fx.seen[0], bytes);
	assert_int_equal(fx.seen[1], 0);
}

static void loop_connects_to_itself(void **state)
{
	(void)state;
	ends_connect(&usual, 100);
	ends_connect(&usual, 1500000);
	ends_connect(&pool, 100);
	ends_connect(&pool, 1500000);
}

static void addresses_are_checked(void **state)
{
	static const struct {
		const char *text;
		int error;
	} cases[] = {{"", -EINVAL},
		     {"127.0.0.1", -EINVAL},
		     {"127.0.0.1:", -EINVAL},
		     {"127.0.0.1:70000", -EINVAL},
		     {"127.0.0.1: 80", -EINVAL},
		     {"localhost:80", -EINVAL},
		     {":80", -EINVAL},
		     {"[::1:80", -EINVAL},
		     {"unix:", -EINVAL},
		     {"unix:/nowhere/at/all", -ENOENT}};
	struct weir_loop_options one = {.threads = 32, .blocks = 1};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fixture_text(0, cases[i].text);
		assert_int_equal(fixture_run("both_ends", &one, 1), 0);
		assert_int_equal((int64_t)fx.seen[2], cases[i].error);
	}
}

static void timers_come_in_time(void **state)
{
	struct weir_loop_options one = {.threads = 32, .blocks = 1};

	(void)state;
	assert_int_equal(fixture_run("timers", &one, 20000000), 0);
	assert_int_equal(fx.seen[0], 1 << 1 | 1 << 2 | 1 << 3);
	assert_int_equal(fx.seen[1], 0);
	assert_int_equal(fx.seen[2], 0);
}

static int64_t double_all(void *user, void *data, uint64_t size)
{
	uint64_t *words = data;

	assert_int_equal(size, 40);
	for (size_t i = 0; i < 5; i++)
		words[i] *= *(uint64_t *)user;
	return 24; /* the rest stays */
}

static int64_t too_much(void *user, void *data, uint64_t size)
{
	(void)user;
	(void)data;
	(void)size;
	return 4097;
}

static void host_functions_are_called(void **state)
{
	static const weir_loop_function functions[] = {double_all, too_much};
	uint64_t factor = 2;
	struct weir_loop_options options = {.threads = 64,
					    .blocks = 1,
					    .functions = functions,
					    .n_functions = 2,
					    .user = &factor};

	(void)state;
	assert_int_equal(fixture_run("calls", &options, 0), 0);
	assert_int_equal(fx.seen[0], 24);
	static const uint64_t after[] = {2, 4, 6, 4, 5};
	assert_memory_equal(fx.seen + 8, after, sizeof(after));
	assert_int_equal(fixture_run("calls", &options, 1), 0);
	assert_int_equal((int64_t)fx.seen[0], -EMSGSIZE);
	assert_int_equal(fixture_run("calls", &options, 2), 0);
	assert_int_equal((int64_t)fx.seen[0], -ENOSYS);
}

static void exit_ends_all_blocks(void **state)
{
	(void)state;
	assert_int_equal(fixture_run("exits", &usual, 7), 0);
	assert_int_equal(fx.code, 7);
	assert_int_equal(fx.seen[0], 0);
}

static void *stop_later(void *loop)
{
	struct weir_loop_stats stats;

	do {
		nap(2);
		weir_loop_stats(loop, &stats);
	} while (!stats.launches);
	nap(20);
	weir_loop_stop(loop);
	return NULL;
}

static void stop_ends_a_busy_loop(void **state)
{
	struct weir_loop *loop = fixture_new("spinner", &usual);
	pthread_t thread;

	(void)state;
	pthread_create(&thread, NULL, stop_later, loop);
	assert_int_equal(fixture_finish(loop, 1ull << 40), -ECANCELED);
	pthread_join(thread, NULL);
	assert_true(fx.seen[0] > 0);
}

static void stop_ends_a_waiting_loop(void **state)
{
	struct weir_loop *loop = fixture_new("server", &usual);
	pthread_t thread;

	(void)state;
	fixture_text(0, "127.0.0.1:0");
	pthread_create(&thread, NULL, stop_later, loop);
	assert_int_equal(fixture_finish(loop, 1), -ECANCELED);
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_are_served),
		cmocka_unit_test(connections_are_served_without_uring),
		cmocka_unit_test_prestate(messages_come_in_other_parts_than_asked_for,
					  (void *)&usual),
		cmocka_unit_test_prestate(messages_come_in_other_parts_than_asked_for,
					  (void *)&pool),
		cmocka_unit_test_prestate(each_byte_counts_once, (void *)&usual),
		cmocka_unit_test_prestate(each_byte_counts_once, (void *)&pool),
		cmocka_unit_test(idle_server_leaves_the_gpu),
		cmocka_unit_test(loop_connects_to_itself),
		cmocka_unit_test(addresses_are_checked),
		cmocka_unit_test(timers_come_in_time),
		cmocka_unit_test(host_functions_are_called),
		cmocka_unit_test(exit_ends_all_blocks),
		cmocka_unit_test(stop_ends_a_busy_loop),
		cmocka_unit_test(stop_ends_a_waiting_loop),
	};

	return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
