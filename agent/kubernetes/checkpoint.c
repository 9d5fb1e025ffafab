#include "kubernetes/checkpoint.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"

#define WHOLE 100 /* shares of a GPU */

static const cJSON *member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

static struct checkpoint_gpu *find_or_add(struct checkpoint *out, const char *id, size_t n)
{
	struct checkpoint_gpu *gpu;

	for (size_t i = 0; i < out->n; i++)
		if (strlen(out->gpus[i].id) == n && memcmp(out->gpus[i].id, id, n) == 0)
			return &out->gpus[i];
	if (out->n == CHECKPOINT_GPUS_MAX || n >= sizeof(gpu->id))
		return NULL;
	gpu = &out->gpus[out->n++];
	memcpy(gpu->id, id, n);
	return gpu;
}

/* `GPU-<uuid>::NN` */
static void add_device(struct checkpoint *out, const char *device, bool taken)
{
	const char *colons = device ? strstr(device, "::") : NULL;
	uint64_t share;

	if (!colons || !number_parse(colons + 2, 0, WHOLE - 1, &share))
		return;
	struct checkpoint_gpu *gpu = find_or_add(out, device, (size_t)(colons - device));
	if (gpu)
		(taken ? gpu->taken : gpu->offered)[share / 64] |= UINT64_C(1) << share % 64;
}

/* A list of devices, or one list for each NUMA node. */
static void add_devices(struct checkpoint *out, const cJSON *list, bool taken)
{
	const cJSON *item, *device;

	cJSON_ArrayForEach(item, list)
	{
		add_device(out, cJSON_GetStringValue(item), taken);
		cJSON_ArrayForEach(device, item)
		{
			add_device(out, cJSON_GetStringValue(device), taken);
		}
	}
}

static bool is(const cJSON *object, const char *name, const char *text)
{
	const char *value = cJSON_GetStringValue(member(object, name));

	return value && strcmp(value, text) == 0;
}

static int compare(const void *left, const void *right)
{
	return strcmp(((const struct checkpoint_gpu *)left)->id,
		      ((const struct checkpoint_gpu *)right)->id);
}

int checkpoint_parse(struct checkpoint *out, const char *text, size_t size, const char *resource,
		     checkpoint_alive_fn *alive, void *userdata)
{
	cJSON *json = cJSON_ParseWithLength(text, size);
	const cJSON *data = member(json, "Data"), *entry;

	*out = (struct checkpoint){0};
	if (!cJSON_IsObject(data)) {
		cJSON_Delete(json);
		return -EINVAL;
	}
	add_devices(out, member(member(data, "RegisteredDevices"), resource), false);
	cJSON_ArrayForEach(entry, member(data, "PodDeviceEntries"))
	{
		const char *uid = cJSON_GetStringValue(member(entry, "PodUID"));
		if (uid && is(entry, "ResourceName", resource) && alive(userdata, uid))
			add_devices(out, member(entry, "DeviceIDs"), true);
	}
	cJSON_Delete(json);
	/* The kubelet writes devices in any order. */
	qsort(out->gpus, out->n, sizeof(out->gpus[0]), compare);
	return 0;
}

unsigned checkpoint_free(const struct checkpoint_gpu *gpu)
{
	return (unsigned)(__builtin_popcountll(gpu->offered[0] & ~gpu->taken[0]) +
			  __builtin_popcountll(gpu->offered[1] & ~gpu->taken[1]));
}

unsigned checkpoint_largest_free(const struct checkpoint *checkpoint)
{
	unsigned largest = 0;

	for (size_t i = 0; i < checkpoint->n; i++)
		if (checkpoint_free(&checkpoint->gpus[i]) > largest)
			largest = checkpoint_free(&checkpoint->gpus[i]);
	return largest;
}

unsigned checkpoint_free_gpus(const struct checkpoint *checkpoint)
{
	unsigned n = 0;

	for (size_t i = 0; i < checkpoint->n; i++)
		n += checkpoint_free(&checkpoint->gpus[i]) == WHOLE;
	return n;
}
