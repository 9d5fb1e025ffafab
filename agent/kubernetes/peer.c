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

/* Linux before 6.5 gives only the pid, which the kernel may have reused. It has not if the
 * connection is still open, because then the process lives. */
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
		/* The last two: the process is gone, depending on the kernel's version. */
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
	/* The process still lives, so what we read was its own. */
	if (is_ready(held, POLLIN))
		return -ESRCH;
	*out = identity;
	*process = take_fd(held);
	return 0;
}
