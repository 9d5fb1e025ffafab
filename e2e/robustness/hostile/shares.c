/* Takes as much as it gets of what the node has for all: compile helpers, accounts, demand bits,
 * HTTP connections. */
#include "robustness/hostile/siege.h"
#include "robustness/hostile/kernel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS   64  /* limits.clientsPerContainer */
#define ATTEMPTS  128 /* more than it gets */
#define ADDRESSES 8   /* as of eight pods */
#define AT_ONE    8   /* connections; an address gets 4 */
#define DRIP_US   250000

static unsigned join_many(int sockets[CLIENTS])
{
	union weir_message welcome;
	int fds[WEIR_FDS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < ATTEMPTS && n < CLIENTS; i++) {
		int socket = client_join(&welcome, fds);
		if (socket < 0)
			continue;
		close_fds(fds, welcome_fds(&welcome));
		sockets[n++] = socket;
	}
	if (n == 0)
		cannot("join");
	return n;
}

void siege_compile(void)
{
	int sockets[CLIENTS], fds[WEIR_FDS_MAX];
	struct pollfd polled[CLIENTS];
	union weir_message message;
	unsigned n = join_many(sockets);
	size_t n_fds;

	for (unsigned i = 0; i < n; i++) {
		polled[i] = (struct pollfd){.fd = sockets[i], .events = POLLIN};
		for (uint32_t id = 0; id < WEIR_COMPILE_PENDING; id++)
			kernel_ask_large(sockets[i], id, kernel_new_salt());
	}
	siege_ready();
	while (poll(polled, n, -1) > 0) {
		for (unsigned i = 0; i < n; i++) {
			if (!polled[i].revents)
				continue;
			int r = weir_message_receive(sockets[i], &message, fds, &n_fds);
			if (r < 0)
				cannot("go on: cut off");
			close_fds(fds, n_fds);
			if (message.header.type == WEIR_COMPILED)
				kernel_ask_large(sockets[i], message.compiled.id,
						 kernel_new_salt());
		}
	}
}

/* Each of its processes gets one account. Refused ones come again. */
void siege_accounts(void)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	size_t n;

	for (unsigned i = 0; i < ATTEMPTS; i++) {
		if (!siege_fork())
			continue;
		while (!client_account(&message, fds, &n))
			usleep(100000);
		pause();
	}
	siege_ready();
	pause();
}

void siege_bits(void)
{
	int sockets[CLIENTS];

	unsigned n = join_many(sockets);
	struct pollfd one = {.fd = sockets[n - 1], .events = POLLIN};
	siege_ready();
	while (poll(&one, 1, 10) == 0) {
		int more = client_connect();
		struct weir_hello hello = client_hello();
		weir_message_send(more, &hello, sizeof(hello), NULL, 0);
		close(more);
	}
}

/* A connection from 127.0.0.@address with half a request. -1: none now. */
static int request_slowly(uint16_t port, unsigned address)
{
	static const char half[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n";
	struct sockaddr_in from = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK + address)};
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&from, sizeof(from)) < 0 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ||
	    send(fd, half, sizeof(half) - 1, MSG_NOSIGNAL) < 0) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

/* A byte now and then. What the agent closes is opened again. WEIR_METRICS_PORT: of the agent. */
void siege_http(void)
{
	const char *text = getenv("WEIR_METRICS_PORT");
	int fds[ADDRESSES * AT_ONE];
	char byte;

	if (!text)
		cannot("go on without WEIR_METRICS_PORT");
	for (int i = 0; i < ADDRESSES * AT_ONE; i++)
		fds[i] = -1;
	for (;; usleep(DRIP_US)) {
		for (unsigned i = 0; i < ADDRESSES * AT_ONE; i++) {
			if (fds[i] >= 0 && (send(fds[i], "a", 1, MSG_NOSIGNAL) < 0 ||
					    recv(fds[i], &byte, 1, MSG_DONTWAIT) == 0)) {
				close(fds[i]);
				fds[i] = -1;
			}
			if (fds[i] < 0)
				fds[i] = request_slowly((uint16_t)atoi(text), 1 + i / AT_ONE);
		}
		siege_ready();
	}
}
