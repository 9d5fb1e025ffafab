#include "loop/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define UNIX_PREFIX "unix:"
#define HOST_MAX    64

static int parse_unix(const char *path, struct sockaddr_storage *out, socklen_t *size)
{
	struct sockaddr_un *address = (struct sockaddr_un *)out;
	size_t length = strlen(path);

	if (!length)
		return -EINVAL;
	if (length >= sizeof(address->sun_path))
		return -ENAMETOOLONG;
	address->sun_family = AF_UNIX;
	memcpy(address->sun_path, path, length + 1);
	*size = sizeof(*address);
	return 0;
}

static bool parse_port(const char *text, in_port_t *out)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || port > UINT16_MAX)
		return false;
	*out = htons((uint16_t)port);
	return true;
}

int address_parse(const char *text, struct sockaddr_storage *out, socklen_t *size)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
	const char *colon = strrchr(text, ':');
	bool brackets = text[0] == '[';
	char host[HOST_MAX];

	memset(out, 0, sizeof(*out));
	if (!strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)))
		return parse_unix(text + strlen(UNIX_PREFIX), out, size);
	if (!colon || (size_t)(colon - text) >= sizeof(host) || colon - text < 2 * brackets)
		return -EINVAL;
	if (brackets && colon[-1] != ']')
		return -EINVAL;
	size_t length = (size_t)(colon - text) - 2 * brackets;
	memcpy(host, text + brackets, length);
	host[length] = 0;
	if (!parse_port(colon + 1, brackets ? &v6->sin6_port : &v4->sin_port))
		return -EINVAL;
	out->ss_family = brackets ? AF_INET6 : AF_INET;
	*size = brackets ? sizeof(*v6) : sizeof(*v4);
	return inet_pton(out->ss_family, host,
			 brackets ? (void *)&v6->sin6_addr : (void *)&v4->sin_addr) == 1
		       ? 0
		       : -EINVAL;
}

/* Somebody may have died and left the socket. */
static void remove_dead(const struct sockaddr_storage *address, socklen_t size)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)address, size) < 0 && errno == ECONNREFUSED)
		unlink(((const struct sockaddr_un *)address)->sun_path);
	close(fd);
}

static uint16_t port_of(int fd)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &size) < 0)
		return 0;
	if (address.ss_family == AF_INET)
		return ntohs(((struct sockaddr_in *)&address)->sin_port);
	if (address.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
	return 0;
}

int address_listen(const char *text, int backlog, int least, uint16_t *port)
{
	struct sockaddr_storage address;
	socklen_t size;
	int r = address_parse(text, &address, &size), one = 1;

	if (r)
		return r;
	int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (address.ss_family == AF_UNIX)
		remove_dead(&address, size);
	else
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	/* Connections inherit the least size; Unix sockets have none. */
	bool has_least = least > 1 && address.ss_family != AF_UNIX;
	if ((has_least && setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least)) < 0) ||
	    bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, backlog) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	*port = port_of(fd);
	return fd;
}
