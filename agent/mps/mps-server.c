#include "mps/mps-server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "mps/mps-daemon.h"
#include "common/process.h"
#include "scheduler/preemption.h"

#include "weir/base.h"
#include "weir/log.h"
#include "weir/protocol.h"

#define UNKNOWN_NS    (10 * NS_PER_S) /* for the daemon to name it */
#define GROUPS_MAX    64u             /* of a server */
#define CONNECTED_MAX 32

static void end(struct mps_server *server)
{
	struct mps_daemon *daemon = server->daemon;
	bool had = server->channels.usable;

	channels_forget(&server->channels);
	DL_DELETE(daemon->joined, server);
	daemon->n_unknown -= !server->known;
	loop_io_deinit(&server->socket);
	loop_io_deinit(&server->death);
	closep(&server->fd);
	closep(&server->process);
	if (had)
		preemption_set_server(daemon->gpu, daemon->request.level, NULL);
	free(server);
}

static void changed(struct channels_client *channels)
{
	struct mps_server *server = container_of(channels, struct mps_server, channels);
	struct mps_daemon *daemon = server->daemon;

	if (channels->usable)
		log_info("MPS server of %s: has hardware preemption, process %d", daemon->name,
			 (int)server->pid);
	preemption_set_server(daemon->gpu, daemon->request.level,
			      channels->usable ? channels : NULL);
}

/* If its socket is full, it lets go too early. */
static void tell_stopped(struct channels_client *channels, uint64_t until)
{
	const struct mps_server *server = container_of(channels, struct mps_server, channels);
	struct weir_stopped message = {.until = until};

	weir_header_init(&message.header, WEIR_STOPPED, sizeof(message));
	weir_message_send(server->fd, &message, sizeof(message), NULL, 0);
}

static void received(struct loop_io *io)
{
	struct mps_server *server = container_of(io, struct mps_server, socket);
	struct gpu *gpu = server->daemon->gpu;
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	size_t n = 0;

	/* It hung up before the daemon named it. */
	if (!server->known) {
		end(server);
		return;
	}
	int r = weir_message_receive(io->fd, &message, fds, &n);
	if (r == -EAGAIN)
		return;
	if (r == 0 && message.header.type == WEIR_CHANNELS) {
		channels_take(&gpu->channels, server->daemon->mps->loop, gpu->uuid,
			      &server->channels, &message.channels.group, fds[0]);
		return;
	}
	for (size_t i = 0; r == 0 && i < n; i++)
		close(fds[i]);
	end(server);
}

static void died(struct loop_io *io)
{
	end(container_of(io, struct mps_server, death));
}

static bool peer_of(int fd, pid_t *pid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.pid <= 0)
		return false;
	*pid = peer.pid;
	return true;
}

static int watch(struct mps_server *server)
{
	struct loop *loop = server->daemon->mps->loop;

	server->process = process_open(server->pid);
	if (server->process < 0)
		return server->process;
	int r = loop_io_init(&server->death, loop, server->process, EPOLLIN, died);
	return r < 0 ? r : loop_io_init(&server->socket, loop, server->fd, 0, received);
}

static void accepted(struct server *socket, int fd_taken)
{
	struct mps_daemon *daemon = container_of(socket, struct mps_daemon, socket);
	cleanup(closep) int fd = fd_taken;
	struct mps_server *server, *other;
	unsigned n = 0;
	pid_t pid;

	DL_COUNT(daemon->joined, other, n);
	server = n < CONNECTED_MAX && peer_of(fd, &pid) ? calloc(1, sizeof(*server)) : NULL;
	if (!server)
		return;
	*server = (struct mps_server){.daemon = daemon,
				      .fd = take_fd(fd),
				      .process = -1,
				      .pid = pid,
				      .since = loop_now(),
				      .channels = {.pid = pid,
						   .max = GROUPS_MAX,
						   .changed = changed,
						   .tell_stopped = tell_stopped}};
	DL_APPEND(daemon->joined, server);
	daemon->n_unknown++;
	if (watch(server) < 0)
		end(server);
	else
		mps_daemon_look_soon(daemon);
}

static bool is_server(const struct mps_daemon *daemon, pid_t pid)
{
	for (unsigned i = 0; i < daemon->n_servers; i++)
		if (daemon->servers[i] == pid)
			return true;
	return false;
}

void mps_servers_look(struct mps_daemon *daemon)
{
	struct mps_server *server, *next;

	DL_FOREACH_SAFE (daemon->joined, server, next) {
		if (server->known)
			continue;
		server->known = is_server(daemon, server->pid);
		if (server->known) {
			daemon->n_unknown--;
			loop_io_modify(&server->socket, EPOLLIN);
		} else if (loop_now() - server->since > UNKNOWN_NS) {
			log_limited(LOG_WARNING, 60,
				    "MPS daemon of %s: process %d says that it is its server, and "
				    "is not",
				    daemon->name, (int)server->pid);
			end(server);
		}
	}
}

const struct mps_server *mps_server_of(const struct mps_daemon *daemon)
{
	const struct mps_server *server;

	DL_FOREACH (daemon->joined, server) {
		if (server->channels.usable)
			return server;
	}
	return NULL;
}

void mps_servers_init(struct mps_daemon *daemon)
{
	struct mps_path path = mps_path(daemon->folder, "agent.sock");

	/* A server may run as its clients' user. server_init() logs what fails. */
	server_init(&daemon->socket, daemon->mps->loop, path.text, SOCK_SEQPACKET, 0666, accepted);
}

void mps_servers_deinit(struct mps_daemon *daemon)
{
	struct mps_server *server, *next;

	DL_FOREACH_SAFE (daemon->joined, server, next) {
		end(server);
	}
	server_deinit(&daemon->socket);
}
