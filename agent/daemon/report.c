#include "daemon/report.h"

#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "reports/disobedience.h"
#include "reports/ending.h"
#include "reports/fault-domain.h"
#include "reports/min-rate-report.h"
#include "reports/overrun.h"
#include "daemon/memory-wait.h"
#include "kubernetes/events.h"
#include "kubernetes/pods.h"
#include "scheduler/tenants.h"
#include "common/metric.h"

#include "weir/base.h"

/* Pods that use a GPU; the first 64 get events. */
struct audience {
	const struct pod *pods[64];
	size_t n;
};

static void add(struct audience *audience, const struct report *report,
		const struct container_identity *identity)
{
	const struct pod *pod = pods_of(report->pods, identity);

	if (!pod || audience->n == countof(audience->pods))
		return;
	for (size_t i = 0; i < audience->n; i++)
		if (audience->pods[i] == pod)
			return;
	audience->pods[audience->n++] = pod;
}

/* The pods of its clients and of the processes that NVML saw on it last. */
static void find_audience(struct audience *out, const struct report *report, const struct gpu *gpu)
{
	*out = (struct audience){0};
	for (const struct client *client = gpu->clients; client; client = client->gpu_next)
		add(out, report, &client->tenant->identity);
	for (const struct gpu_process *p = report->unregistered.all; p; p = p->hh.next)
		if (p->key.gpu == gpu)
			add(out, report, &p->identity);
}

static void tell_health(struct monitor *monitor, const struct monitor_gpu *gpu)
{
	struct report *report = container_of(monitor, struct report, monitor);
	enum event_type type = gpu->healthy ? EVENT_NORMAL : EVENT_WARNING;
	const char *reason = gpu->healthy ? "GPUHealthy" : "GPUUnhealthy";
	const char *id = gpu->gpu->id;
	struct audience audience;
	char news[HEALTH_REASON_MAX + 16] = " is healthy again";

	if (!gpu->healthy)
		snprintf(news, sizeof(news), ": %s", gpu->reason);
	find_audience(&audience, report, gpu->gpu);
	events_tell(report->events, NULL, type, reason, "%s%s", id, news);
	for (size_t i = 0; i < audience.n; i++)
		events_tell(report->events, audience.pods[i], type, reason,
			    "%s, which this pod uses%s%s", id, gpu->healthy ? "," : "", news);
}

/* Labels */

static void set_number(struct labels *labels, enum label label, uint64_t value)
{
	char text[32] = "";

	if (value)
		snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	labels_set(labels, label, text);
}

/* "mixed" if the GPUs differ. */
static const char *common(const char *so_far, const char *value)
{
	return !so_far || strcmp(so_far, value) == 0 ? value : "mixed";
}

static void label_gpus(struct report *report, const struct monitor *monitor)
{
	const char *product = NULL, *mode = NULL;
	uint64_t memory = 0, n = 0;

	for (unsigned i = 0; i < monitor->n; i++) {
		const struct gpu *gpu = monitor->all[i].gpu;
		if (!monitor->all[i].device)
			continue;
		n++;
		memory = n == 1 || gpu->memory < memory ? gpu->memory : memory;
		product = common(product, gpu->name);
		mode = common(mode, gpu_mode_words[gpu_settings(report->config, gpu).mode]);
	}
	set_number(&report->labels, LABEL_COUNT, n);
	set_number(&report->labels, LABEL_MEMORY, memory >> 20);
	labels_set(&report->labels, LABEL_PRODUCT, product ? product : "");
	labels_set(&report->labels, LABEL_SHARING_MODE, mode ? mode : "");
	labels_set(&report->labels, LABEL_MIG, monitor->mig ? "true" : "");
}

static void label(struct report *report, const struct monitor *monitor)
{
	char cuda[32] = "";

	if (report->gpus->cuda)
		snprintf(cuda, sizeof(cuda), "%d.%d", report->gpus->cuda / 1000,
			 report->gpus->cuda % 1000 / 10);
	label_gpus(report, monitor);
	labels_set(&report->labels, LABEL_DRIVER, monitor->driver);
	labels_set(&report->labels, LABEL_CUDA, cuda);
	labels_set(&report->labels, LABEL_VERSION, WEIR_VERSION);
}

static void looked(struct monitor *monitor, uint64_t now)
{
	struct report *report = container_of(monitor, struct report, monitor);

	unregistered_look(&report->unregistered, monitor, now);
	for (unsigned i = 0; i < monitor->n; i++) {
		const struct gpu *gpu = monitor->all[i].gpu;
		enum gpu_mode mode = gpu_settings(report->config, gpu).mode;
		if (mode != GPU_MODE_TIMESLICE)
			fault_domain_look(report->events, report->pods, gpu,
					  mode == GPU_MODE_MPS_PER_LEVEL);
	}
	for (unsigned i = 0; i < monitor->n; i++)
		disobedience_look(report->events, report->pods, monitor->all[i].gpu);
	for (unsigned i = 0; i < monitor->n; i++) {
		overrun_look(monitor->all[i].gpu, &report->config->overruns, now);
		overrun_tell(report->events, report->pods, monitor->all[i].gpu);
	}
	for (unsigned i = 0; i < monitor->n; i++) {
		ending_look(monitor->all[i].gpu, report->mps);
		ending_tell(report->events, report->pods, monitor->all[i].gpu);
	}
	for (unsigned i = 0; i < monitor->n; i++)
		min_rate_report_look(report->events, report->pods, monitor->all[i].gpu);
	for (struct tenant *tenant = report->tenants->all; tenant; tenant = tenant->hh.next)
		memory_wait_tell(report->events, report->pods, tenant);
	label(report, monitor);
}

/* Metrics */

static void write_gpu_health(FILE *out, const struct monitor *monitor)
{
	metric_head(out, "weir_gpu_healthy", "1: the GPU is healthy.");
	for (unsigned i = 0; i < monitor->n; i++)
		fprintf(out, "weir_gpu_healthy{gpu=\"%s\"} %d\n", monitor->all[i].gpu->id,
			monitor->all[i].healthy);
	metric_head(out, "weir_gpu_xid_errors_total", "XID errors, by GPU and number.");
	for (unsigned i = 0; i < monitor->n; i++) {
		const struct monitor_gpu *gpu = &monitor->all[i];
		for (size_t xid = 0; xid < gpu->n_xids; xid++)
			fprintf(out, "weir_gpu_xid_errors_total{gpu=\"%s\",xid=\"%llu\"} %llu\n",
				gpu->gpu->id, (unsigned long long)gpu->xids[xid].xid,
				(unsigned long long)gpu->xids[xid].n);
		if (gpu->other_xids)
			fprintf(out, "weir_gpu_xid_errors_total{gpu=\"%s\",xid=\"other\"} %llu\n",
				gpu->gpu->id, (unsigned long long)gpu->other_xids);
	}
}

void report_metrics(FILE *out, const struct report *report)
{
	write_gpu_health(out, &report->monitor);
	unregistered_metrics(out, &report->unregistered);
	pod_report_metrics(out, &report->problems);
	placement_metrics(out, &report->placement);
	metric_head(out, "weir_events_dropped_total",
		    "Kubernetes events dropped because the queue was full.");
	fprintf(out, "weir_events_dropped_total %llu\n",
		(unsigned long long)events_dropped(report->events));
}

void report_pods_changed(struct report *report)
{
	pod_report_look(&report->problems);
	placement_look(&report->placement);
}

enum pod_fetch_result report_fetch(struct report *report, const char *namespace_, const char *name,
				   const struct pod **out)
{
	*out = NULL;
	if (!report->fetch &&
	    pod_fetch_new(&report->fetch, report->loop, &report->config->kubernetes) < 0)
		return POD_FETCH_FAILED;
	return pod_fetch_get(report->fetch, namespace_, name, out);
}

static int init_kubernetes(struct report *report, struct loop *loop, bool standalone)
{
	const struct config_kubernetes *config = &report->config->kubernetes;

	if (standalone || !config->enabled ||
	    !(config->events || config->node_labels || *config->checkpoint))
		return 0;
	int r = api_new(&report->api, loop, config);
	if (r == 0 && config->events)
		r = events_new(&report->events, loop, report->api, config->node);
	if (r == 0 && config->node_labels)
		r = labels_init(&report->labels, loop, report->api, config->node);
	return r;
}

int report_init(struct report *report, struct loop *loop, bool standalone)
{
	static const struct monitor_listener listener = {.health = tell_health, .looked = looked};
	int r = init_kubernetes(report, loop, standalone);

	report->loop = loop;

	report->unregistered.config = &report->config->unregistered;
	report->unregistered.pods = report->pods;
	report->unregistered.events = report->events;
	report->unregistered.mps = report->mps;
	report->problems = (struct pod_report){.config = report->config,
					       .gpus = &report->gpus->all,
					       .pods = standalone ? NULL : report->pods,
					       .events = report->events};
	report->placement = (struct placement){
		.config = report->config, .pods = report->problems.pods, .node = &report->labels};
	if (r == 0)
		r = placement_init(&report->placement, loop, report->api, report->events);
	return r < 0 ? r
		     : monitor_init(&report->monitor, loop, report->gpus, report->config->nvml,
				    &report->config->health, &listener);
}

void report_deinit(struct report *report)
{
	monitor_deinit(&report->monitor);
	unregistered_deinit(&report->unregistered);
	pod_report_deinit(&report->problems);
	pod_fetch_free(take(report->fetch));
	api_free(take(report->api));
	placement_deinit(&report->placement);
	events_free(take(report->events));
	labels_deinit(&report->labels);
}
