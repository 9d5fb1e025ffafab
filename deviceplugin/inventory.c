#include "inventory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"

#define SECOND         1000000000ull
#define OPEN_INTERVAL  (30 * SECOND) /* to open NVML */
#define PROBE_INTERVAL (2 * SECOND)
#define EVENTS_MAX     32 /* taken at one time */

void inventory_id(char out[DEVICE_ID_MAX], const struct gpu *gpu, unsigned share)
{
	snprintf(out, DEVICE_ID_MAX, "%s::%02u", gpu->uuid, share);
}

bool inventory_find(const struct inventory *inventory, const char *id, unsigned *gpu,
		    unsigned *share)
{
	const char *end = strstr(id, "::");

	if (!end || end[2] < '0' || end[2] > '9' || end[3] < '0' || end[3] > '9' || end[4])
		return false;
	for (unsigned i = 0; i < inventory->node.n_gpus; i++) {
		const char *uuid = inventory->gpus[i].uuid;
		if (strlen(uuid) != (size_t)(end - id) || memcmp(uuid, id, strlen(uuid)) != 0)
			continue;
		*gpu = i;
		*share = (unsigned)((end[2] - '0') * 10 + (end[3] - '0'));
		return true;
	}
	return false;
}

/* The node by the PCI device's file in sysfs; -1: none, as on machines with one. */
static int numa_node(const struct nvml *nvml, nvmlDevice_t device)
{
	nvmlPciInfo_t pci;
	char path[128];
	int node = -1;

	if (!nvml->nvmlDeviceGetPciInfo_v3 ||
	    nvml->nvmlDeviceGetPciInfo_v3(device, &pci) != NVML_SUCCESS)
		return -1;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%04x:%02x:%02x.0/numa_node", pci.domain,
		 pci.bus, pci.device);
	FILE *file = fopen(path, "re");
	if (!file)
		return -1;
	if (fscanf(file, "%d", &node) != 1)
		node = -1;
	fclose(file);
	return node;
}

/* A GPU in MIG mode is already divided, by hardware. */
static bool is_mig(const struct nvml *nvml, nvmlDevice_t device)
{
	unsigned current, pending;

	return nvml->nvmlDeviceGetMigMode &&
	       nvml->nvmlDeviceGetMigMode(device, &current, &pending) == NVML_SUCCESS &&
	       current == NVML_DEVICE_MIG_ENABLE;
}

static bool describe(const struct nvml *nvml, nvmlDevice_t device, struct gpu *out)
{
	struct gpu gpu = {.minor = -1};
	char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
	nvmlMemory_t memory;
	unsigned minor;

	if (nvml->nvmlDeviceGetUUID(device, uuid, sizeof(uuid)) != NVML_SUCCESS ||
	    strlen(uuid) >= sizeof(gpu.uuid) ||
	    nvml->nvmlDeviceGetMemoryInfo(device, &memory) != NVML_SUCCESS)
		return false;
	memcpy(gpu.uuid, uuid, strlen(uuid));
	gpu.memory = memory.total;
	gpu.numa = numa_node(nvml, device);
	if (nvml->nvmlDeviceGetMinorNumber &&
	    nvml->nvmlDeviceGetMinorNumber(device, &minor) == NVML_SUCCESS)
		gpu.minor = (int)minor;
	*out = gpu;
	return true;
}

/* Its place in the list, a new one if it was never seen; -1: the list is full. */
static int place(struct inventory *inventory, const struct gpu *gpu)
{
	struct node *node = &inventory->node;
	unsigned at = 0;

	while (at < node->n_gpus && strcmp(inventory->gpus[at].uuid, gpu->uuid) != 0)
		at++;
	if (at == GPUS_MAX)
		return -1;
	if (at == node->n_gpus) {
		node->n_gpus++;
		log_info("GPU %s: %llu MiB, node %d, /dev/nvidia%d", gpu->uuid,
			 (unsigned long long)gpu->memory >> 20, gpu->numa, gpu->minor);
	}
	inventory->gpus[at] = *gpu;
	node->numa[at] = gpu->numa;
	return (int)at;
}

static void listen_for_errors(struct inventory *inventory, nvmlDevice_t device)
{
	const struct nvml *nvml = &inventory->nvml;

	if (inventory->events && nvml->nvmlDeviceRegisterEvents)
		nvml->nvmlDeviceRegisterEvents(device, nvmlEventTypeXidCriticalError,
					       inventory->events);
}

static void take_gpus(struct inventory *inventory)
{
	const struct nvml *nvml = &inventory->nvml;
	unsigned n = 0;

	nvml->nvmlDeviceGetCount_v2(&n);
	for (unsigned i = 0; i < n; i++) {
		nvmlDevice_t device;
		struct gpu gpu;
		if (nvml->nvmlDeviceGetHandleByIndex_v2(i, &device) != NVML_SUCCESS ||
		    !describe(nvml, device, &gpu)) {
			log_warning("GPU %u does not answer; left out", i);
			continue;
		}
		if (is_mig(nvml, device)) {
			log_warning("GPU %s is in MIG mode; left out", gpu.uuid);
			continue;
		}
		int at = place(inventory, &gpu);
		if (at < 0) {
			log_warning("more than %u GPUs; the rest is left out", GPUS_MAX);
			return;
		}
		inventory->handles[at] = device;
		health_asked(&inventory->health[at], true);
		listen_for_errors(inventory, device);
	}
	if (!n && !inventory->complained)
		log_warning("NVML at %s lists no GPU; asking again each %llu s", nvml->path,
			    OPEN_INTERVAL / SECOND);
	inventory->complained = !n;
	inventory->lost = !n;
}

static void close_nvml(struct inventory *inventory)
{
	if (!inventory->nvml.library)
		return;
	if (inventory->events && inventory->nvml.nvmlEventSetFree)
		inventory->nvml.nvmlEventSetFree(inventory->events);
	inventory->events = NULL;
	nvml_close(&inventory->nvml);
	memset(inventory->handles, 0, sizeof(inventory->handles));
	for (unsigned i = 0; i < inventory->node.n_gpus; i++)
		health_asked(&inventory->health[i], false);
}

static void open_nvml(struct inventory *inventory)
{
	char message[256];

	inventory->next_open = loop_now() + OPEN_INTERVAL;
	int r = nvml_open(&inventory->nvml, inventory->nvml_path, message, sizeof(message));
	if (r < 0) {
		if (!inventory->complained)
			log_warning("%s; no GPUs to hand out, trying again each %llu s", message,
				    OPEN_INTERVAL / SECOND);
		inventory->complained = true;
		return;
	}
	if (!inventory->nvml.nvmlEventSetCreate ||
	    inventory->nvml.nvmlEventSetCreate(&inventory->events) != NVML_SUCCESS) {
		inventory->events = NULL;
		log_warning("this driver tells no XID errors; health comes from NVML's answers");
	}
	take_gpus(inventory);
}

static int index_of(const struct inventory *inventory, nvmlDevice_t device)
{
	for (unsigned i = 0; i < inventory->node.n_gpus; i++)
		if (inventory->handles[i] == device)
			return (int)i;
	return -1;
}

static void take_errors(struct inventory *inventory, uint64_t now)
{
	const struct config *config = inventory->config;
	nvmlEventData_t event;

	if (!inventory->events || !inventory->nvml.nvmlEventSetWait_v2)
		return;
	for (int i = 0; i < EVENTS_MAX; i++) {
		if (inventory->nvml.nvmlEventSetWait_v2(inventory->events, &event, 0) !=
		    NVML_SUCCESS)
			return;
		int gpu = index_of(inventory, event.device);
		if (event.eventType != nvmlEventTypeXidCriticalError || gpu < 0)
			continue;
		bool counts = health_xid(&inventory->health[gpu], event.eventData,
					 config->ignored_xids, config->n_ignored_xids, now);
		log_warning("GPU %s: XID %llu%s", inventory->gpus[gpu].uuid, event.eventData,
			    counts ? "" : " (ignored)");
	}
}

/* Asks each GPU something simple. A GPU that is lost comes back, if at all, with a new start of
 * NVML. */
static void probe(struct inventory *inventory)
{
	inventory->lost = inventory->node.n_gpus == 0;
	for (unsigned i = 0; i < inventory->node.n_gpus; i++) {
		nvmlMemory_t memory;
		nvmlDevice_t device = inventory->handles[i];
		bool answers = device && inventory->nvml.nvmlDeviceGetMemoryInfo(device, &memory) ==
						 NVML_SUCCESS;
		health_asked(&inventory->health[i], answers);
		inventory->lost |= !answers;
	}
}

/* True: something that the kubelet should know. */
static bool judge(struct inventory *inventory, uint64_t now)
{
	bool changed = false;

	for (unsigned i = 0; i < inventory->node.n_gpus; i++) {
		struct gpu *gpu = &inventory->gpus[i];
		bool healthy = health_good(&inventory->health[i], now);
		if (gpu->healthy == healthy)
			continue;
		gpu->healthy = healthy;
		changed = true;
		log_info("GPU %s is %s", gpu->uuid, healthy ? "healthy" : "unhealthy");
	}
	return changed;
}

static void tick(struct inventory *inventory)
{
	uint64_t now = loop_now();
	unsigned before = inventory->node.n_gpus;

	if (inventory->nvml.library) {
		take_errors(inventory, now);
		if (now >= inventory->next_probe) {
			inventory->next_probe = now + PROBE_INTERVAL;
			probe(inventory);
		}
	}
	if ((!inventory->nvml.library || inventory->lost) && now >= inventory->next_open) {
		close_nvml(inventory);
		open_nvml(inventory);
	}
	if (judge(inventory, now) || inventory->node.n_gpus != before)
		inventory->changed(inventory);
}

static void expired(struct loop_timer *timer)
{
	tick(container_of(timer, struct inventory, timer));
}

int inventory_init(struct inventory *inventory, struct loop *loop, const struct config *config,
		   char *nvml_path, void (*changed)(struct inventory *inventory))
{
	*inventory =
		(struct inventory){.config = config, .changed = changed, .nvml_path = nvml_path};
	int r = loop_timer_init(&inventory->timer, loop, expired);
	if (r == 0)
		r = loop_timer_set(&inventory->timer, SECOND, SECOND);
	if (r < 0)
		return error_origin(r);
	open_nvml(inventory);
	judge(inventory, loop_now());
	return 0;
}

void inventory_deinit(struct inventory *inventory)
{
	loop_timer_deinit(&inventory->timer);
	close_nvml(inventory);
	free(inventory->nvml_path);
	inventory->nvml_path = NULL;
}
