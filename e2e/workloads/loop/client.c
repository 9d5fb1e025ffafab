/* A TCP client of the services in service.h, on loopback. Each connection has one request under
 * way. Every reply is checked; a wrong one, or a server that is silent for PATIENCE_NS, ends the
 * program with 1. It prints a line of JSON.
 *
 * Without --rate a connection sends the next request when it has the reply. With --rate R all
 * together send R a second, at fixed times, or with --random at random ones (a Poisson process, the
 * same for the same --seed). A reply's time then counts from when its request was due, so a slow
 * server cannot make itself look good by slowing the client down. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <weir/base.h>

#include "../samples.h"
#include "../workload.h"
#include "service.h"
#include "sockets.h"

#define CONNECTIONS_MAX 1024
#define EVENTS          64
#define PATIENCE_NS     (20 * NS_PER_S)
#define CONNECT_NS      (20 * NS_PER_S) /* until the server listens */
#define EPOLL_MS        1

struct connection {
	int fd;
	bool busy; /* a request is under way */
	struct conversation conversation;
	size_t sent, received;
	uint64_t due;
	uint8_t *request, *reply;
};

struct client {
	const struct service *service;
	uint32_t size;
	size_t request_bytes, reply_bytes;
	uint64_t port, count, first, requests_max, rate;
	struct connection connections[CONNECTIONS_MAX];
	struct samples us, dues;   /* of each reply; when it was due, in s since the begin */
	bool is_random, is_listed; /* requests at random times; each one is printed */
	struct random random;
	double due; /* of the next request at a random time; ns since the begin */
	int epoll;
	uint64_t began, started, last; /* ns; requests begun; when the last reply came */
};

static void connect_one(struct client *client, struct connection *connection)
{
	uint64_t until = now_ns() + CONNECT_NS;
	int on = 1;

	while ((connection->fd = sockets_connect((uint16_t)client->port, false)) < 0) {
		if (errno != ECONNREFUSED || now_ns() > until)
			workload_fail("connect to port %" PRIu64 ": %s", client->port,
				      strerror(errno));
		sleep_until_ns(now_ns() + 20 * NS_PER_MS);
	}
	setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void open_connection(struct client *client, uint32_t number)
{
	struct connection *connection = &client->connections[number];
	struct epoll_event event = {EPOLLIN, {.ptr = connection}};

	connection->conversation =
		(struct conversation){(uint32_t)client->first + number, client->size, 0};
	connection->request = workload_alloc(client->request_bytes);
	connection->reply = workload_alloc(client->reply_bytes);
	connect_one(client, connection);
	if (epoll_ctl(client->epoll, EPOLL_CTL_ADD, connection->fd, &event) < 0)
		workload_fail("epoll_ctl: %s", strerror(errno));
}

static void want_to_write(const struct client *client, struct connection *connection, bool wanted)
{
	struct epoll_event event = {wanted ? EPOLLIN | EPOLLOUT : EPOLLIN, {.ptr = connection}};

	if (epoll_ctl(client->epoll, EPOLL_CTL_MOD, connection->fd, &event) < 0)
		workload_fail("epoll_ctl: %s", strerror(errno));
}

static void send_rest(struct client *client, struct connection *connection, bool waited)
{
	size_t left = client->request_bytes - connection->sent;
	ssize_t n = send(connection->fd, connection->request + connection->sent, left,
			 MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN)
		workload_fail("send: %s", strerror(errno));
	connection->sent += n > 0 ? (size_t)n : 0;
	if (waited || (size_t)(n > 0 ? n : 0) < left)
		want_to_write(client, connection, connection->sent < client->request_bytes);
}

static void begin_request(struct client *client, struct connection *connection, uint64_t due)
{
	client->service->make(&connection->conversation, connection->request);
	connection->sent = connection->received = 0;
	connection->busy = true;
	connection->due = due;
	client->started++;
	send_rest(client, connection, false);
}

static void end_request(struct client *client, struct connection *connection)
{
	client->last = now_ns();
	samples_add(&client->us, (double)(client->last - connection->due) / 1e3);
	samples_add(&client->dues, (double)(connection->due - client->began) / 1e9);
	if (!client->service->is_right(&connection->conversation, connection->request,
				       connection->reply))
		workload_fail("%s: wrong reply to request %" PRIu64 " of connection %u",
			      client->service->name, connection->conversation.count,
			      connection->conversation.number);
	connection->conversation.count++;
	connection->busy = false;
}

static void receive(struct client *client, struct connection *connection)
{
	ssize_t n = recv(connection->fd, connection->reply + connection->received,
			 client->reply_bytes - connection->received, MSG_DONTWAIT);

	if (n == 0)
		workload_fail("the server closed connection %u", connection->conversation.number);
	if (n < 0 && errno != EAGAIN)
		workload_fail("recv: %s", strerror(errno));
	if (n < 0)
		return;
	if (!connection->busy)
		workload_fail("connection %u: a reply to nothing", connection->conversation.number);
	connection->received += (size_t)n;
	if (connection->received == client->reply_bytes)
		end_request(client, connection);
}

static void poll_once(struct client *client, int ms)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(client->epoll, events, EVENTS, ms);

	if (n < 0 && errno != EINTR)
		workload_fail("epoll_wait: %s", strerror(errno));
	for (int i = 0; i < n; i++) {
		struct connection *connection = events[i].data.ptr;

		if (events[i].events & EPOLLOUT)
			send_rest(client, connection, true);
		if (events[i].events & ~(uint32_t)EPOLLOUT)
			receive(client, connection);
	}
	if (now_ns() - client->last > PATIENCE_NS)
		workload_fail("no reply for %llu s", PATIENCE_NS / NS_PER_S);
}

static uint32_t busy_count(const struct client *client)
{
	uint32_t busy = 0;

	for (uint64_t i = 0; i < client->count; i++)
		busy += client->connections[i].busy;
	return busy;
}

/* When the next request is due: without --rate now. */
static uint64_t next_due(const struct client *client, uint64_t now)
{
	if (!client->rate)
		return now;
	return client->began + (client->is_random ? (uint64_t)client->due
						  : client->started * NS_PER_S / client->rate);
}

/* The time from a request to the next one in a Poisson process. */
static void draw_next_due(struct client *client)
{
	double part =
		(double)((random_next(&client->random) >> 11) + 1) * 0x1p-53; /* 0 < part <= 1 */

	if (client->is_random)
		client->due -= log(part) * (double)NS_PER_S / (double)client->rate;
}

/* Starts what is due on connections that are free. */
static void start_due(struct client *client)
{
	for (uint64_t i = 0; i < client->count && client->started < client->requests_max; i++) {
		uint64_t now = now_ns(), due = next_due(client, now);

		if (due > now)
			return;
		if (client->connections[i].busy)
			continue;
		begin_request(client, &client->connections[i], due);
		draw_next_due(client);
	}
}

static void run(struct client *client, const struct workload *w)
{
	bool is_over = false;

	client->began = client->last = now_ns();
	while (!is_over || busy_count(client)) {
		/* At least one request, however busy the machine is. */
		is_over = is_over || (client->started && workload_stopped(w)) ||
			  client->started >= client->requests_max;
		if (!is_over)
			start_due(client);
		/* Requests at fixed times must not wait for epoll's clock of milliseconds. */
		poll_once(client, client->rate && !is_over ? 0 : EPOLL_MS);
		if (client->rate && !busy_count(client))
			client->last = now_ns();
	}
}

/* In the order of the replies. */
static void print_list(const struct client *client)
{
	printf("\"began_ns\":%" PRIu64 ",\"list\":[", client->began);
	for (size_t i = 0; i < client->us.n; i++)
		printf("%s[%.6f,%.1f]", i ? "," : "", client->dues.values[i], client->us.values[i]);
	printf("],");
}

static void print(struct client *client)
{
	double seconds = (double)(client->last - client->began + 1) / 1e9; /* never 0 */
	struct samples *us = &client->us;

	printf("{");
	if (client->is_listed)
		print_list(client);
	samples_sort(us);
	printf("\"service\":\"%s\",\"size\":%u,\"connections\":%" PRIu64 ",\"rate\":%" PRIu64
	       ",\"requests\":%zu,\"seconds\":%.3f,\"requests_per_second\":%.1f,\"p50_us\":%.1f,"
	       "\"p99_us\":%.1f,\"max_us\":%.1f}\n",
	       client->service->name, client->size, client->count, client->rate, us->n, seconds,
	       (double)us->n / seconds, samples_quantile(us, 0.5), samples_quantile(us, 0.99),
	       samples_quantile(us, 1));
}

static void parse(struct client *client, struct workload *w, int argc, char **argv)
{
	const char *name = NULL;
	const struct workload_option own[] = {
		{"service", OPTION_TEXT, &name, "echo, matmul or kv"},
		{"port", OPTION_NUMBER, &client->port, "the server's, on loopback"},
		{"connections", OPTION_NUMBER, &client->count, "at the same time; default 4"},
		{"first", OPTION_NUMBER, &client->first,
		 "number of the first connection; those of other clients must be others"},
		{"rate", OPTION_NUMBER, &client->rate, "requests a second, of all connections"},
		{"random", OPTION_FLAG, &client->is_random, "with --rate: at random times"},
		{"list", OPTION_FLAG, &client->is_listed, "prints each request's time"},
		{0}};

	workload_parse(w, argc, argv, "asks a server on loopback; --iterations: requests", own);
	client->service = service_find(name, w->size);
	if (client->count < 1 || client->count > CONNECTIONS_MAX || client->first > 1u << 20 ||
	    client->port < 1 || client->port > UINT16_MAX || (client->is_random && !client->rate)) {
		fprintf(stderr, "--connections: 1 to %d; --port: needed; --random: with --rate\n",
			CONNECTIONS_MAX);
		exit(2);
	}
	client->size = (uint32_t)workload_pick(w, w->size, client->service->simulated,
					       client->service->gpu);
	client->requests_max = w->iterations ? w->iterations : w->seconds > 0 ? UINT64_MAX : 1000;
	client->request_bytes = client->service->request_bytes(client->size);
	client->reply_bytes = client->service->reply_bytes(client->size);
	client->random.state = w->seed;
}

int main(int argc, char **argv)
{
	static struct client client = {.count = 4};
	struct workload w = {.seed = 1};

	parse(&client, &w, argc, argv);
	client.epoll = epoll_create1(EPOLL_CLOEXEC);
	for (uint32_t i = 0; i < client.count; i++)
		open_connection(&client, i);
	workload_ready(&w);
	run(&client, &w);
	print(&client);
	return 0;
}
