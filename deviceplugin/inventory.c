#include "inventory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "weir/base.h"
#include "weir/error.h"
#include "weir/file.h"
#include "weir/log.h"
#include "weir/probe.h"

#define OPEN_INTERVAL  (30 * NS_PER_S) /* between attempts to open NVML */
#define LOST_INTERVAL  (5 * NS_PER_S)  /* the same while a GPU is lost */
#define TICK           (NS_PER_S / 2)  /* between checks for errors */
#define PROBE_INTERVAL (2 * NS_PER_S)
#define EVENTS_MAX     32 /* handled per tick */

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

/* The NUMA node from NVML, if sysfs does not have it. */
static int numa_by_nvml(const struct nvml *nvml, nvmlDevice_t device)
{
	unsigned long nodes = 0;

	if (!nvml->nvmlDeviceGetMemoryAffinity ||
	    nvml->nvmlDeviceGetMemoryAffinity(device, 1, &nodes, NVML_AFFINITY_SCOPE_NODE) !=
		    NVML_SUCCESS)
		return -1;
	return __builtin_ffsl((long)nodes) - 1;
}

/* The NUMA node from the PCI device's file in sysfs; -1: none, as on machines with one node. */
static int numa_node(const struct nvml *nvml, nvmlDevice_t device)
{
	nvmlPciInfo_t pci;
	char path[128], text[16];
	int node;

	if (!nvml->nvmlDeviceGetPciInfo_v3 ||
	    nvml->nvmlDeviceGetPciInfo_v3(device, &pci) != NVML_SUCCESS)
		return -1;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%04x:%02x:%02x.0/numa_node", pci.domain,
		 pci.bus, pci.device);
	if (file_read(AT_FDCWD, path, text, sizeof(text)) < 0)
		return numa_by_nvml(nvml, device);
	return sscanf(text, "%d", &node) == 1 ? node : -1;
}

/* Such a GPU is already partitioned in hardware. */
static bool is_mig(const struct nvml *nvml, nvmlDevice_t device)
{
	unsigned current, pending;

	return nvml->nvmlDeviceGetMigMode &&
	       nvml->nvmlDeviceGetMigMode(device, &current, &pending) == NVML_SUCCESS &&
	       current == NVML_DEVICE_MIG_ENABLE;
}

static void name_architecture(const struct nvml *nvml, nvmlDevice_t device, struct gpu *gpu)
{
	static const char *const names[] = {
		[NVML_DEVICE_ARCH_KEPLER] = "Kepler",
		[NVML_DEVICE_ARCH_MAXWELL] = "Maxwell",
		[NVML_DEVICE_ARCH_PASCAL] = "Pascal",
		[NVML_DEVICE_ARCH_VOLTA] = "Volta",
		[NVML_DEVICE_ARCH_TURING] = "Turing",
		[NVML_DEVICE_ARCH_AMPERE] = "Ampere",
		[NVML_DEVICE_ARCH_ADA] = "Ada Lovelace",
		[NVML_DEVICE_ARCH_HOPPER] = "Hopper",
		[10] = "Blackwell", /* newer than some toolkits */
	};
	nvmlDeviceArchitecture_t architecture;

	if (nvml->nvmlDeviceGetArchitecture &&
	    nvml->nvmlDeviceGetArchitecture(device, &architecture) == NVML_SUCCESS &&
	    architecture < countof(names) && names[architecture])
		snprintf(gpu->architecture, sizeof(gpu->architecture), "%s", names[architecture]);
	if (!nvml->nvmlSystemGetDriverVersion ||
	    nvml->nvmlSystemGetDriverVersion(gpu->driver, sizeof(gpu->driver)) != NVML_SUCCESS)
		gpu->driver[0] = '\0';
}

static bool describe(const struct nvml *nvml, nvmlDevice_t device, unsigned index, struct gpu *out)
{
	struct gpu gpu = {.minor = -1, .index = (int)index};
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
	if (nvml->nvmlDeviceGetName(device, gpu.product, sizeof(gpu.product)) != NVML_SUCCESS)
		gpu.product[0] = '\0';
	name_architecture(nvml, device, &gpu);
	if (nvml->nvmlDeviceGetMinorNumber &&
	    nvml->nvmlDeviceGetMinorNumber(device, &minor) == NVML_SUCCESS)
		gpu.minor = (int)minor;
	*out = gpu;
	return true;
}

/* The index of the GPU; a new GPU is added. -1: the list is full. */
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
	const struct gpu before = inventory->gpus[at];
	inventory->gpus[at] = *gpu;
	inventory->gpus[at].healthy = before.healthy;
	inventory->gpus[at].kept = before.kept;
	node->numa[at] = gpu->numa;
	return (int)at;
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
		    !describe(nvml, device, i, &gpu)) {
			log_limited(LOG_WARNING, 600, "GPU %u does not answer; ignored", i);
			continue;
		}
		if (is_mig(nvml, device)) {
			log_warning("GPU %s is in MIG mode; ignored", gpu.uuid);
			continue;
		}
		int at = place(inventory, &gpu);
		if (at < 0) {
			log_warning("more than %u GPUs; the others are ignored", GPUS_MAX);
			return;
		}
		inventory->handles[at] = device;
		probe_listen(nvml, inventory->events, device);
	}
	if (!n && !inventory->complained)
		log_warning("NVML at %s lists no GPU; trying again every %llu s", nvml->path,
			    OPEN_INTERVAL / NS_PER_S);
	inventory->complained = !n;
}

static void close_nvml(struct inventory *inventory)
{
	if (!inventory->nvml.library)
		return;
	probe_events_free(&inventory->nvml, take(inventory->events));
	nvml_close(&inventory->nvml);
	memset(inventory->handles, 0, sizeof(inventory->handles));
}

/* Checks each GPU. A lost GPU can only come back after NVML is opened again. */
static void probe(struct inventory *inventory, uint64_t now)
{
	inventory->lost = inventory->node.n_gpus == 0;
	for (unsigned i = 0; i < inventory->node.n_gpus; i++) {
		struct health *health = &inventory->health[i];
		probe_gpu(&inventory->nvml, inventory->handles[i], health,
			  &inventory->config->health, now);
		inventory->lost |= health->answer != HEALTH_ANSWERS;
	}
}

static void open_nvml(struct inventory *inventory)
{
	char message[256];

	inventory->opened = loop_now();
	int r = nvml_open(&inventory->nvml, inventory->nvml_path, message, sizeof(message));
	if (r < 0) {
		if (!inventory->complained)
			log_warning("%s; no GPUs to offer, trying again every %llu s", message,
				    OPEN_INTERVAL / NS_PER_S);
		inventory->complained = true;
		for (unsigned i = 0; i < inventory->node.n_gpus; i++)
			health_asked(&inventory->health[i], HEALTH_SILENT);
		return;
	}
	inventory->events = probe_events_new(&inventory->nvml);
	if (!inventory->events)
		log_limited(LOG_WARNING, 600,
			    "this driver reports no XID errors; health depends on NVML's answers");
	take_gpus(inventory);
	probe(inventory, loop_now());
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
	nvmlDevice_t device;
	uint64_t xid;

	for (int i = 0;
	     i < EVENTS_MAX && probe_next_error(&inventory->nvml, inventory->events, &device, &xid);
	     i++) {
		int gpu = index_of(inventory, device);
		if (gpu < 0)
			continue;
		bool counts =
			health_xid(&inventory->health[gpu], &inventory->config->health, xid, now);
		log_warning("GPU %s: XID %llu (%s)%s", inventory->gpus[gpu].uuid,
			    (unsigned long long)xid, xid_name(xid), counts ? "" : ", ignored");
		/* The driver may now ask for a recovery. */
		inventory->next_probe = 0;
	}
}

/* True: tell the kubelet. */
static bool judge(struct inventory *inventory, uint64_t now)
{
	char reason[HEALTH_REASON_MAX];
	bool changed = false;

	for (unsigned i = 0; i < inventory->node.n_gpus; i++) {
		struct gpu *gpu = &inventory->gpus[i];
		bool healthy = health_good(&inventory->health[i], now);
		if (gpu->healthy == healthy)
			continue;
		gpu->healthy = healthy;
		changed = true;
		health_reason(&inventory->health[i], now, reason);
		log_line(healthy ? LOG_INFO : LOG_WARNING, "GPU %s is %s: %s", gpu->uuid,
			 healthy ? "healthy" : "unhealthy", reason);
	}
	return changed;
}

static void tick(struct loop_timer *timer)
{
	struct inventory *inventory = container_of(timer, struct inventory, timer);
	uint64_t now = loop_now();
	unsigned before = inventory->node.n_gpus;
	uint64_t pause = before ? LOST_INTERVAL : OPEN_INTERVAL;

	if (inventory->nvml.library) {
		take_errors(inventory, now);
		if (now >= inventory->next_probe) {
			inventory->next_probe = now + PROBE_INTERVAL;
			probe(inventory, now);
		}
	}
	if ((!inventory->nvml.library || inventory->lost) && now >= inventory->opened + pause) {
		close_nvml(inventory);
		open_nvml(inventory);
	}
	if (judge(inventory, now) || inventory->node.n_gpus != before)
		inventory->changed(inventory);
}

int inventory_init(struct inventory *inventory, struct loop *loop, const struct config *config,
		   char *nvml_path, void (*changed)(struct inventory *inventory),
		   const struct inventory *before)
{
	*inventory =
		(struct inventory){.config = config, .changed = changed, .nvml_path = nvml_path};
	if (before) {
		inventory->node = before->node;
		memcpy(inventory->gpus, before->gpus, sizeof(before->gpus));
		memcpy(inventory->health, before->health, sizeof(before->health));
	}
	inventory->node.spread = config->allocation == ALLOCATION_SPREAD;
	int r = loop_timer_init(&inventory->timer, loop, tick);
	if (r == 0)
		r = loop_timer_set(&inventory->timer, TICK, TICK);
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
