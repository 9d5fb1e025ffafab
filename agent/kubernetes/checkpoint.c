#include "kubernetes/checkpoint.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "weir/units.h"

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

/* Counts a share of a sorted list of GPUs. */
static void count_own(struct checkpoint_waiting *out, const struct checkpoint *checkpoint,
		      const char *device)
{
	const char *colons = device ? strstr(device, "::") : NULL;

	for (size_t i = 0; colons && i < checkpoint->n; i++) {
		const char *id = checkpoint->gpus[i].id;
		if (strlen(id) != (size_t)(colons - device) ||
		    memcmp(id, device, (size_t)(colons - device)) != 0)
			continue;
		out->n++;
		out->own[i]++;
	}
}

static void add_waiting(struct checkpoint *out, const char *uid, const cJSON *list)
{
	struct checkpoint_waiting waiting = {0};
	const cJSON *item, *device;
	unsigned parts = 0, gpus = 0;

	cJSON_ArrayForEach(item, list)
	{
		count_own(&waiting, out, cJSON_GetStringValue(item));
		cJSON_ArrayForEach(device, item)
		{
			count_own(&waiting, out, cJSON_GetStringValue(device));
		}
	}
	for (size_t i = 0; i < out->n; i++) {
		gpus += waiting.own[i] > 0;
		parts += waiting.own[i] % WHOLE > 0;
	}
	if (gpus < 2 || !parts || out->n_waiting == CHECKPOINT_WAITING_MAX ||
	    strlen(uid) >= sizeof(waiting.uid))
		return;
	memcpy(waiting.uid, uid, strlen(uid) + 1);
	out->waiting[out->n_waiting++] = waiting;
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
	/* The kubelet writes devices in any order. */
	qsort(out->gpus, out->n, sizeof(out->gpus[0]), compare);
	cJSON_ArrayForEach(entry, member(data, "PodDeviceEntries"))
	{
		const char *uid = cJSON_GetStringValue(member(entry, "PodUID"));
		if (uid && is(entry, "ResourceName", resource) && alive(userdata, uid))
			add_waiting(out, uid, member(entry, "DeviceIDs"));
	}
	cJSON_Delete(json);
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

bool checkpoint_fits(const struct checkpoint *checkpoint, const struct checkpoint_waiting *waiting)
{
	unsigned whole = 0;

	for (size_t i = 0; i < checkpoint->n; i++) {
		unsigned room = checkpoint_free(&checkpoint->gpus[i]) + waiting->own[i];
		if (waiting->n < WHOLE && room >= waiting->n)
			return true;
		whole += room == WHOLE;
	}
	return waiting->n >= WHOLE && waiting->n % WHOLE == 0 && whole >= waiting->n / WHOLE;
}
