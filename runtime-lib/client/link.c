#include "client/link.h"

#include "client/channels.h"
#include "client/lesson.h"
#include "client/level-binding.h"
#include "client/pipes.h"
#include "client/request.h"
#include "client/worker.h"
#include "memory/memory-ledger.h"
#include "shim/connect.h"
#include "shim/ioctl.h"
#include "shim/thread.h"

#include "weir/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define ANSWER_WITHIN NS_PER_S /* ns, for the first connection, on an application's thread */
#define RETRY_FIRST   (50 * NS_PER_MS) /* ns */
#define RETRY_MAX     (400 * NS_PER_MS)
#define WORK_EVERY    (2 * NS_PER_MS)  /* ns: the agent delays a client that tells more often */
#define TELL_AGAIN    (10 * NS_PER_MS) /* ns, after the socket was full */

struct link link_table[CLIENTS_MAX];

static struct {
	bool started;
	int wake;             /* eventfd: the set of sockets has changed */
	pthread_mutex_t lock; /* of all links; never held over a driver call */
} state = {.wake = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

void link_wake(void)
{
	uint64_t one = 1;

	if (state.wake >= 0 && write(state.wake, &one, sizeof(one)) < 0 && errno != EAGAIN)
		log_limited(LOG_WARNING, 60, "the link thread cannot be woken: %s",
			    strerror(errno));
}

static int say_hello(const struct client *client, int socket)
{
	const struct level_binding *binding = atomic_load(&client->binding);
	struct weir_hello hello = {
		.claimed_bit = binding ? binding->bit : WEIR_BIT_NONE,
		.flags = WEIR_HELLO_TAKES_BIT | WEIR_HELLO_TAKES_PIPES | WEIR_HELLO_TAKES_PROFILES |
			 WEIR_HELLO_SAYS_WHOLE | (client->concurrent ? WEIR_HELLO_CONCURRENT : 0),
		.context = client->index,
		.library = WEIR_VERSION,
	};

	weir_header_init(&hello.header, WEIR_HELLO, sizeof(hello));
	memcpy(hello.gpu, client->gpu.bytes, sizeof(hello.gpu));
	return weir_message_send(socket, &hello, sizeof(hello), NULL, 0);
}

/* The pages of a level: first the one to wait for, unless it is the top, then
 * the lower levels'. */
static int take_level(struct client *client, struct level_binding *binding, uint8_t level,
		      const int *fds)
{
	int r = 0;

	binding->level = level;
	binding->wait = NULL;
	if (level < WEIR_DEMAND_LEVELS)
		r = binding_map_page(client, &binding->wait, *fds++, false);
	for (unsigned q = 0; q < level && !r; q++)
		r = binding_map_page(client, &binding->below[q], *fds++, true);
	return r;
}

/* A LEVEL message is about the newest binding, which the worker may not have
 * settled yet. */
static struct level_binding *binding_new(struct client *client, const union weir_message *message,
					 const int *fds)
{
	const struct level_binding *now = &link_of(client)->newest;
	int r;

	if (message->header.type == WEIR_LEVEL && !now->control)
		return NULL;
	cleanup(freep) struct level_binding *binding = calloc(1, sizeof(*binding));
	if (!binding)
		return NULL;
	if (message->header.type == WEIR_WELCOME) {
		binding->bit = message->welcome.bit;
		binding->number = message->welcome.client;
		r = binding_map_page(client, &binding->control, fds[0], true);
		r = r ? r : binding_map_page(client, &binding->status, fds[1], true);
		r = r ? r : take_level(client, binding, message->welcome.level, fds + 2);
	} else {
		*binding = *now;
		if (message->level.bit)
			binding->bit = message->level.bit - 1;
		r = take_level(client, binding, message->level.level, fds);
	}
	if (r) {
		log_warning("the agent's pages cannot be used (%s): not governed", strerror(-r));
		return NULL;
	}
	return take(binding);
}

/* The binding that a message from the agent makes, or NULL: none, or it cannot
 * be (logged). */
static struct level_binding *accept_message(struct client *client,
					    const union weir_message *message, int *fds,
					    size_t n_fds, uint64_t now)
{
	struct level_binding *binding = NULL;

	if (message->header.type == WEIR_WELCOME || message->header.type == WEIR_LEVEL)
		binding = binding_new(client, message, fds);
	else if (message->header.type == WEIR_REFUSED)
		log_limited(LOG_WARNING, 60, "the agent refuses this process: %s",
			    message->refused.text);
	else if (message->header.type == WEIR_COMPILED)
		request_answer(client, &message->compiled, n_fds ? fds[--n_fds] : -1, now);
	else if (message->header.type == WEIR_PROFILE)
		request_profiles(client, &message->profile);
	else if (message->header.type == WEIR_PIPES_ANSWER && n_fds)
		pipes_take(fds[--n_fds]);
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
	return binding;
}

/* link_tell_work() may send to the number of the socket at any time, so the
 * number must never become another file's. */
static void share_socket(struct link *link)
{
	int shared = atomic_load(&link->work_socket);

	if (!shared)
		shared = fcntl(link->socket, F_DUPFD_CLOEXEC, CONNECT_FD_FROM);
	else if (dup3(link->socket, shared, O_CLOEXEC) < 0)
		return; /* it stays the former socket, which nobody reads */
	if (shared > 0)
		atomic_store(&link->work_socket, shared);
}

void link_tell_work(struct client *client, uint64_t now)
{
	struct link *link = link_of(client);
	int socket = load_relaxed(&link->work_socket);
	struct weir_work message = {0};

	if (!socket || now - load_relaxed(&link->told) < WORK_EVERY)
		return;
	store_relaxed(&link->told, now);
	weir_header_init(&message.header, WEIR_WORK, sizeof(message));
	/* If the socket is full, the agent sees the work a little later. */
	send(socket, &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void retry_later(struct link *link, uint64_t now)
{
	uint64_t delay = link->retry_delay ? 2 * link->retry_delay : RETRY_FIRST;

	link->retry_delay = smaller(delay, RETRY_MAX);
	link->retry_at = now + link->retry_delay;
}

/* On an application's thread, which signals may interrupt. False: it takes too long. */
static bool await_answer(int socket)
{
	struct pollfd answer = {.fd = socket, .events = POLLIN};
	uint64_t now = client_now(), until = now + ANSWER_WITHIN;
	int r = -1;

	for (; r < 0 && now < until; now = client_now()) {
		r = poll(&answer, 1, (int)((until - now) / NS_PER_MS + 1));
		if (r < 0 && errno != EINTR)
			return false;
	}
	return r == 1;
}

void link_open(struct client *client)
{
	struct link *link = link_of(client);
	cleanup(closep) int socket = connect_agent();
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	size_t n_fds = 0;
	int r = socket < 0 ? socket : say_hello(client, socket);

	retry_later(link, client_now());
	if (!r && !await_answer(socket))
		r = -ETIMEDOUT;
	r = r ? r : weir_message_receive(socket, &message, fds, &n_fds);
	if (r) {
		log_debug("no agent yet (%s): launches go straight to the driver",
			  r < 0 ? strerror(-r) : weir_check_text((enum weir_check)r));
		return;
	}
	struct level_binding *binding = accept_message(client, &message, fds, n_fds, client_now());
	if (!binding)
		return;
	log_debug("client %llu: level %u, bit %u", (unsigned long long)binding->number,
		  binding->level, binding->bit);
	link->retry_at = link->retry_delay = 0;
	pthread_mutex_lock(&state.lock);
	link->socket = take_fd(socket);
	link->welcome = true;
	share_socket(link);
	link->newest = *binding;
	pthread_mutex_unlock(&state.lock);
	binding_exchange(client, binding);
	ledger_ask_again(false);
}

/* The agent has died. Nobody else would open our hold word, let our channel groups
 * go on, or clear the bit that the agent kept for us and others. */
static void lost(struct client *client, uint64_t now)
{
	struct link *link = link_of(client);
	const struct level_binding *binding = &link->newest;

	shutdown(link->socket, SHUT_RDWR);
	close(take_fd(link->socket));
	link->welcome = false;
	link->groups_told = 0;
	request_lost(client);
	if (binding->control)
		atomic_store(&control_page(binding)->hold, 0);
	channels_go_on(client);
	for (unsigned q = 0; binding->bit == WEIR_BIT_SHARED && q < binding->level; q++) {
		atomic_fetch_and(&demand_page(binding->below[q])->word, ~(1ull << WEIR_BIT_SHARED));
		atomic_fetch_and(&demand_page(binding->below[q])->whole,
				 ~(1ull << WEIR_BIT_SHARED));
	}
	retry_later(link, now);
	log_debug("the agent has gone: levels stay as they are");
}

static void retry(struct client *client, uint64_t now)
{
	struct link *link = link_of(client);
	cleanup(closep) int socket = connect_agent();

	if (socket < 0 || say_hello(client, socket) != 0) {
		retry_later(link, now);
		return;
	}
	link->socket = take_fd(socket);
	share_socket(link);
	link->retry_at = 0;
}

/* Hands a binding to the worker. An older one that the worker has not taken is
 * out of date. */
static void hand_over(struct client *client, struct level_binding *binding)
{
	link_of(client)->newest = *binding;
	free(binding_exchange(client, binding));
	worker_wake();
}

void link_receive(struct client *client, uint64_t now)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	size_t n_fds = 0;
	int r = weir_message_receive(link_of(client)->socket, &message, fds, &n_fds);

	if (r == -EAGAIN)
		return;
	if (r < 0) {
		lost(client, now);
	} else if (r > 0) {
		log_limited(LOG_WARNING, 60, "ignored from the agent: %s",
			    weir_check_text((enum weir_check)r));
	} else {
		struct level_binding *binding = accept_message(client, &message, fds, n_fds, now);
		/* Another agent does not know about our memory. */
		if (binding && message.header.type == WEIR_WELCOME) {
			link_of(client)->retry_delay = 0;
			link_of(client)->welcome = true;
			ledger_ask_again(true);
		}
		if (binding)
			hand_over(client, binding);
		else if (message.header.type == WEIR_COMPILED)
			worker_wake();
	}
}

/* Tells the agent of channel groups that it does not know. Returns when to try again, in ns. */
static uint64_t tell_channels(const struct client *client, uint64_t now)
{
	struct link *link = link_of(client);
	uint32_t changes = channel_groups_changes();

	if (!link->welcome || link->groups_told == changes)
		return UINT64_MAX;
	if (channels_tell(client, link->socket) == -EAGAIN)
		return now + TELL_AGAIN;
	link->groups_told = changes;
	return UINT64_MAX;
}

/* The agent is stopped or stuck. Its next stop has another time. */
static void end_stop(const struct client *client, const struct level_binding *binding, uint64_t now)
{
	struct link *link = link_of(client);
	uint64_t until = atomic_load(&control_page(binding)->stopped_until);

	if (!until || now < until || link->let_go_until == until)
		return;
	link->let_go_until = until;
	channels_go_on(client);
	log_limited(LOG_WARNING, 60,
		    "the agent has forgotten that it stopped this process: it goes on");
}

/* Retries, sends and looks as is due. Returns when to do so again, in ns. */
static uint64_t look_after(struct client *client, uint64_t now)
{
	struct link *link = link_of(client);

	if (link->socket < 0 && link->retry_at && link->retry_at <= now)
		retry(client, now);
	if (link->socket < 0)
		return link->retry_at ? link->retry_at : UINT64_MAX;
	const struct level_binding *binding = atomic_load(&client->binding);
	uint64_t next = request_send(client, link->socket, now);
	next = smaller(next, tell_channels(client, now));
	if (link->welcome)
		next = smaller(next, lesson_send(client, link->socket, now));
	if (!binding)
		return next;
	end_stop(client, binding, now);
	return smaller(binding_expire_hold(binding, now), next);
}

/* What to wait for: *@n clients, and behind them `wake`. Returns how long, in
 * ms. */
static int prepare_poll(struct pollfd *sockets, uint32_t *n, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	*n = 0;
	client_for_each (client) {
		struct pollfd *polled = &sockets[(*n)++];
		*polled = (struct pollfd){.fd = -1, .events = POLLIN};
		if (atomic_load(&client->state) != CLIENT_LIVE)
			continue;
		next = smaller(next, look_after(client, now));
		polled->fd = link_of(client)->socket;
	}
	sockets[*n] = (struct pollfd){.fd = state.wake, .events = POLLIN};
	return next == UINT64_MAX ? -1 : next <= now ? 0 : (int)((next - now) / NS_PER_MS + 1);
}

static void *run(void *unused)
{
	static struct pollfd sockets[CLIENTS_MAX + 1];
	uint64_t count;
	uint32_t n;

	(void)unused;
	thread_name("weir-link");
	for (;;) {
		pthread_mutex_lock(&state.lock);
		int timeout = prepare_poll(sockets, &n, client_now());
		pthread_mutex_unlock(&state.lock);
		if (poll(sockets, n + 1, timeout) < 0 && errno != EINTR)
			return NULL;

		if (sockets[n].revents && read(state.wake, &count, sizeof(count)) < 0 &&
		    errno != EAGAIN)
			return NULL; /* the program closed it: nothing can wake this thread */
		pthread_mutex_lock(&state.lock);
		for (uint32_t i = 0; i < n; i++) {
			/* Is it still the socket that poll() was about? */
			if (sockets[i].fd >= 0 && sockets[i].revents &&
			    link_table[i].socket == sockets[i].fd)
				link_receive(&clients[i], client_now());
		}
		pthread_mutex_unlock(&state.lock);
	}
}

int link_start(void)
{
	if (state.started)
		return 0;
	if (state.wake < 0)
		state.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int high = state.wake < 0 ? -1 : fcntl(state.wake, F_DUPFD_CLOEXEC, CONNECT_FD_FROM);
	if (high >= 0) {
		close(state.wake);
		state.wake = high;
	}
	int r = state.wake < 0 ? errno : thread_start(run, "weir-link");
	state.started = r == 0;
	return r;
}

void link_close(struct client *client)
{
	struct link *link = link_of(client);

	pthread_mutex_lock(&state.lock);
	if (link->socket >= 0) {
		shutdown(link->socket, SHUT_RDWR); /* ends the shared descriptor, too */
		close(take_fd(link->socket));
	}
	link->retry_at = 0;
	request_reset(client);
	lesson_reset(client);
	pthread_mutex_unlock(&state.lock);
	free(binding_exchange(client, NULL));
	link_wake();
}

void link_init(struct client *client)
{
	struct link *link = link_of(client);

	locked(&state.lock);
	link->socket = -1;
	link->retry_at = link->retry_delay = 0;
	link->newest = (struct level_binding){0};
	link->welcome = false;
	link->groups_told = 0;
	request_reset(client);
	lesson_reset(client);
	binding_exchange(client, NULL);
}

void link_fork(void)
{
	pthread_mutex_init(&state.lock, NULL);
	if (state.wake >= 0)
		close(state.wake);
	state.wake = -1;
	state.started = false;
	client_for_each (client) {
		struct link *link = link_of(client);
		int shared = atomic_exchange(&link->work_socket, 0);
		if (shared)
			close(shared);
		if (client->state == CLIENT_FREE)
			continue;
		if (link->socket >= 0)
			close(link->socket);
		link->socket = -1;
		link->newest = (struct level_binding){0};
		request_reset(client);
		lesson_reset(client);
	}
}
