#include "front.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <weir/base.h>

#define EVENTS  64
#define WAIT_MS 50 /* to notice that it is to stop */

struct peer {
	int fd; /* -1: the slot is free */
	size_t received, sent;
	bool replies; /* the reply is not sent completely */
};

struct server {
	const struct front *front;
	size_t request_bytes, reply_bytes;
	struct peer peers[FRONT_CONNECTIONS_MAX];
	uint32_t ready[FRONT_CONNECTIONS_MAX], ready_count; /* slots with a complete request */
	int epoll, listener;
	uint64_t answered;
};

#define LISTENER UINT32_MAX /* instead of a slot */

static int listen_on(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, FRONT_CONNECTIONS_MAX) < 0)
		workload_fail("port %u: %s", port, strerror(errno));
	return fd;
}

static void watch(const struct server *server, int operation, int fd, uint32_t events,
		  uint32_t slot)
{
	struct epoll_event event = {events, {.u32 = slot}};

	if (epoll_ctl(server->epoll, operation, fd, &event) < 0)
		workload_fail("epoll_ctl: %s", strerror(errno));
}

static void drop(struct peer *peer)
{
	close(peer->fd);
	*peer = (struct peer){.fd = -1};
}

/* A client beyond the last slot is turned away. */
static void admit(struct server *server)
{
	int fd, on = 1;

	while ((fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		uint32_t slot = 0;

		while (slot < FRONT_CONNECTIONS_MAX && server->peers[slot].fd >= 0)
			slot++;
		if (slot == FRONT_CONNECTIONS_MAX) {
			close(fd);
			continue;
		}
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		server->peers[slot] = (struct peer){.fd = fd};
		watch(server, EPOLL_CTL_ADD, fd, EPOLLIN, slot);
	}
}

static void send_reply(struct server *server, uint32_t slot)
{
	struct peer *peer = &server->peers[slot];
	const uint8_t *reply = server->front->replies + slot * server->reply_bytes;
	ssize_t n =
		send(peer->fd, reply + peer->sent, server->reply_bytes - peer->sent, MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN) {
		drop(peer);
		return;
	}
	peer->sent += n > 0 ? (size_t)n : 0;
	bool is_partial = peer->sent < server->reply_bytes;
	/* No second request is read before the reply is sent. */
	if (is_partial != peer->replies)
		watch(server, EPOLL_CTL_MOD, peer->fd, is_partial ? EPOLLOUT : EPOLLIN, slot);
	peer->replies = is_partial;
	if (!is_partial)
		peer->received = peer->sent = 0;
}

static void receive_request(struct server *server, uint32_t slot)
{
	struct peer *peer = &server->peers[slot];
	uint8_t *request = server->front->requests + slot * server->request_bytes;
	ssize_t n =
		recv(peer->fd, request + peer->received, server->request_bytes - peer->received, 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		drop(peer);
		return;
	}
	peer->received += (size_t)n;
	if (peer->received == server->request_bytes)
		server->ready[server->ready_count++] = slot;
}

static void serve_once(struct server *server)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(server->epoll, events, EVENTS, WAIT_MS);

	if (n < 0 && errno != EINTR)
		workload_fail("epoll_wait: %s", strerror(errno));
	server->ready_count = 0;
	for (int i = 0; i < n; i++) {
		uint32_t slot = events[i].data.u32;

		if (slot == LISTENER)
			admit(server);
		else if (server->peers[slot].replies)
			send_reply(server, slot);
		else
			receive_request(server, slot);
	}
	if (!server->ready_count)
		return;
	server->front->answer(server->front->context, server->ready, server->ready_count);
	server->answered += server->ready_count;
	for (uint32_t i = 0; i < server->ready_count; i++)
		send_reply(server, server->ready[i]);
}

uint64_t front_serve(const struct front *front, struct workload *workload)
{
	static struct server server;

	server = (struct server){
		.front = front,
		.request_bytes = front->service->request_bytes(front->size),
		.reply_bytes = front->service->reply_bytes(front->size),
		.epoll = epoll_create1(EPOLL_CLOEXEC),
		.listener = listen_on(front->port),
	};
	for (uint32_t i = 0; i < FRONT_CONNECTIONS_MAX; i++)
		server.peers[i].fd = -1;
	watch(&server, EPOLL_CTL_ADD, server.listener, EPOLLIN, LISTENER);
	workload_ready(workload);
	while (!workload_stopped(workload))
		serve_once(&server);
	for (uint32_t i = 0; i < FRONT_CONNECTIONS_MAX; i++)
		closep(&server.peers[i].fd);
	close(server.listener);
	close(server.epoll);
	return server.answered;
}
