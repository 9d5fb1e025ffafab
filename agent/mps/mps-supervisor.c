#include "mps/mps-supervisor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "weir/base.h"
#include "weir/error.h"

#define SOCKET "keeper.sock" /* a deprecated word that weir-mps of 0.1.0 knows */

static int address_of(struct sockaddr_un *out, const char *dir)
{
	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	int n = snprintf(out->sun_path, sizeof(out->sun_path), "%s/" SOCKET, dir);

	return n < (int)sizeof(out->sun_path) ? 0 : -ENAMETOOLONG;
}

int mps_supervisor_ask(const char *dir, const char *gpu, bool multi_user)
{
	struct mps_request request = {.multi_user = multi_user};
	struct sockaddr_un address;
	int r = address_of(&address, dir);

	if (r < 0)
		return error_origin(r);
	snprintf(request.gpu, sizeof(request.gpu), "%s", gpu);
	cleanup(closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_origin(-errno);
	/* weir-mps may not run yet, so this is no error_origin(). */
	ssize_t n = sendto(fd, &request, sizeof(request), 0, (struct sockaddr *)&address,
			   sizeof(address));
	return n < 0 ? -errno : 0;
}

int mps_supervisor_listen(const char *dir)
{
	struct sockaddr_un address;
	int r = address_of(&address, dir);

	if (r < 0)
		return error_origin(r);
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return error_origin(-errno);
	cleanup(closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_origin(-errno);
	unlink(address.sun_path);
	/* bind() makes the file with the socket's mode. */
	if (fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return error_origin(-errno);
	return take_fd(fd);
}

bool mps_supervisor_next(int fd, struct mps_request *out)
{
	struct mps_request request;
	uint8_t uuid[16];
	ssize_t n;

	while ((n = recv(fd, &request, sizeof(request), MSG_TRUNC)) >= 0 || errno == EINTR) {
		if (n != sizeof(request) || request.gpu[sizeof(request.gpu) - 1] != '\0' ||
		    !gpu_parse_id(request.gpu, uuid))
			continue;
		*out = request;
		return true;
	}
	return false;
}
