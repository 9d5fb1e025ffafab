/* Processes on a GPU: those of the container, which are in the same cgroup. The driver shows all
 * processes of the PID namespace, which a pod may share with the host or among its containers. */
#include "nvml/nvml.h"

#include "weir/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define CGROUP_MAX 4096u
#define SPARE      16u /* processes that may start between two calls */
#define TRIES      4

struct cgroup {
	char text[CGROUP_MAX];
	ssize_t size; /* negative: unknown */
};

static void read_cgroup(struct cgroup *out, unsigned pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	out->size = file_read(AT_FDCWD, path, out->text, sizeof(out->text));
}

static bool is_ours(const struct cgroup *own, unsigned pid)
{
	struct cgroup its;

	if (pid == (unsigned)getpid())
		return true;
	if (own->size <= 0)
		return false;
	read_cgroup(&its, pid);
	return its.size == own->size && memcmp(its.text, own->text, (size_t)own->size) == 0;
}

/* Keeps our processes among @n entries of @size bytes, each beginning with a pid. Returns how many.
 */
static unsigned keep(void *list, unsigned n, size_t size)
{
	struct cgroup own;
	unsigned kept = 0;

	read_cgroup(&own, (unsigned)getpid());
	for (unsigned i = 0; i < n; i++) {
		const char *entry = (const char *)list + i * size;
		unsigned pid;
		memcpy(&pid, entry, sizeof(pid));
		if (is_ours(&own, pid))
			memmove((char *)list + kept++ * size, entry, size);
	}
	return kept;
}

typedef nvmlReturn_t list_fn(nvmlDevice_t device, unsigned *count, void *list);

/* All processes; the caller frees @out. */
static nvmlReturn_t read_all(list_fn *list, nvmlDevice_t device, unsigned *count, void **out,
			     size_t size)
{
	nvmlReturn_t result = NVML_ERROR_INSUFFICIENT_SIZE;
	unsigned n = 0;

	for (int i = 0; i < TRIES && result == NVML_ERROR_INSUFFICIENT_SIZE; i++) {
		n += SPARE;
		void *grown = realloc(*out, n * size);
		if (!grown)
			return NVML_ERROR_MEMORY;
		*out = grown;
		result = list(device, &n, grown);
	}
	*count = n;
	return result;
}

static nvmlReturn_t list_ours(void *function, nvmlDevice_t device, unsigned *count, void *out,
			      size_t size)
{
	cleanup(freep) void *all = NULL;
	list_fn *list = (list_fn *)function;
	unsigned n, room;

	if (!count || (*count && !out)) /* the driver reports the error */
		return list(device, count, out);
	nvmlReturn_t result = read_all(list, device, &n, &all, size);
	if (result != NVML_SUCCESS)
		return result;
	n = keep(all, n, size);
	room = *count;
	*count = n;
	if (n > room)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	if (n)
		memcpy(out, all, n * size);
	return NVML_SUCCESS;
}

#define LISTS(function, type)                                                                   \
	EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned *count, type *infos)         \
	{                                                                                       \
		nvml_ready();                                                                   \
		return list_ours((void *)real(function), device, count, infos, sizeof(*infos)); \
	}

LISTS(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t)
LISTS(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
LISTS(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t)
LISTS(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
LISTS(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
LISTS(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
LISTS(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
LISTS(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
LISTS(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)

EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
							  nvmlProcessDetailList_t *list)
{
	nvml_ready();
	nvmlReturn_t result = real(nvmlDeviceGetRunningProcessDetailList)(device, list);
	if (result == NVML_SUCCESS && list->version == nvmlProcessDetailList_v1 && list->procArray)
		list->numProcArrayEntries =
			keep(list->procArray, list->numProcArrayEntries, sizeof(*list->procArray));
	return result;
}
