#include "shim/connect.h"

#include "weir/base.h"
#include "weir/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

const char *connect_path(void)
{
	const char *path = getenv("WEIR_SOCKET");

	return path && *path ? path : WEIR_SOCKET_PATH;
}

int connect_agent(void)
{
	const char *path = connect_path();
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);

	cleanup(closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int high = fcntl(fd, F_DUPFD_CLOEXEC, CONNECT_FD_FROM);
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return take_fd(fd);
}
