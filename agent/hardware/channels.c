#include "hardware/channels.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <utlist.h>

#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"

static void unlock(pthread_mutex_t *const *mutex)
{
	pthread_mutex_unlock(*mutex);
}

static pthread_mutex_t *lock(struct channels_gpu *gpu)
{
	pthread_mutex_lock(&gpu->lock);
	return &gpu->lock;
}

#define locked(gpu) \
	cleanup(unlock) __attribute__((unused)) pthread_mutex_t *const locked_ = lock(gpu)

/* The groups of a client; with the lock of its GPU. */
#define group_for_each(group, client_)             \
	DL_FOREACH ((client_)->gpu->groups, group) \
		if ((group)->client == (client_))

static const char *error_text(int error, char text[64])
{
	if (error == -EXDEV)
		snprintf(text, 64, "it is on another GPU");
	else if (error < 0)
		snprintf(text, 64, "%s", strerror(-error));
	else
		snprintf(text, 64, "the driver says 0x%x", (unsigned)error);
	return text;
}

static void warn_not_used(pid_t pid, const char *why)
{
	log_limited(LOG_WARNING, 1, "process %d: its channel group is not used: %s", (int)pid, why);
}

/* Reads what the thread found. True: something has changed. */
static bool read_client(struct channels_client *client)
{
	bool usable = true, failed = false;
	uint64_t disobeyed = 0;
	struct channels_group *group;
	char text[64];

	group_for_each (group, client) {
		usable &= group->examined;
		failed |= group->failed;
		disobeyed += group->disobeyed;
		if (group->failed && !group->told)
			warn_not_used(group->pid, error_text(group->error, text));
		group->told |= group->failed;
	}
	usable &= !failed && client->n_groups;
	if (usable == client->usable && failed == client->failed && disobeyed == client->disobeyed)
		return false;
	client->usable = usable;
	client->failed = failed;
	client->disobeyed = disobeyed;
	return true;
}

/* A client with news; NULL: none has any. */
static struct channels_client *next_news(struct channels_gpu *gpu)
{
	struct channels_group *group;

	locked(gpu);
	DL_FOREACH (gpu->groups, group) {
		if (group->client && read_client(group->client))
			return group->client;
	}
	return NULL;
}

static void news(struct loop_io *io)
{
	struct channels_gpu *gpu = container_of(io, struct channels_gpu, news);
	struct channels_client *client;
	eventfd_t count;

	if (eventfd_read(io->fd, &count) < 0)
		return;
	while ((client = next_news(gpu)))
		client->changed(client);
}

static int start(struct channels_gpu *gpu, struct loop *loop, const uint8_t uuid[16])
{
	pthread_condattr_t clock;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd < 0)
		return error_origin(-errno);
	*gpu = (struct channels_gpu){.loop = loop};
	memcpy(gpu->uuid, uuid, sizeof(gpu->uuid));
	pthread_mutex_init(&gpu->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&gpu->wake, &clock);
	pthread_condattr_destroy(&clock);
	int r = loop_io_init(&gpu->news, loop, fd, EPOLLIN, news);
	if (r == 0)
		r = -pthread_create(&gpu->thread, NULL, channels_thread, gpu);
	if (r == 0)
		return 0;
	loop_io_deinit(&gpu->news);
	close(fd);
	gpu->loop = NULL;
	return error_origin(r);
}

/* With the lock. The client's group of this number; NULL: none. */
static struct channels_group *find(struct channels_gpu *gpu, const struct channels_client *client,
				   const struct channel_group *ids)
{
	struct channels_group *group;

	DL_FOREACH (gpu->groups, group) {
		if (group->client == client && group->ids.group == ids->group &&
		    group->ids.client == ids->client)
			return group;
	}
	return NULL;
}

/* Takes @fd unless it returns false. */
static bool add(struct channels_gpu *gpu, struct channels_client *client,
		const struct channel_group *ids, int fd)
{
	struct channels_group *group = calloc(1, sizeof(*group)), *former;

	if (!group)
		return false;
	*group = (struct channels_group){
		.fd = fd,
		.pid = client->pid,
		.ids = *ids,
		.client = client,
		.wanted = {client->slice ? client->slice : CHANNELS_DEFAULT_SLICE, client->stopped},
		.is = {CHANNELS_DEFAULT_SLICE, false},
		.runs_since = monotonic_now(),
	};
	locked(gpu);
	former = find(gpu, client, ids);
	if (former) {
		/* It has other channels now. The new entry stops those, too. */
		former->client = NULL;
		former->is.stopped = false;
		group->ran = former->ran;
	}
	DL_APPEND(gpu->groups, group);
	client->n_groups += !former;
	pthread_cond_signal(&gpu->wake);
	return true;
}

void channels_take(struct channels_gpu *gpu, struct loop *loop, const uint8_t uuid[16],
		   struct channels_client *client, const struct channel_group *group, int fd_taken)
{
	cleanup(closep) int fd = fd_taken;
	const char *wrong = NULL;

	if (!channel_group_is_device(fd))
		wrong = "the descriptor is not the driver's control device";
	else if (client->n_groups >= (client->max ? client->max : CHANNELS_GROUPS_MAX))
		wrong = "it has too many";
	if (wrong) {
		warn_not_used(client->pid, wrong);
		client->failed = true;
		client->usable = false;
		client->changed(client);
		return;
	}
	if (!gpu->loop && start(gpu, loop, uuid) < 0)
		return;
	client->gpu = gpu;
	if (add(gpu, client, group, fd))
		take_fd(fd);
}

void channels_forget(struct channels_client *client)
{
	struct channels_group *group;

	if (!client->gpu)
		return;
	locked(client->gpu);
	group_for_each (group, client)
		group->client = NULL;
	pthread_cond_signal(&client->gpu->wake);
	client->n_groups = 0;
	client->usable = false;
}

/* Tells the thread what is wanted of all the client's groups. */
static void want(struct channels_client *client)
{
	struct channels_group *group;

	if (!client->gpu)
		return;
	locked(client->gpu);
	group_for_each (group, client) {
		group->wanted.slice = client->slice ? client->slice : CHANNELS_DEFAULT_SLICE;
		group->wanted.stopped = client->stopped;
	}
	pthread_cond_signal(&client->gpu->wake);
}

void channels_set_slice(struct channels_client *client, uint64_t us)
{
	if (client->slice == us)
		return;
	client->slice = us;
	want(client);
}

void channels_stop(struct channels_client *client, bool stopped)
{
	if (client->stopped == stopped)
		return;
	client->stopped = stopped;
	want(client);
}

uint64_t channels_ran(const struct channels_client *client, uint64_t now)
{
	const struct channels_group *group;
	uint64_t most = 0;

	if (!client->gpu)
		return 0;
	locked(client->gpu);
	group_for_each (group, client) {
		bool runs = !group->is.stopped && now > group->runs_since;
		most = larger(most, group->ran + (runs ? now - group->runs_since : 0));
	}
	return most;
}

uint64_t channels_stopped_at(const struct channels_client *client)
{
	const struct channels_group *group;
	uint64_t last = 0;

	if (!client->gpu)
		return 0;
	locked(client->gpu);
	group_for_each (group, client) {
		if (!group->is.stopped)
			return 0;
		last = larger(last, group->stopped_at);
	}
	return last;
}

bool channels_stays_stopped(const struct channels_client *client)
{
	const struct channels_group *group;
	bool stays = client->n_groups > 0;

	if (!client->gpu)
		return false;
	locked(client->gpu);
	group_for_each (group, client)
		stays &= group->stays;
	return stays;
}

void channels_stop_again(struct channels_client *client)
{
	struct channels_group *group;

	if (!client->gpu)
		return;
	locked(client->gpu);
	group_for_each (group, client)
		group->again = group->is.stopped;
	pthread_cond_signal(&client->gpu->wake);
}

struct channels_counters channels_count(struct channels_gpu *gpu)
{
	if (!gpu->loop)
		return (struct channels_counters){0};
	locked(gpu);
	return gpu->counters;
}

void channels_deinit(struct channels_gpu *gpu)
{
	struct channels_group *group;

	if (!gpu->loop)
		return;
	pthread_mutex_lock(&gpu->lock);
	gpu->ends = true;
	DL_FOREACH (gpu->groups, group) {
		group->client = NULL;
	}
	pthread_cond_signal(&gpu->wake);
	pthread_mutex_unlock(&gpu->lock);
	pthread_join(gpu->thread, NULL);
	int fd = gpu->news.fd;
	loop_io_deinit(&gpu->news);
	close(fd);
	pthread_cond_destroy(&gpu->wake);
	pthread_mutex_destroy(&gpu->lock);
	gpu->loop = NULL;
}
