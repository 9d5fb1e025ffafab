#include "daemon/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "kubernetes/peer.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"

struct session {
	struct agent *agent;
	struct session *prev, *next;
	int fd, process;
	struct loop_io socket, death;
	struct loop_timer hello;
	struct loop_timer pause; /* nothing is read until then */
	uint64_t burst_since;
	unsigned burst;
	struct gpu
		*asked; /* on which its limit of memory is; the answer waits for the API server */
	struct weir_hello said; /* and so does the one to this, */
	bool waits;             /* if there is one */
	pid_t pid;
	struct tenant *tenant;
	const struct gpu *only; /* that it may ask for; NULL: any */
	struct client *client;  /* NULL: not welcomed yet */
	struct compile_client compile;
};

/* The pages that belong to a level, in the order of the protocol. */
static size_t level_fds(const struct gpu *gpu, uint8_t level, int *fds)
{
	size_t n = 0;

	if (level < WEIR_DEMAND_LEVELS)
		fds[n++] = gpu->region.readonly[level];
	for (uint8_t below = 0; below < level; below++)
		fds[n++] = gpu->region.writable[below];
	return n;
}

static void free_client(struct agent *agent, struct client *client)
{
	struct tenant *tenant = client->tenant;

	/* What it did since the last look. */
	client_read(client);
	client_count_hold(client, false, loop_now());
	scheduler_remove(client);
	gpu_remove(client->gpu, client, agent->stopping);
	DL_DELETE2(tenant->clients, client, tenant_prev, tenant_next);
	if (!agent->stopping)
		scheduler_change(&agent->scheduler, client->gpu);
	region_pages_deinit(&client->pages);
	free(client);
}

static void session_free(struct session *session)
{
	struct agent *agent = session->agent;

	if (session->client) {
		log_debug("client %llu is gone", (unsigned long long)session->client->number);
		compile_leave(&session->compile);
		free_client(agent, take(session->client));
	}
	if (session->tenant)
		tenants_leave(&agent->tenants, session->tenant, loop_now());
	DL_DELETE(agent->sessions, session);
	agent->n_sessions--;
	loop_timer_deinit(&session->pause);
	loop_timer_deinit(&session->hello);
	loop_io_deinit(&session->death);
	loop_io_deinit(&session->socket);
	closep(&session->process);
	closep(&session->fd);
	free(session);
}

static void refuse(struct agent *agent, int fd, enum weir_refusal reason, pid_t pid,
		   const char *text, bool limited)
{
	struct weir_refused message = handshake_refused(reason, text);

	message.flags = limited ? WEIR_REFUSED_LIMITED : 0;
	agent->refused[reason]++;
	log_limited(LOG_WARNING, 1, "client refused (%s), pid %d: %s",
		    handshake_refusal_name(reason), (int)pid, text);
	weir_message_send(fd, &message, sizeof(message), NULL, 0);
}

static void refuse_session(struct session *session, enum weir_refusal reason, const char *text)
{
	refuse(session->agent, session->fd, reason, session->pid, text,
	       agent_limits(session->agent, session->tenant));
	session_free(session);
}

static struct memory_owner owner_of(const struct agent *agent, const struct tenant *tenant,
				    const struct gpu *gpu)
{
	return (struct memory_owner){.tenant = tenant->key,
				     .gpu = gpu->id,
				     .identity = &tenant->identity,
				     .known = tenant->memory_known,
				     .limit = agent_memory_limit(agent, tenant, gpu, NULL)};
}

/* What a client calls itself is shown to people: no byte of it may mean anything to a terminal. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

static void read_command(pid_t pid, char *out, size_t size)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, out, size - 1);
	out[n > 0 ? n - 1 : 0] = '\0'; /* its last byte is a newline */
	make_printable(out);
}

static int send_welcome(const struct client *client)
{
	struct weir_welcome message = {
		.level = client->level, .bit = client->bit, .client = client->number};
	int fds[WEIR_FDS_MAX] = {client->pages.control_fd, client->pages.status_fd};
	size_t n = 2 + level_fds(client->gpu, client->level, fds + 2);

	weir_header_init(&message.header, WEIR_WELCOME, sizeof(message));
	return weir_message_send(client->socket, &message, sizeof(message), fds, n);
}

static int send_level(const struct client *client)
{
	struct weir_level message = {.level = client->level};
	int fds[WEIR_FDS_MAX];
	size_t n = level_fds(client->gpu, client->level, fds);

	weir_header_init(&message.header, WEIR_LEVEL, sizeof(message));
	return weir_message_send(client->socket, &message, sizeof(message), fds, n);
}

static void send_compiled(struct compile_client *asked, const struct weir_compiled *message, int fd)
{
	const struct client *client = container_of(asked, struct session, compile)->client;
	int r = weir_message_send(client->socket, message, sizeof(*message), &fd, fd >= 0);

	if (r < 0) {
		log_warning("client %llu does not take what it asked for: %s",
			    (unsigned long long)client->number, strerror(-r));
		/* Its session ends when the loop sees this. */
		shutdown(client->socket, SHUT_RDWR);
	}
}

/* Takes its place on GPU and tenant, so that the pages are right before the client sees them. */
static int make_client(struct session *session, struct gpu *gpu, const struct weir_hello *hello)
{
	struct agent *agent = session->agent;
	struct client *client = calloc(1, sizeof(*client));

	if (!client)
		return error_origin(-ENOMEM);
	int r = region_pages_init(&client->pages);
	if (r < 0) {
		free(client);
		return r;
	}
	client->number = ++agent->last_number;
	client->tenant = session->tenant;
	client->socket = session->fd;
	atomic_store(&client->pages.control->memory_limit,
		     agent_memory_limit(agent, session->tenant, gpu, NULL));
	client->pid = session->pid;
	client->context = hello->context;
	session->compile.answer = send_compiled;
	session->compile.container = &session->tenant->compiled;
	client->level = session->tenant->level;
	memcpy(client->library, hello->library, sizeof(client->library));
	make_printable(client->library);
	read_command(session->pid, client->command, sizeof(client->command));
	atomic_store(&client->pages.control->level, client->level);
	gpu_add(gpu, client, hello->claimed_bit);
	DL_APPEND2(session->tenant->clients, client, tenant_prev, tenant_next);
	scheduler_add(&agent->scheduler, client);
	r = send_welcome(client);
	region_pages_close(&client->pages);
	session->client = client;
	return r;
}

/* As gpus_get(); another one than its own is as unknown to it. */
static int find_gpu(const struct session *session, const uint8_t uuid[16], struct gpu **gpu)
{
	if (session->only && memcmp(session->only->uuid, uuid, 16) != 0)
		return GPUS_UNKNOWN;
	return gpus_get(&session->agent->gpus, uuid, gpu);
}

static void welcome(struct session *session, const struct weir_hello *hello)
{
	struct agent *agent = session->agent;
	char id[GPU_ID_SIZE];
	char text[128];
	struct gpu *gpu;
	int r = find_gpu(session, hello->gpu, &gpu);

	gpu_format_id(hello->gpu, id);
	if (r > 0) {
		snprintf(text, sizeof(text), "no GPU %s here", id);
		refuse_session(session, WEIR_REFUSED_GPU, text);
		return;
	}
	if (r == 0) {
		agent_configure_gpu(agent, gpu);
		r = make_client(session, gpu, hello);
	}
	if (r < 0) {
		snprintf(text, sizeof(text), "the agent has trouble: %s", strerror(-r));
		refuse_session(session, WEIR_REFUSED_INTERNAL, text);
		return;
	}
	loop_timer_deinit(&session->hello);
	/* What its processes have from before a restart is watched again. */
	struct memory_owner owner = owner_of(agent, session->tenant, gpu);
	memories_find(&agent->memories, &owner);
	log_debug("client %llu: %s, pid %d, level %u, bit %u of %s, libweir %.31s",
		  (unsigned long long)session->client->number, session->client->command,
		  (int)session->pid, session->client->level, session->client->bit, id,
		  session->client->library);
}

/* Who was known to an agent before this one acts on its level still. Without the pods we would say
 * another for a moment, and a pod above would wait for those below it. */
static bool level_unknown(const struct session *session, const struct weir_hello *hello)
{
	const struct agent *agent = session->agent;

	return agent->pods && !agent->pods_known && session->tenant->identity.in_pod &&
	       hello->claimed_bit != WEIR_BIT_NONE;
}

static void wait_to_welcome(struct session *session, const struct weir_hello *hello)
{
	session->said = *hello;
	session->waits = true;
	loop_io_modify(&session->socket, 0);
	loop_timer_set(&session->hello, SESSION_LEVEL_NS, 0);
	pods_hurry(session->agent->pods);
}

static void welcome_at_last(struct session *session)
{
	session->waits = false;
	loop_io_modify(&session->socket, EPOLLIN);
	welcome(session, &session->said);
}

static int send_account(const struct session *session, const struct memory *memory, uint32_t slot)
{
	struct weir_account message = {.slot = slot};
	int fds[] = {memory->limit.readonly, memory->account.writable};

	weir_header_init(&message.header, WEIR_ACCOUNT, sizeof(message));
	return weir_message_send(session->fd, &message, sizeof(message), fds, countof(fds));
}

static void answer_memory(struct session *session, struct gpu *gpu)
{
	struct memory_owner owner = owner_of(session->agent, session->tenant, gpu);
	struct memory *memory;
	int r = memories_enter(&session->agent->memories, &owner, session->pid, session->process,
			       &memory);

	/* Metrics tell of who only allocates, too. */
	if (r >= 0)
		tenant_usage(session->tenant, gpu);
	if (r >= 0)
		r = send_account(session, memory, (uint32_t)r);
	if (r == -ENOSPC)
		refuse_session(session, WEIR_REFUSED_LIMIT,
			       "too many processes with accounts of memory");
	else if (r < 0)
		refuse_session(session, WEIR_REFUSED_INTERNAL, strerror(-r));
}

/* Nobody has said yet whether the container has a limit: a new pod may be here before the news of
 * it. */
static bool limit_unknown(const struct session *session, const struct gpu *gpu)
{
	struct agent *agent = session->agent;
	struct memory_owner owner = owner_of(agent, session->tenant, gpu);

	return agent->pods && session->tenant->identity.in_pod && !owner.known &&
	       !memories_find(&agent->memories, &owner);
}

/* The asker may have closed its half already: only its end is listened for. */
static void wait_for_pod(struct session *session, struct gpu *gpu)
{
	session->asked = gpu;
	loop_io_modify(&session->socket, 0);
	loop_timer_set(&session->hello, SESSION_MEMORY_NS, 0);
	pods_hurry(session->agent->pods);
}

/* The connection is the asker's to end. */
static void tell_memory(struct session *session, const struct weir_memory *asked)
{
	struct agent *agent = session->agent;
	struct gpu *gpu;
	int r = find_gpu(session, asked->gpu, &gpu);

	if (r > 0) {
		/* Nobody has a limit on what is not here. */
		refuse(agent, session->fd, WEIR_REFUSED_GPU, session->pid, "no such GPU here",
		       false);
		session_free(session);
	} else if (r < 0) {
		refuse_session(session, WEIR_REFUSED_INTERNAL, strerror(-r));
	} else if (limit_unknown(session, gpu)) {
		wait_for_pod(session, gpu);
	} else {
		answer_memory(session, gpu);
	}
}

/* It asks again, if it cannot do without a limit. */
static void pod_late(struct session *session)
{
	struct agent *agent = session->agent;

	refuse(agent, session->fd, WEIR_REFUSED_INTERNAL, session->pid,
	       "its pod is not known yet, nor its limit of memory", agent->limited);
	session_free(session);
}

void sessions_answer(struct agent *agent)
{
	for (struct session *session = agent->sessions, *next; session; session = next) {
		next = session->next;
		if (session->waits && !level_unknown(session, &session->said)) {
			welcome_at_last(session);
		} else if (session->asked && !limit_unknown(session, session->asked)) {
			loop_timer_set(&session->hello, SESSION_HELLO_NS, 0);
			loop_io_modify(&session->socket, EPOLLIN);
			answer_memory(session, take(session->asked));
		}
	}
}

static void pause_over(struct loop_timer *timer)
{
	struct session *session = container_of(timer, struct session, pause);

	if (!session->asked && !session->waits)
		loop_io_modify(&session->socket, EPOLLIN);
}

/* The rest waits in the socket, and then its sender does. */
static void count_message(struct session *session)
{
	uint64_t now = loop_now();

	if (now - session->burst_since >= SESSION_BURST_NS) {
		session->burst_since = now;
		session->burst = 0;
	}
	if (++session->burst < SESSION_BURST)
		return;
	log_limited(LOG_WARNING, 60, "pid %d sends without end, and has to wait",
		    (int)session->pid);
	loop_io_modify(&session->socket, 0);
	loop_timer_set(&session->pause, session->burst_since + SESSION_BURST_NS - now, 0);
}

static void socket_ready(struct loop_io *io, uint32_t events)
{
	struct session *session = container_of(io, struct session, socket);
	struct handshake_verdict verdict;
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	size_t n = 0;

	(void)events;
	int r = weir_message_receive(io->fd, &message, fds, &n);
	if (r == -EAGAIN)
		return;
	if (r < 0) {
		session_free(session);
		return;
	}
	count_message(session);
	handshake_judge(&verdict, (enum weir_check)r, &message, session->client != NULL);
	if (verdict.action == HANDSHAKE_COMPILE) {
		compile_ask(&session->agent->compile, &session->compile, message.compile.id,
			    fds[0]);
		return;
	}
	if (verdict.action == HANDSHAKE_WORK) {
		scheduler_hear(&session->agent->scheduler, session->client);
		return;
	}
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
	if (verdict.action == HANDSHAKE_REFUSE)
		refuse_session(session, verdict.reason, verdict.text);
	else if (verdict.action == HANDSHAKE_WELCOME && level_unknown(session, &message.hello))
		wait_to_welcome(session, &message.hello);
	else if (verdict.action == HANDSHAKE_WELCOME)
		welcome(session, &message.hello);
	else if (verdict.action == HANDSHAKE_MEMORY)
		tell_memory(session, &message.memory);
}

static void process_died(struct loop_io *io, uint32_t events)
{
	(void)events;
	session_free(container_of(io, struct session, death));
}

static void hello_late(struct loop_timer *timer)
{
	struct session *session = container_of(timer, struct session, hello);

	if (session->waits)
		welcome_at_last(session);
	else if (session->asked)
		pod_late(session);
	else
		refuse_session(session, WEIR_REFUSED_MESSAGE, "no HELLO within 5 s");
}

static int session_start(struct session *session, const struct container_identity *identity)
{
	struct agent *agent = session->agent;
	bool fresh;
	int r = tenants_enter(&agent->tenants, identity, &session->tenant, &fresh);

	if (r == 0)
		r = loop_io_init(&session->socket, &agent->loop, session->fd, EPOLLIN,
				 socket_ready);
	if (r == 0)
		r = loop_io_init(&session->death, &agent->loop, session->process, EPOLLIN,
				 process_died);
	if (r == 0)
		r = loop_timer_init(&session->hello, &agent->loop, hello_late);
	if (r == 0)
		r = loop_timer_init(&session->pause, &agent->loop, pause_over);
	if (r == 0)
		r = loop_timer_set(&session->hello, SESSION_HELLO_NS, 0);
	return r;
}

/* Takes @fd and @process, also when it fails: NULL. */
static struct session *session_new(struct agent *agent, int fd, int process,
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
		.agent = agent, .fd = fd, .process = process, .pid = identity->pid};
	DL_APPEND(agent->sessions, session);
	agent->n_sessions++;
	int r = session_start(session, identity);
	if (r < 0) {
		error_origin(r);
		session_free(session);
		return NULL;
	}
	/* A tenant that was idle may have missed news of its pod. */
	agent_decide(agent, session->tenant);
	return session;
}

/* @gpu: the only one that it may ask for; NULL: any. */
static void let_in(struct agent *agent, int fd, const struct gpu *gpu)
{
	struct container_identity identity = {0};
	struct session *session;
	char text[128];
	int process;

	if (agent->n_sessions >= agent->config.clients) {
		refuse(agent, fd, WEIR_REFUSED_LIMIT, 0, "this node has no room for more clients",
		       agent->limited);
		close(fd);
		return;
	}
	int r = peer_identify(fd, &identity, &process);
	if (r < 0) {
		snprintf(text, sizeof(text), "the agent cannot tell who this is: %s",
			 r == -ENXIO ? "it does not see this PID namespace" : strerror(-r));
		if (r != -ESRCH)
			refuse(agent, fd, WEIR_REFUSED_INTERNAL, identity.pid, text,
			       agent->limited);
		close(fd);
		return;
	}
	session = session_new(agent, fd, process, &identity);
	if (session)
		session->only = gpu;
	if (session && session->tenant->n_sessions > agent->config.clients_per_container)
		refuse_session(session, WEIR_REFUSED_LIMIT, "this container has too many clients");
}

static void accepted(struct server *server, int fd)
{
	let_in(container_of(server, struct agent, clients), fd, NULL);
}

static void accepted_at_gpu_socket(struct server *server, int fd)
{
	struct gpu_socket *socket = container_of(server, struct gpu_socket, server);

	let_in(socket->agent, fd, socket->gpu);
}

void session_tell_levels(struct agent *agent, struct tenant *tenant)
{
	struct client *client;

	for (client = tenant->clients; client; client = client->tenant_next) {
		if (client->level == tenant->level)
			continue;
		gpu_set_level(client->gpu, client, tenant->level);
		scheduler_change(&agent->scheduler, client->gpu);
		int r = send_level(client);
		if (r < 0) {
			log_warning("client %llu does not take its new level: %s",
				    (unsigned long long)client->number, strerror(-r));
			/* Its session ends when the loop sees this. */
			shutdown(client->socket, SHUT_RDWR);
		}
	}
}

int sessions_init(struct agent *agent)
{
	int r = server_init(&agent->clients, &agent->loop, agent->config.socket, SOCK_SEQPACKET,
			    0666, accepted);

	return r == 0 ? gpu_sockets_init(agent, accepted_at_gpu_socket) : r;
}

void sessions_deinit(struct agent *agent)
{
	agent->stopping = true;
	server_deinit(&agent->clients);
	gpu_sockets_deinit(&agent->gpu_sockets);
	for (struct session *session = agent->sessions, *next; session; session = next) {
		next = session->next;
		session_free(session);
	}
}
