#include "client/link.h"

#include "client/connect.h"
#include "client/hold.h"
#include "memory/memory-ledger.h"
#include "client/pages.h"
#include "shim/thread.h"
#include "client/worker.h"

#include "weir/base.h"
#include "weir/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define ANSWER_WITHIN 1000      /* ms, for the first connection, on an application's thread */
#define RETRY_FIRST   50000000u /* ns */
#define RETRY_MAX     400000000u
#define WORK_EVERY    2000000u /* ns: who tells more often is made to wait by the agent */

static struct {
	bool started;
	int wake; /* eventfd: the set of sockets has changed */
	pthread_mutex_t
		lock; /* the clients' sockets and retry times; never held over a driver call */
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
		.context = client->index,
		.library = WEIR_VERSION,
	};

	weir_header_init(&hello.header, WEIR_HELLO, sizeof(hello));
	memcpy(hello.gpu, client->gpu.bytes, sizeof(hello.gpu));
	return weir_message_send(socket, &hello, sizeof(hello), NULL, 0);
}

/* The pages of a level: first the one to wait for, unless it is the top, then those below. */
static int take_level(struct client *client, struct level_binding *binding, uint8_t level,
		      const int *fds)
{
	int r = 0;

	binding->level = level;
	binding->wait = NULL;
	if (level < WEIR_DEMAND_LEVELS)
		r = pages_take(client, &binding->wait, *fds++, false);
	for (unsigned q = 0; q < level && !r; q++)
		r = pages_take(client, &binding->below[q], *fds++, true);
	return r;
}

/* A level is one for the agent that says it: its pages may not be settled yet. */
static struct level_binding *binding_new(struct client *client, const union weir_message *message,
					 const int *fds)
{
	const struct level_binding *now = client->newest;
	int r;

	if (message->header.type == WEIR_LEVEL && !now)
		return NULL;
	cleanup(freep) struct level_binding *binding = calloc(1, sizeof(*binding));
	if (!binding)
		return NULL;
	if (message->header.type == WEIR_WELCOME) {
		binding->bit = message->welcome.bit;
		binding->number = message->welcome.client;
		r = pages_take(client, &binding->control, fds[0], true);
		r = r ? r : pages_take(client, &binding->status, fds[1], true);
		r = r ? r : take_level(client, binding, message->welcome.level, fds + 2);
	} else {
		*binding = *now;
		r = take_level(client, binding, message->level.level, fds);
	}
	if (r) {
		log_warning("the agent's pages cannot be used (%s): not governed", strerror(-r));
		return NULL;
	}
	return take(binding);
}

/* One message from the agent: what it makes of the client, or NULL with a reason logged. */
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
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
	return binding;
}

/* Under the same number as the one before, so that nobody sends to what is no socket of ours. */
static void hang_bell(struct client *client, int socket)
{
	int bell = atomic_load(&client->bell);

	if (!bell)
		bell = fcntl(socket, F_DUPFD_CLOEXEC, CONNECT_FD_FROM);
	else if (dup3(socket, bell, O_CLOEXEC) < 0)
		return; /* the former one: nobody hears it */
	if (bell > 0)
		atomic_store(&client->bell, bell);
}

void link_tell_work(struct client *client, uint64_t now)
{
	int bell = atomic_load_explicit(&client->bell, memory_order_relaxed);
	struct weir_work message = {0};

	if (!bell || now - atomic_load_explicit(&client->rung, memory_order_relaxed) < WORK_EVERY)
		return;
	atomic_store_explicit(&client->rung, now, memory_order_relaxed);
	weir_header_init(&message.header, WEIR_WORK, sizeof(message));
	/* If it is not taken the agent looks a little later. */
	send(bell, &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The more so the longer no agent has taken the client. */
static void retry_later(struct client *client, uint64_t now)
{
	uint64_t delay = client->retry_delay ? 2 * client->retry_delay : RETRY_FIRST;

	client->retry_delay = delay < RETRY_MAX ? delay : RETRY_MAX;
	client->retry_at = now + client->retry_delay;
}

struct level_binding *link_open(struct client *client)
{
	cleanup(closep) int socket = connect_agent();
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	size_t n_fds = 0;
	int r = socket < 0 ? socket : say_hello(client, socket);

	retry_later(client, client_now());
	if (!r) {
		struct pollfd answer = {.fd = socket, .events = POLLIN};
		r = poll(&answer, 1, ANSWER_WITHIN) == 1 ? 0 : -ETIMEDOUT;
	}
	r = r ? r : weir_message_receive(socket, &message, fds, &n_fds);
	if (r) {
		log_debug("no agent yet (%s): launches go straight to the driver",
			  r < 0 ? strerror(-r) : weir_check_text((enum weir_check)r));
		return NULL;
	}
	struct level_binding *binding = accept_message(client, &message, fds, n_fds, client_now());
	if (binding) {
		log_debug("client %llu: level %u, bit %u", (unsigned long long)binding->number,
			  binding->level, binding->bit);
		client->retry_at = client->retry_delay = 0;
		pthread_mutex_lock(&state.lock);
		hang_bell(client, socket);
		client->socket = take_fd(socket);
		client->newest = binding;
		pthread_mutex_unlock(&state.lock);
		ledger_answered();
	}
	return binding;
}

/* The agent has gone: nobody would ever open our hold word, nor clear the bit that it kept for us
 * and others, so we do. */
static void lost(struct client *client, uint64_t now)
{
	const struct level_binding *binding = client->newest;

	shutdown(client->socket, SHUT_RDWR);
	close(take_fd(client->socket));
	request_lost(client);
	if (binding)
		atomic_store(&control_page(binding)->hold, 0);
	for (unsigned q = 0; binding && binding->bit == WEIR_BIT_SHARED && q < binding->level; q++)
		atomic_fetch_and(&demand_page(binding->below[q])->word, ~(1ull << WEIR_BIT_SHARED));
	retry_later(client, now);
	log_debug("the agent has gone: levels stay as they are");
}

static void retry(struct client *client, uint64_t now)
{
	int socket = connect_agent();

	if (socket >= 0 && say_hello(client, socket) == 0) {
		hang_bell(client, socket);
		client->socket = socket;
		client->retry_at = 0;
		return;
	}
	if (socket >= 0)
		close(socket);
	retry_later(client, now);
}

/* Hands a binding to the worker. One that it had not yet taken is out of date. */
static void hand_over(struct client *client, struct level_binding *binding)
{
	client->newest = binding;
	free(atomic_exchange(&client->pending, binding));
	worker_wake();
}

void link_receive(struct client *client, uint64_t now)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	size_t n_fds = 0;
	int r = weir_message_receive(client->socket, &message, fds, &n_fds);

	if (r == -EAGAIN)
		return;
	if (r < 0) {
		lost(client, now);
	} else if (r > 0) {
		log_limited(LOG_WARNING, 60, "ignored from the agent: %s",
			    weir_check_text((enum weir_check)r));
	} else {
		struct level_binding *binding = accept_message(client, &message, fds, n_fds, now);
		/* Another agent, which does not know of our memory. */
		if (binding && message.header.type == WEIR_WELCOME) {
			client->retry_delay = 0;
			ledger_stale();
		}
		if (binding)
			hand_over(client, binding);
		else if (message.header.type == WEIR_COMPILED)
			worker_wake();
	}
}

/* What to wait for; how long, in ms. */
static int gather(struct pollfd *sockets, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		struct client *client = &clients[i];
		bool live = atomic_load(&client->state) == CLIENT_LIVE;
		sockets[i] = (struct pollfd){.fd = live ? client->socket : -1, .events = POLLIN};
		if (live && client->socket < 0 && client->retry_at && client->retry_at <= now)
			retry(client, now);
		if (live && client->socket < 0 && client->retry_at && client->retry_at < next)
			next = client->retry_at;
		if (live && client->socket >= 0) {
			sockets[i].fd = client->socket;
			uint64_t due = request_send(client, now);
			next = due < next ? due : next;
			const struct level_binding *binding = atomic_load(&client->binding);
			due = binding ? hold_expire(binding, now) : UINT64_MAX;
			next = due < next ? due : next;
		}
	}
	sockets[CLIENTS_MAX] = (struct pollfd){.fd = state.wake, .events = POLLIN};
	return next == UINT64_MAX ? -1 : next <= now ? 0 : (int)((next - now) / 1000000 + 1);
}

static void *run(void *unused)
{
	struct pollfd sockets[CLIENTS_MAX + 1];
	uint64_t count;

	(void)unused;
	thread_name("weir-link");
	for (;;) {
		pthread_mutex_lock(&state.lock);
		int timeout = gather(sockets, client_now());
		pthread_mutex_unlock(&state.lock);
		if (poll(sockets, countof(sockets), timeout) < 0 && errno != EINTR)
			return NULL;

		if (sockets[CLIENTS_MAX].revents && read(state.wake, &count, sizeof(count)) < 0 &&
		    errno != EAGAIN)
			return NULL; /* somebody closed it: there is no thread to wake any more */
		pthread_mutex_lock(&state.lock);
		for (size_t i = 0; i < CLIENTS_MAX; i++) {
			/* Still the socket that was waited for? */
			if (sockets[i].fd >= 0 && sockets[i].revents &&
			    clients[i].socket == sockets[i].fd)
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
	pthread_mutex_lock(&state.lock);
	if (client->socket >= 0) {
		shutdown(client->socket, SHUT_RDWR); /* the bell stays */
		close(take_fd(client->socket));
	}
	client->retry_at = 0;
	/* `newest` stays as it is: so does the binding, and nothing else may point at it. */
	request_reset(client);
	pthread_mutex_unlock(&state.lock);
	free(atomic_exchange(&client->pending, NULL));
	link_wake();
}

void link_reset(struct client *client)
{
	pthread_mutex_lock(&state.lock);
	client->socket = -1;
	client->retry_at = 0;
	client->retry_delay = 0;
	client->newest = NULL;
	request_reset(client);
	pthread_mutex_unlock(&state.lock);
	atomic_store(&client->pending, NULL);
}

void link_forget(void)
{
	pthread_mutex_init(&state.lock, NULL);
	if (state.wake >= 0)
		close(state.wake);
	state.wake = -1;
	state.started = false;
}
