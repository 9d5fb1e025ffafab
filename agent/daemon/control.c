#include "daemon/control.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "daemon/commands.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"

struct control_peer {
	struct agent *agent;
	struct control_peer *prev, *next;
	int fd;
	struct loop_io io;
	struct loop_timer late;
	char request[CONTROL_REQUEST_MAX];
	size_t n_request;
	bool recording; /* its answer is the trace */
	char *answer;   /* NULL: the request is not complete, or the recording */
	size_t n_answer, at;
};

static void peer_free(struct control_peer *peer)
{
	if (peer->recording)
		free(record_end(&peer->agent->scheduler.record, loop_now()));
	DL_DELETE(peer->agent->control_peers, peer);
	peer->agent->n_control_peers--;
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

/* True: the whole line is there, or as much as we take. */
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
	char *answer =
		r < 0 ? NULL : commands_answer(peer->agent, peer->request, peer->n_request, &later);
	if (r < 0 || later == 0) {
		give_answer(peer, answer);
		return;
	}
	peer->recording = true;
	loop_timer_set(&peer->late, later, 0);
}

static void peer_ready(struct loop_io *io, uint32_t events)
{
	struct control_peer *peer = container_of(io, struct control_peer, io);

	(void)events;
	if (peer->recording)
		peer_free(peer); /* it has gone, or does not wait */
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
	give_answer(peer, commands_trace(peer->agent));
}

/* The socket's mode says it already; but modes can be changed by mistake. */
static bool may_control(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

static void accepted(struct server *server, int fd)
{
	struct agent *agent = container_of(server, struct agent, control);
	struct control_peer *peer;

	if (agent->n_control_peers >= CONTROL_PEERS_MAX || !may_control(fd) ||
	    !(peer = calloc(1, sizeof(*peer)))) {
		close(fd);
		return;
	}
	*peer = (struct control_peer){.agent = agent, .fd = fd};
	DL_APPEND(agent->control_peers, peer);
	agent->n_control_peers++;
	int r = loop_io_init(&peer->io, &agent->loop, fd, EPOLLIN, peer_ready);
	if (r == 0)
		r = loop_timer_init(&peer->late, &agent->loop, peer_late);
	if (r == 0)
		r = loop_timer_set(&peer->late, CONTROL_TIMEOUT_NS, 0);
	if (r < 0) {
		error_origin(r);
		peer_free(peer);
	}
}

int control_init(struct agent *agent)
{
	return server_init(&agent->control, &agent->loop, agent->config.control_socket, SOCK_STREAM,
			   0600, accepted);
}

void control_deinit(struct agent *agent)
{
	server_deinit(&agent->control);
	for (struct control_peer *peer = agent->control_peers, *next; peer; peer = next) {
		next = peer->next;
		peer_free(peer);
	}
}
