#include "daemon/monitor.h"

#include <string.h>

#include "weir/base.h"
#include "weir/log.h"
#include "weir/probe.h"

#define PROBE_NS      (2 * NS_PER_S)
#define OPEN_NS       (5 * NS_PER_S) /* between attempts to open NVML again for a lost GPU */
#define ERRORS_AT_ONE 32             /* errors read at a time */

static struct monitor_gpu *find(struct monitor *monitor, nvmlDevice_t device)
{
	for (unsigned i = 0; i < monitor->n; i++)
		if (monitor->all[i].device == device)
			return &monitor->all[i];
	return NULL;
}

static void take_device(struct monitor *monitor, unsigned index)
{
	const struct nvml *nvml = &monitor->nvml;
	char id[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
	unsigned current, pending;
	nvmlDevice_t device;

	if (nvml->nvmlDeviceGetHandleByIndex(index, &device) != NVML_SUCCESS ||
	    nvml->nvmlDeviceGetUUID(device, id, sizeof(id)) != NVML_SUCCESS)
		return;
	monitor->mig |= nvml->nvmlDeviceGetMigMode &&
			nvml->nvmlDeviceGetMigMode(device, &current, &pending) == NVML_SUCCESS &&
			current == NVML_DEVICE_MIG_ENABLE;
	for (unsigned i = 0; i < monitor->n; i++) {
		if (strcmp(monitor->all[i].gpu->id, id) != 0)
			continue;
		monitor->all[i].device = device;
		probe_listen(nvml, monitor->events, device);
	}
}

static void close_nvml(struct monitor *monitor)
{
	if (!monitor->nvml.library)
		return;
	probe_events_free(&monitor->nvml, take(monitor->events));
	nvml_close(&monitor->nvml);
	for (unsigned i = 0; i < monitor->n; i++)
		monitor->all[i].device = NULL;
}

static void open_nvml(struct monitor *monitor, uint64_t now)
{
	char message[256];
	unsigned n = 0;

	monitor->opened = now;
	monitor->next_probe = 0;
	if (nvml_open(&monitor->nvml, monitor->path, message, sizeof(message)) < 0) {
		log_limited(LOG_WARNING, 600, "%s; the health of the GPUs is unknown", message);
		for (unsigned i = 0; i < monitor->n; i++)
			health_asked(&monitor->all[i].health, HEALTH_SILENT);
		return;
	}
	monitor->mig = false;
	monitor->events = probe_events_new(&monitor->nvml);
	monitor->nvml.nvmlDeviceGetCount(&n);
	for (unsigned i = 0; i < n; i++)
		take_device(monitor, i);
	if (!monitor->nvml.nvmlSystemGetDriverVersion ||
	    monitor->nvml.nvmlSystemGetDriverVersion(monitor->driver, sizeof(monitor->driver)) !=
		    NVML_SUCCESS)
		monitor->driver[0] = '\0';
}

static void count(struct monitor_gpu *gpu, uint64_t xid)
{
	size_t i = 0;

	while (i < gpu->n_xids && gpu->xids[i].xid != xid)
		i++;
	if (i == MONITOR_XIDS_MAX) {
		gpu->other_xids++;
		return;
	}
	if (i == gpu->n_xids)
		gpu->xids[gpu->n_xids++] = (struct monitor_xid){.xid = xid};
	gpu->xids[i].n++;
}

static void take_errors(struct monitor *monitor, uint64_t now)
{
	nvmlDevice_t device;
	uint64_t xid;

	for (int i = 0;
	     i < ERRORS_AT_ONE && probe_next_error(&monitor->nvml, monitor->events, &device, &xid);
	     i++) {
		struct monitor_gpu *gpu = find(monitor, device);
		if (!gpu)
			continue;
		bool counts = health_xid(&gpu->health, monitor->settings, xid, now);
		count(gpu, xid);
		log_limited(LOG_WARNING, 1, "%s: XID %llu (%s)%s", gpu->gpu->id,
			    (unsigned long long)xid, xid_name(xid), counts ? "" : ", ignored");
		/* The driver may ask for a recovery now. */
		monitor->next_probe = 0;
	}
}

static void probe(struct monitor *monitor, uint64_t now)
{
	monitor->lost = false;
	for (unsigned i = 0; i < monitor->n; i++) {
		struct monitor_gpu *gpu = &monitor->all[i];
		probe_gpu(&monitor->nvml, gpu->device, &gpu->health, monitor->settings, now);
		monitor->lost |= gpu->health.answer != HEALTH_ANSWERS;
	}
	monitor->listener->looked(monitor, now);
}

static void judge(struct monitor *monitor, uint64_t now)
{
	for (unsigned i = 0; i < monitor->n; i++) {
		struct monitor_gpu *gpu = &monitor->all[i];
		bool healthy = health_good(&gpu->health, now);
		char reason[HEALTH_REASON_MAX];
		health_reason(&gpu->health, now, reason);
		if (healthy == gpu->healthy && strcmp(reason, gpu->reason) == 0)
			continue;
		gpu->healthy = healthy;
		memcpy(gpu->reason, reason, sizeof(reason));
		log_line(healthy ? LOG_INFO : LOG_WARNING, "%s is %s: %s", gpu->gpu->id,
			 healthy ? "healthy" : "unhealthy", reason);
		monitor->listener->health(monitor, gpu);
	}
}

static void expired(struct loop_timer *timer)
{
	struct monitor *monitor = container_of(timer, struct monitor, timer);
	uint64_t now = loop_now();

	if ((!monitor->nvml.library || monitor->lost) && now >= monitor->opened + OPEN_NS) {
		close_nvml(monitor);
		open_nvml(monitor, now);
	}
	if (monitor->nvml.library)
		take_errors(monitor, now);
	if (monitor->nvml.library && now >= monitor->next_probe) {
		monitor->next_probe = now + PROBE_NS;
		probe(monitor, now);
	}
	judge(monitor, now);
}

int monitor_init(struct monitor *monitor, struct loop *loop, struct gpus *gpus, const char *path,
		 const struct health_settings *settings, const struct monitor_listener *listener)
{
	*monitor = (struct monitor){
		.listener = listener, .settings = settings, .path = path, .gpus = gpus};
	for (struct gpu *gpu = gpus->all; gpu && gpus->listed; gpu = gpu->hh.next)
		if (gpu->listed)
			monitor->all[monitor->n++] =
				(struct monitor_gpu){.gpu = gpu, .healthy = true, .reason = "good"};
	if (!monitor->n)
		return 0;
	int r = loop_timer_init(&monitor->timer, loop, expired);
	if (r < 0)
		return r;
	open_nvml(monitor, loop_now());
	return loop_timer_set(&monitor->timer, NS_PER_S, NS_PER_S);
}

const struct monitor_gpu *monitor_find(const struct monitor *monitor, const struct gpu *gpu)
{
	for (unsigned i = 0; i < monitor->n; i++)
		if (monitor->all[i].gpu == gpu)
			return &monitor->all[i];
	return NULL;
}

void monitor_deinit(struct monitor *monitor)
{
	loop_timer_deinit(&monitor->timer);
	close_nvml(monitor);
}
