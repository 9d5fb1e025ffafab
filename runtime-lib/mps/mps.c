/* libweir-mps.so, preloaded into the MPS daemon of a level and so into its server. The server makes
 * the compute channel group of all its clients. This library sees it (shim/ioctl.h), and hands it
 * to the agent at the socket that WEIR_MPS_SOCKET names: a WEIR_CHANNELS for each group, and again
 * when its channels change. The end of the connection takes all of them back.
 *
 * The agent may stop the groups. It says until when (WEIR_STOPPED). If it does not renew that in
 * time, or dies, the groups go on.
 *
 * In a process that makes no such group, like the daemon itself, it does nothing. */
#include "shim/ioctl.h"
#include "shim/thread.h"
#include "shim/weak-libc.h"

#include "weir/base.h"
#include "weir/log.h"
#include "weir/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#define GROUPS_MAX 64
#define RETRY_MS   1000 /* while there is no agent */

struct set {
	struct channel_group groups[GROUPS_MAX];
	int fds[GROUPS_MAX];
	unsigned n;
};

static struct {
	struct once started;
	int wake; /* eventfd: the groups have changed */
} state = {.wake = -1};

/* The thread's. */
struct link {
	int socket; /* -1: not connected */
	struct set told, now;
	uint64_t stopped_until; /* ns; 0: not stopped */
};

/* The process's groups whose descriptors are still what libcuda opened. */
static void collect(struct set *set)
{
	size_t at = 0;

	set->n = 0;
	while (set->n < GROUPS_MAX &&
	       channel_groups_next(NULL, &at, &set->groups[set->n], &set->fds[set->n]))
		set->n += channel_group_is_device(set->fds[set->n]);
}

static const struct channel_group *find(const struct set *set, const struct channel_group *group)
{
	for (unsigned i = 0; i < set->n; i++)
		if (set->groups[i].client == group->client && set->groups[i].group == group->group)
			return &set->groups[i];
	return NULL;
}

/* All of its groups are still there, with all of their channels. */
static bool is_part(const struct set *told, const struct set *now)
{
	for (unsigned i = 0; i < told->n; i++) {
		const struct channel_group *group = find(now, &told->groups[i]);
		if (!group || group->n_channels < told->groups[i].n_channels ||
		    memcmp(group->channels, told->groups[i].channels,
			   told->groups[i].n_channels * sizeof(group->channels[0])) != 0)
			return false;
	}
	return true;
}

static int connect_agent(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("WEIR_MPS_SOCKET");

	if (!path || strlen(path) >= sizeof(address.sun_path))
		return -ENOENT;
	memcpy(address.sun_path, path, strlen(path) + 1);
	cleanup(closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return take_fd(fd);
}

static bool tell(int socket, const struct set *told, const struct set *now)
{
	for (unsigned i = 0; i < now->n; i++) {
		struct weir_channels message = {.group = now->groups[i]};
		const struct channel_group *before = find(told, &now->groups[i]);
		if (before && memcmp(before, &now->groups[i], sizeof(*before)) == 0)
			continue;
		weir_header_init(&message.header, WEIR_CHANNELS, sizeof(message));
		if (weir_message_send(socket, &message, sizeof(message), &now->fds[i], 1) < 0)
			return false;
	}
	return true;
}

static void go_on(struct link *link)
{
	link->stopped_until = 0;
	collect(&link->now);
	for (unsigned i = 0; i < link->now.n; i++) {
		const struct channel_group *group = &link->now.groups[i];
		int fd = link->now.fds[i], r = channel_group_stop(fd, group, false);
		r = r ? r : channel_group_set_slice(fd, group, CHANNEL_GROUP_SLICE);
		if (r)
			log_limited(LOG_WARNING, 60, "a channel group cannot be let go: %d", r);
	}
}

static void disconnect(struct link *link)
{
	closep(&link->socket);
	link->socket = -1;
	link->told.n = 0;
}

/* True: the agent knows all groups. */
static bool tell_changes(struct link *link)
{
	collect(&link->now);
	if (link->socket >= 0 && !is_part(&link->told, &link->now))
		disconnect(link);
	if (link->socket < 0)
		link->socket = link->now.n ? connect_agent() : -1;
	if (link->socket < 0)
		return link->now.n == 0;
	if (!tell(link->socket, &link->told, &link->now))
		return false;
	link->told = link->now;
	return true;
}

static void hear(struct link *link)
{
	union weir_message message;
	int fds[WEIR_FDS_MAX];
	size_t n = 0;

	int r = weir_message_receive(link->socket, &message, fds, &n);
	for (size_t i = 0; r == 0 && i < n; i++)
		close(fds[i]);
	if (r == 0 && message.header.type == WEIR_STOPPED) {
		link->stopped_until = message.stopped.until;
	} else if (r < 0 && r != -EAGAIN) {
		disconnect(link);
		go_on(link);
	}
}

/* ms for poll(). */
static int time_left(const struct link *link, bool told, uint64_t now)
{
	int retry = told ? -1 : RETRY_MS;

	if (!link->stopped_until)
		return retry;
	uint64_t left = link->stopped_until > now ? link->stopped_until - now : 0;
	return (int)smaller(left / NS_PER_MS + 1, RETRY_MS);
}

static void *run(void *unused)
{
	static struct link link = {.socket = -1};

	(void)unused;
	thread_name("weir-mps");
	for (;;) {
		eventfd_t count;
		bool told = tell_changes(&link);
		struct pollfd wait[] = {
			{.fd = state.wake, .events = POLLIN},
			{.fd = link.socket < 0 ? -1 : link.socket, .events = POLLIN}};
		int timeout = time_left(&link, told, monotonic_now());
		if (poll(wait, countof(wait), timeout) < 0 && errno != EINTR)
			return NULL;
		if (wait[0].revents && eventfd_read(state.wake, &count) < 0 && errno != EAGAIN)
			return NULL; /* somebody closed it */
		if (wait[1].revents)
			hear(&link);
		if (link.stopped_until && monotonic_now() >= link.stopped_until)
			go_on(&link);
	}
}

static void start(void)
{
	if (!weak_libc_bind_loader())
		return;
	weak_libc_bind_threads(NULL);
	state.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (state.wake >= 0)
		thread_start(run, "weir-mps");
}

static void changed(void)
{
	once(&state.started, start);
	if (state.wake >= 0)
		eventfd_write(state.wake, 1);
}

__attribute__((constructor)) static void begin(void)
{
	channel_groups_notify(changed);
}
