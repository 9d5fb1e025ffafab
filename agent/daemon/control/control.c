#include "daemon/control/control.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "weir/base.h"
#include "weir/error.h"

struct control_peer {
	struct control *control;
	struct control_peer *prev, *next;
	int fd;
	struct loop_io io;
	struct loop_timer late;
	char request[CONTROL_REQUEST_MAX];
	size_t n_request;
	bool recording; /* the answer comes when the recording ends */
	char *answer;   /* NULL: the request or the recording goes on */
	size_t n_answer, at;
};

static void peer_free(struct control_peer *peer)
{
	if (peer->recording)
		free(commands_trace(peer->control->commands));
	DL_DELETE(peer->control->peers, peer);
	peer->control->n_peers--;
	loop_timer_deinit(&peer->late);
	loop_io_deinit(&peer->io);
	closep(&peer->fd);
	free(peer->answer);
	free(peer);
}

static void send_answer(struct control_peer *peer)
{
	while (peer->at < peer->n_answer) {
		ssize_t n = send(peer->fd, peer->answer + peer->at, peer->n_answer - peer->at,
				 MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			loop_io_modify(&peer->io, EPOLLOUT);
			return;
		}
		if (n < 0)
			break;
		peer->at += (size_t)n;
	}
	peer_free(peer);
}

/* 1: the line is complete, or as long as it may be; 0: not yet; or a negative errno. */
static int read_request(struct control_peer *peer)
{
	ssize_t n = recv(peer->fd, peer->request + peer->n_request,
			 sizeof(peer->request) - peer->n_request, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -EPIPE;
	peer->n_request += (size_t)n;
	return memchr(peer->request, '\n', peer->n_request) != NULL ||
	       peer->n_request == sizeof(peer->request);
}

static void give_answer(struct control_peer *peer, char *answer)
{
	if (!answer) {
		peer_free(peer);
		return;
	}
	peer->answer = answer;
	peer->n_answer = strlen(answer);
	send_answer(peer);
}

static void take_request(struct control_peer *peer)
{
	uint64_t later;
	int r = read_request(peer);

	if (r == 0)
		return;
	char *answer = r < 0 ? NULL
			     : commands_answer(peer->control->commands, peer->request,
					       peer->n_request, &later);
	if (r < 0 || later == 0) {
		give_answer(peer, answer);
		return;
	}
	peer->recording = true;
	loop_timer_set(&peer->late, later, 0);
}

static void peer_ready(struct loop_io *io)
{
	struct control_peer *peer = container_of(io, struct control_peer, io);

	if (peer->recording)
		peer_free(peer); /* it hung up, or sent more */
	else if (peer->answer)
		send_answer(peer);
	else
		take_request(peer);
}

static void peer_late(struct loop_timer *timer)
{
	struct control_peer *peer = container_of(timer, struct control_peer, late);

	if (!peer->recording) {
		peer_free(peer);
		return;
	}
	peer->recording = false;
	loop_timer_set(&peer->late, CONTROL_TIMEOUT_NS, 0);
	give_answer(peer, commands_trace(peer->control->commands));
}

/* The socket's mode allows root only, but modes can be changed by mistake. */
static bool may_control(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

static void accepted(struct server *server, int fd)
{
	struct control *control = container_of(server, struct control, server);
	struct control_peer *peer;

	if (control->n_peers >= CONTROL_PEERS_MAX || !may_control(fd) ||
	    !(peer = calloc(1, sizeof(*peer)))) {
		close(fd);
		return;
	}
	*peer = (struct control_peer){.control = control, .fd = fd};
	DL_APPEND(control->peers, peer);
	control->n_peers++;
	int r = loop_io_init(&peer->io, control->loop, fd, EPOLLIN, peer_ready);
	if (r == 0)
		r = loop_timer_init(&peer->late, control->loop, peer_late);
	if (r == 0)
		r = loop_timer_set(&peer->late, CONTROL_TIMEOUT_NS, 0);
	if (r < 0) {
		error_origin(r);
		peer_free(peer);
	}
}

int control_init(struct control *control, struct loop *loop, const char *path,
		 const struct commands *commands)
{
	*control = (struct control){.loop = loop, .commands = commands};
	return server_init(&control->server, loop, path, SOCK_STREAM, 0600, accepted);
}

void control_deinit(struct control *control)
{
	struct control_peer *peer, *next;

	server_deinit(&control->server);
	DL_FOREACH_SAFE (control->peers, peer, next) {
		peer_free(peer);
	}
}
