#include "common/server.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"

#define BACKLOG 128

/* Without a free descriptor we cannot even refuse a connection, and it would wake us forever. So
 * one is kept in reserve. */
static void turn_away(struct server *server)
{
	closep(&server->spare);
	int fd = accept4(server->io.fd, NULL, NULL, SOCK_CLOEXEC);
	closep(&fd);
	server->spare = open("/dev/null", O_PATH | O_CLOEXEC);
}

/* Connections accepted per event, so that other sources are not delayed. */
#define ACCEPT_MAX 16

static void server_ready(struct loop_io *io)
{
	struct server *server = container_of(io, struct server, io);

	for (int i = 0; i < ACCEPT_MAX; i++) {
		int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR)
				return;
			log_limited(LOG_ERROR, 5, "%s: accept: %s", server->path, strerror(errno));
			turn_away(server);
			return;
		}
		server->accepted(server, fd);
	}
}

/* A socket file that a dead agent left behind refuses connections. */
static bool is_served(const struct sockaddr_un *address, int type)
{
	cleanup(closep) int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		return true;
	return errno == EAGAIN;
}

static int listen_at(const char *path, int type, mode_t mode)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat info;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);

	char folder[sizeof(address.sun_path)];
	memcpy(folder, path, strlen(path) + 1);
	const char *parent = dirname(folder);
	/* Despite our umask: clients of all users must reach the socket. */
	if (mkdir(parent, 0755) == 0 ? chmod(parent, 0755) < 0 : errno != EEXIST)
		return -errno;

	if (lstat(path, &info) == 0) {
		if (!S_ISSOCK(info.st_mode))
			return -EEXIST;
		if (is_served(&address, type))
			return -EADDRINUSE;
		unlink(path);
	}
	cleanup(closep) int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* Set the mode before listen(): until then nobody can connect. */
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	if (chmod(path, mode) < 0 || listen(fd, BACKLOG) < 0) {
		int error = -errno;
		unlink(path);
		return error;
	}
	return take_fd(fd);
}

int server_init(struct server *server, struct loop *loop, const char *path, int type, mode_t mode,
		server_accept_fn *accepted)
{
	*server = (struct server){.accepted = accepted, .spare = -1};
	int fd = listen_at(path, type, mode);
	if (fd < 0) {
		log_error("socket %s: %s", path,
			  fd == -EADDRINUSE ? "another agent listens there" : strerror(-fd));
		return fd;
	}
	server->path = strdup(path);
	int r = server->path ? loop_io_init(&server->io, loop, fd, EPOLLIN, server_ready) : -ENOMEM;
	if (r == 0) {
		server->spare = open("/dev/null", O_PATH | O_CLOEXEC);
		return 0;
	}
	unlink(path);
	close(fd);
	free(take(server->path));
	return error_origin(r);
}

void server_deinit(struct server *server)
{
	int fd = server->io.fd;

	if (!server->path)
		return;
	loop_io_deinit(&server->io);
	close(fd);
	closep(&server->spare);
	unlink(server->path);
	free(take(server->path));
}
