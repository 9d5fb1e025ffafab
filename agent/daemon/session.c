#include "daemon/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "config/config.h"
#include "daemon/session-answers.h"
#include "kubernetes/peer.h"
#include "kubernetes/pods.h"
#include "common/metric.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"

static const uint64_t deadlines[SESSION_STATES] = {
	[SESSION_OPEN] = SESSION_HELLO_NS,
	[SESSION_AWAITS_LEVEL] = SESSION_LEVEL_NS,
	[SESSION_AWAITS_LIMIT] = SESSION_MEMORY_NS,
	[SESSION_AWAITS_PIPES] = SESSION_PIPES_NS,
	[SESSION_MEMORY_WAIT] = 0,
	[SESSION_CLIENT] = 0,
};

static void session_free(struct session *session)
{
	struct sessions *sessions = session->sessions;

	if (session->client) {
		log_debug("client %llu is gone", (unsigned long long)session->client->number);
		compile_leave(&session->compile);
		clients_remove(&sessions->clients, take(session->client));
	}
	memory_wait_end(&session->wait, loop_now());
	if (session->tenant)
		tenants_leave(sessions->tenants, session->tenant, loop_now());
	DL_DELETE(sessions->all, session);
	sessions->n--;
	loop_timer_deinit(&session->pause);
	loop_timer_deinit(&session->deadline);
	loop_io_deinit(&session->death);
	loop_io_deinit(&session->socket);
	closep(&session->process);
	closep(&session->fd);
	free(session);
}

struct packet {
	union weir_message message;
	enum weir_check check;
	int fds[WEIR_FDS_MAX];
	size_t n_fds;
};

static void read_if_wanted(struct session *session)
{
	bool waits = session->state == SESSION_AWAITS_LEVEL ||
		     session->state == SESSION_AWAITS_LIMIT ||
		     session->state == SESSION_AWAITS_PIPES;

	loop_io_modify(&session->socket, waits || session->paused ? 0 : EPOLLIN);
}

static void enter(struct session *session, enum session_state state)
{
	if (state == session->state)
		return;
	session->state = state;
	if (deadlines[state])
		loop_timer_set(&session->deadline, deadlines[state], 0);
	else
		loop_timer_deinit(&session->deadline);
	read_if_wanted(session);
}

/* Performs the table's action and enters the next state. May free the session. @packet is empty
 * unless the event is a message. */
static void step(struct session *session, enum session_event event, struct packet *packet)
{
	const struct session_step *step = session_next(session->state, event);
	struct sessions *sessions = session->sessions;
	bool done = true;

	switch (step->action) {
	case SESSION_DO_NOTHING:
		break;
	case SESSION_DO_WELCOME:
		done = session_welcome(session);
		break;
	case SESSION_DO_TELL_ACCOUNT:
		done = session_tell_account(session);
		break;
	case SESSION_DO_NOTE_WAIT:
		done = session_note_wait(session, &packet->message.memory_waits);
		break;
	case SESSION_DO_TELL_PIPES:
		done = session_tell_pipes(session);
		break;
	case SESSION_DO_TELL_PIPES_LATER:
		done = session_tell_pipes_later(session);
		break;
	case SESSION_DO_HURRY_PODS:
		pods_hurry(sessions->decider->pods);
		break;
	case SESSION_DO_COMPILE:
		compile_ask(sessions->compile, &session->compile, packet->message.compile.id,
			    take_fd(packet->fds[0]));
		break;
	case SESSION_DO_TAKE_CHANNELS:
		clients_take_channels(&sessions->clients, session->client,
				      &packet->message.channels.group, take_fd(packet->fds[0]));
		break;
	case SESSION_DO_LEARN:
		profile_client_hear(sessions->profiles, session->client, &packet->message.learned);
		break;
	case SESSION_DO_LOOK:
		scheduler_hear(sessions->scheduler, session->client);
		break;
	case SESSION_DO_REFUSE:
		session_refuse(session, step->reason,
			       step->text ? step->text : weir_check_text(packet->check));
	}
	if (done && step->next != SESSION_GONE)
		enter(session, step->next);
	else
		session_free(session);
}

/* A step that no message causes. */
static void step_by_itself(struct session *session, enum session_event event)
{
	struct packet none = {.n_fds = 0};

	step(session, event, &none);
}

static enum session_event event_of(struct session *session, const struct packet *packet)
{
	enum session_event event = session_event_of(packet->check, packet->message.header.type);

	if (session->state != SESSION_OPEN)
		return event;
	if (event == SESSION_HELLO) {
		session->hello = packet->message.hello;
		return session_level_unknown(session) ? SESSION_HELLO_EARLY : event;
	}
	if (event == SESSION_MEMORY) {
		memcpy(session->asked, packet->message.memory.gpu, sizeof(session->asked));
		return session_limit_unknown(session) ? SESSION_MEMORY_EARLY : event;
	}
	if (event == SESSION_PIPES) {
		memcpy(session->asked, packet->message.pipes.gpu, sizeof(session->asked));
		return session_pipes_unknown(session) ? SESSION_PIPES_EARLY : event;
	}
	return event;
}

static void pause_over(struct loop_timer *timer)
{
	struct session *session = container_of(timer, struct session, pause);

	session->paused = false;
	read_if_wanted(session);
}

/* The rest waits in the socket, and its sender waits when that is full. */
static void count_message(struct session *session)
{
	uint64_t now = loop_now();

	if (now - session->busy_since >= SESSION_BUSY_NS) {
		session->busy_since = now;
		session->n_messages = 0;
	}
	if (++session->n_messages < SESSION_BUSY_MESSAGES)
		return;
	log_limited(LOG_WARNING, 60, "pid %d sends without end, and has to wait",
		    (int)session->pid);
	session->paused = true;
	read_if_wanted(session);
	loop_timer_set(&session->pause, session->busy_since + SESSION_BUSY_NS - now, 0);
}

static void socket_ready(struct loop_io *io)
{
	struct session *session = container_of(io, struct session, socket);
	struct packet packet = {.n_fds = 0};

	int r = weir_message_receive(io->fd, &packet.message, packet.fds, &packet.n_fds);
	if (r == -EAGAIN)
		return;
	if (r < 0) {
		step_by_itself(session, SESSION_END);
		return;
	}
	packet.check = (enum weir_check)r;
	count_message(session);
	step(session, event_of(session, &packet), &packet);
	for (size_t i = 0; i < packet.n_fds; i++)
		closep(&packet.fds[i]);
}

static void process_died(struct loop_io *io)
{
	step_by_itself(container_of(io, struct session, death), SESSION_END);
}

static void deadline_over(struct loop_timer *timer)
{
	step_by_itself(container_of(timer, struct session, deadline), SESSION_DEADLINE);
}

static bool has_what_it_awaits(const struct session *session)
{
	return (session->state == SESSION_AWAITS_LEVEL && !session_level_unknown(session)) ||
	       (session->state == SESSION_AWAITS_LIMIT && !session_limit_unknown(session)) ||
	       (session->state == SESSION_AWAITS_PIPES && !session_pipes_unknown(session));
}

void sessions_news(struct sessions *sessions)
{
	struct session *session, *next;

	DL_FOREACH_SAFE (sessions->all, session, next)
		if (has_what_it_awaits(session))
			step_by_itself(session, SESSION_POD_KNOWN);
}

/* New connections */

static int session_start(struct session *session, const struct container_identity *identity)
{
	struct sessions *sessions = session->sessions;
	int r = tenants_enter(sessions->tenants, identity, &session->tenant);

	if (r == 0)
		r = loop_io_init(&session->socket, sessions->loop, session->fd, EPOLLIN,
				 socket_ready);
	if (r == 0)
		r = loop_io_init(&session->death, sessions->loop, session->process, EPOLLIN,
				 process_died);
	if (r == 0)
		r = loop_timer_init(&session->pause, sessions->loop, pause_over);
	if (r == 0)
		r = loop_timer_init(&session->deadline, sessions->loop, deadline_over);
	if (r == 0)
		r = loop_timer_set(&session->deadline, deadlines[SESSION_OPEN], 0);
	return r;
}

/* Takes @fd and @process, also when it fails: NULL. */
static struct session *session_new(struct sessions *sessions, int fd, int process,
				   const struct container_identity *identity)
{
	struct session *session = calloc(1, sizeof(*session));

	if (!session) {
		close(fd);
		close(process);
		error_origin(-ENOMEM);
		return NULL;
	}
	*session = (struct session){
		.sessions = sessions, .fd = fd, .process = process, .pid = identity->pid};
	DL_APPEND(sessions->all, session);
	sessions->n++;
	int r = session_start(session, identity);
	if (r < 0) {
		error_origin(r);
		session_free(session);
		return NULL;
	}
	/* The pod of an idle tenant may have changed unnoticed. */
	sessions_decide(sessions, session->tenant);
	return session;
}

/* @gpu: the only one that the client may use; NULL: any. */
static void let_in(struct sessions *sessions, int fd_taken, const struct gpu *gpu)
{
	cleanup(closep) int fd = fd_taken;
	struct container_identity identity = {0};
	struct session *session;
	char text[128];
	int process;

	if (sessions->n >= sessions->config->clients) {
		session_send_refused(sessions, fd, WEIR_REFUSED_LIMIT, 0,
				     "this node has no room for more clients",
				     sessions->decider->limited);
		return;
	}
	int r = peer_identify(fd, &identity, &process);
	if (r < 0) {
		snprintf(text, sizeof(text), "the agent cannot tell who this is: %s",
			 r == -ENXIO ? "it does not see this PID namespace" : strerror(-r));
		if (r != -ESRCH)
			session_send_refused(sessions, fd, WEIR_REFUSED_INTERNAL, identity.pid,
					     text, sessions->decider->limited);
		return;
	}
	session = session_new(sessions, take_fd(fd), process, &identity);
	if (!session)
		return;
	session->only = gpu;
	if (session->tenant->n_sessions > sessions->config->clients_per_container) {
		session_refuse(session, WEIR_REFUSED_LIMIT, "this container has too many clients");
		session_free(session);
	}
}

static void accepted(struct server *server, int fd)
{
	let_in(container_of(server, struct sessions, server), fd, NULL);
}

static void accepted_at_gpu_socket(struct server *server, int fd)
{
	struct gpu_socket *socket = container_of(server, struct gpu_socket, server);

	let_in(container_of(socket->sockets, struct sessions, gpu_sockets), fd, socket->gpu);
}

void sessions_decide(struct sessions *sessions, struct tenant *tenant)
{
	decider_decide(sessions->decider, tenant);
	for (struct client *client = tenant->clients; client; client = client->tenant_next) {
		if (client->level == tenant->level)
			continue;
		gpu_set_level(client->gpu, client, tenant->level);
		scheduler_change(sessions->scheduler, client->gpu);
	}
	for (struct usage *usage = tenant->usages; usage; usage = usage->next) {
		if (usage->granted > tenant->level)
			gpu_revoke(usage->gpu, tenant->level, usage->granted);
		usage->granted = tenant->level;
		gpu_tell(usage->gpu);
	}
	for (struct client *client = tenant->clients; client; client = client->tenant_next)
		pipes_move(sessions->pipes, client);
}

void sessions_metrics_write(FILE *out, const struct sessions *sessions)
{
	static const struct metric table[] = {
		{"weir_refused_total", "Clients refused, by reason.",
		 METRIC_ARRAY(struct sessions, refused), .label = "reason",
		 .label_value = session_refusal_name, .first = WEIR_REFUSED_VERSION,
		 .end = SESSION_REFUSALS},
		{0},
	};

	metric_write_table(out, table, METRIC_OBJECT(sessions));
}

int sessions_init(struct sessions *sessions)
{
	const char *path = sessions->config->socket;

	sessions->clients = (struct clients){.loop = sessions->loop,
					     .decider = sessions->decider,
					     .scheduler = sessions->scheduler};
	int r = server_init(&sessions->server, sessions->loop, path, SOCK_SEQPACKET, 0666,
			    accepted);

	return r == 0 ? gpu_sockets_init(&sessions->gpu_sockets, sessions->loop, sessions->gpus,
					 path, accepted_at_gpu_socket)
		      : r;
}

void sessions_deinit(struct sessions *sessions)
{
	struct session *session, *next;

	sessions->clients.stopping = true;
	server_deinit(&sessions->server);
	gpu_sockets_deinit(&sessions->gpu_sockets);
	DL_FOREACH_SAFE (sessions->all, session, next) {
		session_free(session);
	}
}
