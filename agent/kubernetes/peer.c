#include "kubernetes/peer.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "common/process.h"

#include "weir/base.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static bool is_ready(int fd, short events)
{
	struct pollfd poll_fd = {.fd = fd, .events = events};

	return poll(&poll_fd, 1, 0) != 0;
}

/* Linux before 6.5 tells only the number, which may belong to another process by now. While the
 * connection stands it does not: its owner lives. */
static int open_by_number(int socket, pid_t pid)
{
	cleanup(closep) int fd = process_open(pid);

	if (fd < 0)
		return fd;
	return is_ready(socket, POLLRDHUP) ? -ESRCH : take_fd(fd);
}

int peer_identify(int socket, struct container_identity *out, int *process)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	int fd = -1;

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	if (peer.pid == 0)
		return -ENXIO;
	size = sizeof(fd);
	if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) < 0) {
		/* Depending on the kernel's version, one of the last two for who is gone. */
		if (errno != ENOPROTOOPT)
			return errno == EINVAL || errno == ENODATA ? -ESRCH : -errno;
		fd = open_by_number(socket, peer.pid);
		if (fd < 0)
			return fd;
	}

	cleanup(closep) int held = fd;
	struct container_identity identity;
	int r = container_identify(&identity, peer.pid);
	if (r < 0)
		return r;
	/* It lived until here, so that what we read was its own. */
	if (is_ready(held, POLLIN))
		return -ESRCH;
	*out = identity;
	*process = take_fd(held);
	return 0;
}
