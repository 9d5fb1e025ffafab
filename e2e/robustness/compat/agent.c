/* compat-agent SOCKET: an agent of the protocol's first version, for today's libraries. It
 * understands HELLO only and leaves other messages unanswered. Root has level 2, other users 0. On
 * SIGTERM it exits with 0 if clients of both levels came and reported launches. */
#include "robustness/compat/protocol-1.h"
#include "robustness/compat/socket.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static volatile sig_atomic_t over;
static int demand[OLD_DEMAND_LEVELS];
static struct pollfd all[OLD_SIDE_MAX + 1];
static nfds_t n_all;
static uint64_t launches[OLD_DEMAND_LEVELS];
static struct {
	struct old_status_page *status;
	unsigned level;
} sides[OLD_SIDE_MAX + 1];

static void stop(int number)
{
	(void)number;
	over = true;
}

static int new_page(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, OLD_PAGE_SIZE) < 0)
		old_fail("no page");
	return fd;
}

static void welcome(nfds_t i)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(all[i].fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		old_fail("who is it");
	unsigned level = peer.uid == 0 ? 2 : 0;
	struct old_welcome message = {
		.header = {OLD_MAGIC, OLD_VERSION, OLD_WELCOME, sizeof(message), 0},
		.level = (uint8_t)level,
		.bit = (uint8_t)i,
		.client = i,
	};
	int fds[OLD_FDS_MAX] = {new_page("control"), new_page("status"), demand[level]};
	size_t n = 3;
	for (unsigned below = 0; below < level; below++)
		fds[n++] = demand[below];
	struct old_control_page *control = old_map(fds[0], PROT_READ | PROT_WRITE);
	control->magic = OLD_MAGIC;
	control->version = OLD_VERSION;
	control->level = level;
	sides[i].status = old_map(fds[1], PROT_READ);
	sides[i].level = level;
	old_send(all[i].fd, &message, sizeof(message), fds, n);
}

static void gone(nfds_t i)
{
	if (sides[i].status)
		launches[sides[i].level] += sides[i].status->launches;
	close(all[i].fd);
	/* The slot is not reused: few clients come. */
	all[i].fd = -1;
}

static void hear(nfds_t i)
{
	uint8_t packet[OLD_MESSAGE_MAX];
	struct old_header header;
	int fds[OLD_FDS_MAX];
	size_t n;

	ssize_t size = old_receive(all[i].fd, packet, sizeof(packet), fds, &n);
	for (size_t fd = 0; fd < n; fd++)
		close(fds[fd]);
	if (size <= 0) {
		gone(i);
		return;
	}
	memcpy(&header, packet, sizeof(header));
	if (size < (ssize_t)sizeof(header) || header.magic != OLD_MAGIC || header.size != size)
		old_fail("no message of ours");
	if (header.type == OLD_HELLO && size >= (ssize_t)sizeof(struct old_hello))
		welcome(i);
	else if (header.type <= OLD_REFUSED)
		old_fail("a message that it does not send");
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = stop};

	if (argc != 2)
		old_fail("usage: compat-agent SOCKET");
	sigaction(SIGTERM, &action, NULL);
	for (unsigned level = 0; level < OLD_DEMAND_LEVELS; level++)
		demand[level] = new_page("demand");
	all[n_all++] = (struct pollfd){.fd = old_socket(argv[1], 1), .events = POLLIN};
	while (!over) {
		if (poll(all, n_all, 100) < 0 && errno != EINTR)
			old_fail("poll");
		for (nfds_t i = n_all; i-- > 1;)
			if (all[i].fd >= 0 && all[i].revents)
				hear(i);
		if (all[0].revents && n_all <= OLD_SIDE_MAX)
			all[n_all++] = (struct pollfd){.fd = accept(all[0].fd, NULL, NULL),
						       .events = POLLIN};
		all[0].revents = 0;
	}
	printf("compat-agent: %llu launches at level 2, %llu at level 0\n",
	       (unsigned long long)launches[2], (unsigned long long)launches[0]);
	return launches[2] && launches[0] ? 0 : 1;
}
