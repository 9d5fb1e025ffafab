#include "hardware/channels-thread.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <utlist.h>

#include "common/process.h"

#include "weir/base.h"
#include "weir/log.h"

#define END_MS 5000 /* for a process to end that is killed */

enum job {
	JOB_NONE,
	JOB_GO_ON,
	JOB_CLOSE,
	JOB_STOP,
	JOB_EXAMINE,
	JOB_SLICE,
	JOB_STOP_AGAIN,
	JOB_ASK,
};

/* A process gains something by a longer slice. */
static bool asks(const struct channels_group *group)
{
	return group->client && !group->failed && group->wanted.slice < CHANNELS_DEFAULT_SLICE;
}

static enum job job_of(const struct channels_group *group, uint64_t now)
{
	bool stopped = group->wanted.stopped && group->client;

	/* Whatever else has failed. */
	if (group->is.stopped && !stopped && !group->stuck)
		return JOB_GO_ON;
	if (!group->client)
		return JOB_CLOSE;
	if (group->failed)
		return JOB_NONE;
	if (!group->examined)
		return JOB_EXAMINE;
	if (stopped && !group->is.stopped)
		return JOB_STOP;
	if (group->wanted.slice != group->is.slice)
		return JOB_SLICE;
	if (group->again && group->is.stopped)
		return JOB_STOP_AGAIN;
	return asks(group) && now - group->asked >= CHANNELS_ASK_NS ? JOB_ASK : JOB_NONE;
}

/* The most urgent job; NULL: there is none. */
static struct channels_group *next_job(const struct channels_gpu *gpu, enum job *job)
{
	struct channels_group *group, *found = NULL;
	uint64_t now = monotonic_now();

	*job = JOB_NONE;
	DL_FOREACH (gpu->groups, group) {
		enum job other = job_of(group, now);
		if (other == JOB_NONE || (found && other >= *job))
			continue;
		found = group;
		*job = other;
	}
	return found;
}

/* Whether the handles mean a group of this GPU. Another agent may have set its slice. */
static int examine(const struct channels_gpu *gpu, const struct channels_group *group,
		   uint64_t *slice)
{
	uint8_t uuid[16];
	int r = channel_group_gpu(group->fd, &group->ids, uuid);

	if (r == 0 && memcmp(uuid, gpu->uuid, sizeof(uuid)) != 0)
		r = -EXDEV;
	return r ? r : channel_group_get_slice(group->fd, &group->ids, slice);
}

struct work {
	enum job job;
	uint64_t slice;        /* wanted, or read */
	uint64_t began, ended; /* when the driver's call did */
	int r;
};

static void perform(const struct channels_gpu *gpu, const struct channels_group *group,
		    struct work *work)
{
	switch (work->job) {
	case JOB_GO_ON:
	case JOB_STOP:
	case JOB_STOP_AGAIN:
		work->r = channel_group_stop(group->fd, &group->ids, work->job != JOB_GO_ON);
		break;
	case JOB_EXAMINE:
		work->r = examine(gpu, group, &work->slice);
		break;
	case JOB_SLICE:
		work->r = channel_group_set_slice(group->fd, &group->ids, work->slice);
		break;
	case JOB_ASK:
		work->r = channel_group_get_slice(group->fd, &group->ids, &work->slice);
		break;
	case JOB_CLOSE:
	case JOB_NONE:
		break;
	}
}

/* With the lock. */
static void note(struct channels_gpu *gpu, struct channels_group *group, const struct work *work)
{
	group->again &= work->job != JOB_STOP_AGAIN;
	/* A driver may refuse to stop what is stopped. */
	if (work->r && work->job == JOB_STOP_AGAIN) {
		log_limited(LOG_INFO, 60, "process %d: its channel group is not stopped again: %d",
			    (int)group->pid, work->r);
		return;
	}
	if (work->r) {
		group->stuck = work->job == JOB_GO_ON;
		group->failed = true;
		group->error = work->r;
		gpu->counters.refused += !group->examined;
		return;
	}
	switch (work->job) {
	case JOB_GO_ON:
		group->is.stopped = false;
		group->runs_since = work->ended;
		break;
	case JOB_STOP:
		group->is.stopped = true;
		group->ran += work->ended - group->runs_since;
		group->stopped_at = work->ended;
		gpu->counters.stops++;
		break;
	case JOB_STOP_AGAIN:
		group->stopped_at = work->ended;
		break;
	case JOB_EXAMINE:
		group->examined = true;
		group->is.slice = work->slice;
		break;
	case JOB_SLICE:
		group->is.slice = work->slice;
		group->asked = work->ended;
		break;
	case JOB_ASK:
		group->asked = work->ended;
		if (work->slice == group->is.slice)
			break;
		group->is.slice = work->slice;
		group->disobeyed++;
		gpu->counters.disobeyed++;
		break;
	case JOB_CLOSE:
	case JOB_NONE:
		break;
	}
}

/* The driver takes 2 s longer to take a process down if its last descriptor but that of the process
 * itself is closed meanwhile. */
static void await_end(pid_t pid)
{
	cleanup(closep) int process = process_is_ending(pid) ? process_open(pid) : -1;

	if (process >= 0)
		poll(&(struct pollfd){.fd = process, .events = POLLIN}, 1, END_MS);
}

/* If it is the last descriptor, the driver frees now what the process had on the GPU, which may
 * take long. */
static void *close_slowly(void *argument)
{
	struct channels_group *group = argument;

	await_end(group->pid);
	close(group->fd);
	free(group);
	return NULL;
}

static void close_group(struct channels_group *group)
{
	pthread_attr_t detached;
	pthread_t thread;

	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &detached, close_slowly, group) != 0)
		close_slowly(group);
	pthread_attr_destroy(&detached);
}

static void tell(const struct channels_gpu *gpu)
{
	eventfd_write(gpu->news.fd, 1); /* fails only if 2^64 - 2 others were not read */
}

/* With the lock, which it gives up for the driver's call. */
static void do_job(struct channels_gpu *gpu, struct channels_group *group, enum job job)
{
	struct work work = {.job = job, .slice = group->wanted.slice};

	if (job == JOB_CLOSE) {
		DL_DELETE(gpu->groups, group);
		close_group(group);
		return;
	}
	group->stays = (group->is.stopped && job != JOB_GO_ON) || job == JOB_STOP;
	pthread_mutex_unlock(&gpu->lock);
	work.began = monotonic_now();
	perform(gpu, group, &work);
	work.ended = monotonic_now();
	pthread_mutex_lock(&gpu->lock);
	gpu->counters.calls++;
	gpu->counters.call_time += work.ended - work.began;
	bool examined = group->examined, failed = group->failed;
	uint64_t disobeyed = group->disobeyed;
	note(gpu, group, &work);
	group->stays = group->is.stopped;
	if (examined != group->examined || failed != group->failed || disobeyed != group->disobeyed)
		tell(gpu);
}

static bool some_ask(const struct channels_gpu *gpu)
{
	const struct channels_group *group;

	DL_FOREACH (gpu->groups, group) {
		if (asks(group))
			return true;
	}
	return false;
}

static void wait_for_work(struct channels_gpu *gpu)
{
	uint64_t until = monotonic_now() + CHANNELS_ASK_NS;
	struct timespec at = {.tv_sec = (time_t)(until / NS_PER_S),
			      .tv_nsec = (long)(until % NS_PER_S)};

	if (some_ask(gpu))
		pthread_cond_timedwait(&gpu->wake, &gpu->lock, &at);
	else
		pthread_cond_wait(&gpu->wake, &gpu->lock);
}

void *channels_thread(void *argument)
{
	struct channels_gpu *gpu = argument;
	enum job job;

	pthread_mutex_lock(&gpu->lock);
	for (;;) {
		struct channels_group *group = next_job(gpu, &job);
		if (group)
			do_job(gpu, group, job);
		else if (gpu->ends)
			break;
		else
			wait_for_work(gpu);
	}
	pthread_mutex_unlock(&gpu->lock);
	return NULL;
}
