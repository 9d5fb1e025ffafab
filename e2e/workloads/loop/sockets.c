#include "sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#define LEAST_SEGMENT 536 /* bytes */

static void make_narrow(int fd)
{
	int least = 1, segment = LEAST_SEGMENT;

	/* Linux raises them to its own least. */
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
	setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment));
}

int sockets_connect(uint16_t port, bool narrow)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), error;

	if (fd < 0)
		return -1;
	if (narrow)
		make_narrow(fd);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

void sockets_reset(int fd)
{
	const struct linger at_once = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
}
