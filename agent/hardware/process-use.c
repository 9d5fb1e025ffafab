#include "hardware/process-use.h"

#include <string.h>
#include <time.h>

#include "weir/base.h"
#include "weir/log.h"
#include "weir/nvml.h"

#define SAMPLES_MAX 1024u
/* Samples that are older are left out. Less than a period: then there is one at most. */
#define HISTORY_NS 130000000u
#define LATE_NS    50000000u /* so long after a period's end its samples come at the latest */

/* The thread's. */
struct reader {
	struct process_use *use;
	struct nvml nvml;
	nvmlDevice_t device;
	uint64_t seen;   /* wall clock, us: samples up to then are known */
	uint64_t called; /* ns of the wall clock, when the last call began; 0: not yet */
	struct process_periods periods;
	nvmlProcessUtilizationSample_t samples[SAMPLES_MAX];
};

static void keep(struct process_use *use, const struct process_sample *sample)
{
	struct process_sample *oldest = &use->samples[0];

	for (unsigned i = 0; i < PROCESS_USE_KEPT; i++) {
		struct process_sample *kept = &use->samples[i];
		if (kept->pid == sample->pid) {
			oldest = kept;
			break;
		}
		if (kept->end < oldest->end)
			oldest = kept;
	}
	if (oldest->pid != sample->pid || oldest->end < sample->end)
		*oldest = *sample;
}

static int by_time(const void *left, const void *right)
{
	const nvmlProcessUtilizationSample_t *a = left, *b = right;

	return (a->timeStamp > b->timeStamp) - (a->timeStamp < b->timeStamp);
}

static void take_samples(struct reader *reader, unsigned n, uint64_t wall, uint64_t now)
{
	uint64_t after = reader->seen;
	struct process_use *use = reader->use;
	bool count = process_periods_begin(&reader->periods, wall, now);

	qsort(reader->samples, n, sizeof(reader->samples[0]), by_time);
	pthread_mutex_lock(&use->lock);
	for (unsigned i = 0; i < n; i++) {
		const nvmlProcessUtilizationSample_t *from = &reader->samples[i];
		uint64_t end = from->timeStamp;
		if (!from->pid || end > wall / NS_PER_US)
			continue;
		reader->seen = larger(reader->seen, end);
		if (!count)
			continue;
		struct process_sample sample = process_periods_take(
			&reader->periods, (pid_t)from->pid, after, end, from->smUtil);
		keep(use, &sample);
	}
	pthread_mutex_unlock(&use->lock);
}

/* As late as possible: the driver may give the mean of all periods since then. Without what is
 * known, because the clock was set back, it is the history. */
static uint64_t ask_after(const struct reader *reader, uint64_t wall)
{
	uint64_t history = (wall - HISTORY_NS) / NS_PER_US;
	uint64_t former = larger(reader->called, LATE_NS) - LATE_NS;
	uint64_t after = larger(reader->seen, larger(former / NS_PER_US, history));

	return after > wall / NS_PER_US ? history : after;
}

/* False: it is of no use to ask again. */
static bool ask(struct reader *reader)
{
	const struct nvml *nvml = &reader->nvml;
	uint64_t wall = clock_ns(CLOCK_REALTIME), now = monotonic_now();
	unsigned n = SAMPLES_MAX;

	reader->seen = ask_after(reader, wall);
	reader->called = wall;
	nvmlReturn_t r = nvml->nvmlDeviceGetProcessUtilization(reader->device, reader->samples, &n,
							       reader->seen);
	if (r == NVML_ERROR_NOT_FOUND) /* no process has run */
		n = 0;
	else if (r == NVML_ERROR_NOT_SUPPORTED)
		return false;
	else if (r != NVML_SUCCESS)
		log_limited(LOG_WARNING, 600, "%s: NVML does not say which processes run: %s",
			    reader->use->id, nvml_error(nvml, r));
	/* The driver's answer belongs to a time between the two. */
	take_samples(reader, r == NVML_SUCCESS && n <= SAMPLES_MAX ? n : 0, wall, now);
	return true;
}

static bool open_device(struct reader *reader)
{
	char message[256];
	struct nvml *nvml = &reader->nvml;

	return nvml_open(nvml, reader->use->nvml, message, sizeof(message)) == 0 &&
	       nvml->nvmlDeviceGetProcessUtilization && nvml->nvmlDeviceGetHandleByUUID &&
	       nvml->nvmlDeviceGetHandleByUUID(reader->use->id, &reader->device) == NVML_SUCCESS;
}

/* With the lock. Until somebody asks, or the next call is due. */
static void await_question(struct process_use *use, const struct process_periods *periods)
{
	uint64_t now = monotonic_now(), until = process_periods_due(periods, now);
	struct timespec at = {.tv_sec = (time_t)(until / NS_PER_S),
			      .tv_nsec = (long)(until % NS_PER_S)};

	use->sleeps = now >= use->asked + PROCESS_USE_ASKED_NS;
	if (use->sleeps)
		pthread_cond_wait(&use->wake, &use->lock);
	else
		pthread_cond_timedwait(&use->wake, &use->lock, &at);
	use->sleeps = false;
}

static void *watch(void *argument)
{
	struct process_use *use = argument;
	struct reader *reader = calloc(1, sizeof(*reader));
	bool works = false;

	if (reader) {
		reader->use = use;
		works = open_device(reader);
	}
	pthread_mutex_lock(&use->lock);
	while (works && !use->ends) {
		if (monotonic_now() < use->asked + PROCESS_USE_ASKED_NS) {
			pthread_mutex_unlock(&use->lock);
			works = ask(reader);
			pthread_mutex_lock(&use->lock);
		}
		if (works && !use->ends)
			await_question(use, &reader->periods);
	}
	pthread_mutex_unlock(&use->lock);
	if (!works)
		log_warning("%s: NVML does not say which processes run: a client that ends its "
			    "stops is seen only by what it reports",
			    use->id);
	if (reader)
		nvml_close(&reader->nvml);
	free(reader);
	return NULL;
}

static void begin(struct process_use *use)
{
	pthread_condattr_t clock;

	pthread_mutex_init(&use->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&use->wake, &clock);
	pthread_condattr_destroy(&clock);
	int r = pthread_create(&use->thread, NULL, watch, use);
	use->began = r == 0;
	use->failed = r != 0;
	if (r != 0)
		log_warning("%s: no thread to see which processes run: %s", use->id, strerror(r));
}

void process_use_ask(struct process_use *use, uint64_t now)
{
	if (!use->nvml || use->failed)
		return;
	if (!use->began) {
		use->asked = now;
		begin(use);
		return;
	}
	pthread_mutex_lock(&use->lock);
	use->asked = now;
	if (use->sleeps)
		pthread_cond_signal(&use->wake);
	pthread_mutex_unlock(&use->lock);
}

bool process_use_find(struct process_use *use, pid_t pid, struct process_sample *out)
{
	bool found = false;

	if (!use->began)
		return false;
	pthread_mutex_lock(&use->lock);
	for (unsigned i = 0; i < PROCESS_USE_KEPT && !found; i++) {
		found = use->samples[i].pid == pid;
		if (found)
			*out = use->samples[i];
	}
	pthread_mutex_unlock(&use->lock);
	return found;
}

bool process_use_tells(struct process_use *use, uint64_t since)
{
	bool tells = false;

	if (!use->began)
		return false;
	pthread_mutex_lock(&use->lock);
	for (unsigned i = 0; i < PROCESS_USE_KEPT && !tells; i++)
		tells = use->samples[i].end > since;
	pthread_mutex_unlock(&use->lock);
	return tells;
}

void process_use_deinit(struct process_use *use)
{
	if (!use->began)
		return;
	pthread_mutex_lock(&use->lock);
	use->ends = true;
	pthread_cond_signal(&use->wake);
	pthread_mutex_unlock(&use->lock);
	pthread_join(use->thread, NULL);
	pthread_cond_destroy(&use->wake);
	pthread_mutex_destroy(&use->lock);
	use->began = false;
}
