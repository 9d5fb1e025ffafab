/* XID events. `echo 79 > $WEIR_SIM_DIR/gpu0/xid` is one; each set that is registered for the GPU
 * gets it. */
#include "simcuda/nvml/state.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "weir/base.h"

#define SET_MAGIC 0x53455421u
#define PENDING   64u

struct nvmlEventSet_st {
	uint32_t magic;
	int fd; /* inotify */
	struct {
		int watch; /* of the GPU's folder, -1: not registered */
		unsigned long long types;
	} gpus[MACHINE_GPUS];
	nvmlEventData_t pending[PENDING];
	size_t n;
};

static bool is_set(nvmlEventSet_t set)
{
	return set && set->magic == SET_MAGIC;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *out)
{
	struct nvmlEventSet_st *set;

	if (!nvml_machine())
		return NVML_ERROR_UNINITIALIZED;
	if (!out)
		return NVML_ERROR_INVALID_ARGUMENT;
	set = calloc(1, sizeof(*set));
	if (!set)
		return NVML_ERROR_MEMORY;
	set->magic = SET_MAGIC;
	set->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (set->fd < 0) {
		free(set);
		return NVML_ERROR_UNKNOWN;
	}
	for (size_t i = 0; i < MACHINE_GPUS; i++)
		set->gpus[i].watch = -1;
	*out = set;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	if (!is_set(set))
		return NVML_ERROR_INVALID_ARGUMENT;
	close(set->fd);
	set->magic = 0;
	free(set);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
	unsigned gpu;

	RETURN_IF(nvml_device(device, &gpu));
	if (!types)
		return NVML_ERROR_INVALID_ARGUMENT;
	*types = nvmlEventTypeXidCriticalError;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
				      nvmlEventSet_t set)
{
	char path[300];
	unsigned gpu;

	RETURN_IF(nvml_device(device, &gpu));
	if (!is_set(set))
		return NVML_ERROR_INVALID_ARGUMENT;
	if (types & ~(unsigned long long)nvmlEventTypeXidCriticalError)
		return NVML_ERROR_NOT_SUPPORTED;
	snprintf(path, sizeof(path), "%s/gpu%u", nvml_machine()->folder, gpu);
	set->gpus[gpu].watch = inotify_add_watch(set->fd, path, IN_CLOSE_WRITE | IN_MOVED_TO);
	if (set->gpus[gpu].watch < 0)
		return NVML_ERROR_UNKNOWN;
	set->gpus[gpu].types = types;
	return NVML_SUCCESS;
}

/* The number in the file; false: there is none. */
static bool read_xid(unsigned gpu, unsigned *xid)
{
	char path[300];
	FILE *file;
	bool good;

	snprintf(path, sizeof(path), "%s/gpu%u/xid", nvml_machine()->folder, gpu);
	file = fopen(path, "re");
	if (!file)
		return false;
	good = fscanf(file, "%u", xid) == 1;
	fclose(file);
	return good;
}

static void note(struct nvmlEventSet_st *set, const struct inotify_event *event)
{
	unsigned xid;

	if (!event->len || strcmp(event->name, "xid") != 0)
		return;
	for (unsigned i = 0; i < MACHINE_GPUS; i++) {
		if (set->gpus[i].watch != event->wd || !set->gpus[i].types || set->n == PENDING ||
		    !read_xid(i, &xid))
			continue;
		set->pending[set->n++] = (nvmlEventData_t){
			.device = nvml_handle(i),
			.eventType = nvmlEventTypeXidCriticalError,
			.eventData = xid,
			.gpuInstanceId = 0xffffffffu,
			.computeInstanceId = 0xffffffffu,
		};
	}
}

static void collect(struct nvmlEventSet_st *set)
{
	char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n = read(set->fd, buffer, sizeof(buffer));
	ssize_t at = 0;

	while (at < n) {
		const struct inotify_event *event = (const void *)(buffer + at);

		note(set, event);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *out, unsigned int timeout)
{
	long end = now_ms() + (long)timeout, left;

	if (!nvml_machine())
		return NVML_ERROR_UNINITIALIZED;
	if (!is_set(set) || !out)
		return NVML_ERROR_INVALID_ARGUMENT;
	collect(set);
	while (!set->n && (left = end - now_ms()) > 0) {
		struct pollfd fd = {.fd = set->fd, .events = POLLIN};

		if (poll(&fd, 1, left > 60000 ? 60000 : (int)left) < 0 && errno != EINTR)
			return NVML_ERROR_UNKNOWN;
		collect(set);
	}
	if (!set->n)
		return NVML_ERROR_TIMEOUT;
	*out = set->pending[0];
	memmove(set->pending, set->pending + 1, --set->n * sizeof(*out));
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *out, unsigned int timeout)
{
	return nvmlEventSetWait_v2(set, out, timeout);
}
