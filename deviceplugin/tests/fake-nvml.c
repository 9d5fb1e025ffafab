/* An NVML that reads its GPUs from the file $FAKE_NVML at each call, so that a test can change them
 * while a program runs. One line per GPU:
 *
 *   UUID MINOR MIB ok|lost|mig
 *
 * and errors from $FAKE_NVML.xid: index of the GPU and XID per line, each reported once.
 */
#include <nvml.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct line {
	char uuid[64], state[8];
	unsigned minor;
	unsigned long long mib;
};

static long errors_told;

static unsigned read_lines(struct line *out, unsigned max)
{
	const char *path = getenv("FAKE_NVML");
	FILE *file = path ? fopen(path, "re") : NULL;
	unsigned n = 0;

	if (!file)
		return 0;
	while (n < max && fscanf(file, "%63s %u %llu %7s", out[n].uuid, &out[n].minor, &out[n].mib,
				 out[n].state) == 4)
		n++;
	fclose(file);
	return n;
}

/* A handle is the GPU's index plus one. */
static nvmlReturn_t find(nvmlDevice_t device, struct line *out)
{
	struct line lines[64];
	size_t index = (size_t)device - 1;

	if (index >= read_lines(lines, 64))
		return NVML_ERROR_INVALID_ARGUMENT;
	*out = lines[index];
	return strcmp(out->state, "lost") == 0 ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlInit_v2(void)
{
	return getenv("FAKE_NVML") ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
}

EXPORT nvmlReturn_t nvmlShutdown(void)
{
	return NVML_SUCCESS;
}

EXPORT const char *nvmlErrorString(nvmlReturn_t error)
{
	return error == NVML_ERROR_DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Unknown Error";
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *out)
{
	struct line lines[64];

	*out = read_lines(lines, 64);
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *out)
{
	struct line line;

	*out = (nvmlDevice_t)(size_t)(index + 1);
	return find(*out, &line);
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *out, unsigned size)
{
	struct line line = {0};
	nvmlReturn_t r = find(device, &line);

	if (r == NVML_SUCCESS)
		snprintf(out, size, "%s", line.uuid);
	return r;
}

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *out, unsigned size)
{
	(void)device;
	snprintf(out, size, "Fake GPU");
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *out)
{
	struct line line = {0};
	nvmlReturn_t r = find(device, &line);

	if (r == NVML_SUCCESS)
		*out = (nvmlMemory_t){.total = line.mib << 20, .free = line.mib << 20};
	return r;
}

EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *out)
{
	struct line line = {0};
	nvmlReturn_t r = find(device, &line);

	*out = line.minor;
	return r;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending)
{
	struct line line = {0};
	nvmlReturn_t r = find(device, &line);

	*current = *pending = strcmp(line.state, "mig") == 0;
	return r;
}

EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *out)
{
	*out = (nvmlEventSet_t)1;
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
					     nvmlEventSet_t set)
{
	(void)device;
	(void)types;
	(void)set;
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *out, unsigned timeout)
{
	char path[512];
	unsigned index = 0;
	unsigned long long xid = 0;

	(void)set;
	(void)timeout;
	snprintf(path, sizeof(path), "%s.xid", getenv("FAKE_NVML"));
	FILE *file = fopen(path, "re");
	if (!file)
		return NVML_ERROR_TIMEOUT;
	for (long i = 0; i <= errors_told; i++) {
		if (fscanf(file, "%u %llu", &index, &xid) != 2) {
			fclose(file);
			return NVML_ERROR_TIMEOUT;
		}
	}
	fclose(file);
	errors_told++;
	*out = (nvmlEventData_t){.device = (nvmlDevice_t)(size_t)(index + 1),
				 .eventType = nvmlEventTypeXidCriticalError,
				 .eventData = xid};
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	(void)set;
	return NVML_SUCCESS;
}
