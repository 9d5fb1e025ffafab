#include "daemon/unregistered.h"

#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>

#include "common/hash.h"
#include "kubernetes/events.h"
#include "kubernetes/pods.h"
#include "scheduler/client.h"
#include "common/metric.h"
#include "common/process.h"

#include "weir/base.h"
#include "weir/log.h"

static bool is_client(const struct gpu *gpu, pid_t pid)
{
	for (const struct client *client = gpu->clients; client; client = client->gpu_next)
		if (client->pid == pid)
			return true;
	return false;
}

/* The process's container if it has a share, and *@pod; otherwise NULL. */
static const struct pod_container *sharing_container(const struct unregistered *unregistered,
						     const struct gpu_process *process,
						     const struct pod **pod)
{
	const struct container_identity *identity = &process->identity;

	*pod = pods_of(unregistered->pods, identity);
	const struct pod_container *container =
		*pod ? pod_container(*pod, identity->container_id) : NULL;
	return container && container->share > 0 && container->share < 100 ? container : NULL;
}

static void report(struct unregistered *unregistered, const struct gpu_process *process,
		   const struct pod *pod, const struct pod_container *container)
{
	log_limited(LOG_WARNING, 1,
		    "namespace '%s', pod '%s', container '%s': process %d uses %s without libweir",
		    pod->namespace_, pod->name, container->name, (int)process->key.pid,
		    process->key.gpu->id);
	events_tell(unregistered->events, pod, EVENT_WARNING, "UnregisteredGPUProcess",
		    "container %s: a process uses %s without libweir; it is not held back, and "
		    "its memory is not limited",
		    container->name, process->key.gpu->id);
}

/* By a pidfd, so that another process with the same PID is never killed. True once: its end has
 * begun. */
static bool end_process(struct unregistered *unregistered, struct gpu_process *process)
{
	pid_t pid = (pid_t)process->key.pid;
	cleanup(closep) int fd = process_open(pid);
	struct ending_process ends = {
		.gpu = process->key.gpu, .pid = pid, .process = fd, .served = process->served};

	return fd >= 0 && process_started(pid) == process->started &&
	       ending_go_on(&process->ending, unregistered->mps, &ends);
}

static void end(struct unregistered *unregistered, struct gpu_process *process,
		const struct pod *pod, const struct pod_container *container)
{
	if (!end_process(unregistered, process))
		return;
	unregistered->n_killed++;
	log_limited(LOG_WARNING, 1, "process %d of pod '%s' is killed", (int)process->key.pid,
		    pod->name);
	events_tell(unregistered->events, pod, EVENT_WARNING, "UnregisteredGPUProcessKilled",
		    "container %s: killed a process that used %s without libweir", container->name,
		    process->key.gpu->id);
}

static void judge(struct unregistered *unregistered, struct gpu_process *process, uint64_t now)
{
	const struct pod *pod;

	if (!process->ending.begun && is_client(process->key.gpu, (pid_t)process->key.pid)) {
		process->since = now;
		process->reported = false;
		return;
	}
	if (now - process->since < unregistered->config->after * NS_PER_S)
		return;
	const struct pod_container *container = sharing_container(unregistered, process, &pod);
	if (!container)
		return;
	if (!process->reported)
		report(unregistered, process, pod, container);
	process->reported = true;
	if (unregistered->config->action == UNREGISTERED_KILL)
		end(unregistered, process, pod, container);
}

/* The process's entry, made if it is new. NULL: the process is gone or cannot be identified. */
static struct gpu_process *find_or_add(struct unregistered *unregistered, const struct gpu *gpu,
				       pid_t pid, uint64_t now)
{
	struct gpu_process *process, fresh = {.since = now};

	fresh.key.gpu = gpu;
	fresh.key.pid = (uint64_t)pid;
	HASH_FIND(hh, unregistered->all, &fresh.key, sizeof(fresh.key), process);
	fresh.started = process_started(pid);
	if (!fresh.started)
		return NULL;
	if (process && process->started == fresh.started)
		return process;
	if (container_identify(&fresh.identity, pid) < 0)
		return NULL;
	if (process)
		HASH_DEL(unregistered->all, process);
	else
		process = malloc(sizeof(*process));
	if (!process)
		return NULL;
	*process = fresh;
	HASH_ADD(hh, unregistered->all, key, sizeof(process->key), process);
	return process;
}

typedef nvmlReturn_t list_fn(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_t *out);

/* @served: those of the list are clients of an MPS server. */
static void look_at(struct unregistered *unregistered, const struct monitor_gpu *gpu, list_fn *list,
		    bool served, uint64_t now)
{
	unsigned n = UNREGISTERED_PROCESSES_MAX;

	if (!list || list(gpu->device, &n, unregistered->list) != NVML_SUCCESS)
		return;
	for (unsigned i = 0; i < n && i < UNREGISTERED_PROCESSES_MAX; i++) {
		struct gpu_process *process =
			find_or_add(unregistered, gpu->gpu, (pid_t)unregistered->list[i].pid, now);
		if (!process)
			continue;
		process->look = unregistered->look;
		process->served = served;
		judge(unregistered, process, now);
	}
}

void unregistered_look(struct unregistered *unregistered, struct monitor *monitor, uint64_t now)
{
	const struct nvml *nvml = &monitor->nvml;
	struct gpu_process *process, *next;

	if (unregistered->config->action == UNREGISTERED_IGNORE)
		return;
	unregistered->look++;
	for (unsigned i = 0; i < monitor->n; i++) {
		const struct monitor_gpu *gpu = &monitor->all[i];
		if (!gpu->device)
			continue;
		look_at(unregistered, gpu, nvml->nvmlDeviceGetComputeRunningProcesses, false, now);
		/* The first list lacks clients of an MPS server. */
		look_at(unregistered, gpu, nvml->nvmlDeviceGetMPSComputeRunningProcesses, true,
			now);
	}
	HASH_ITER (hh, unregistered->all, process, next) {
		if (process->look == unregistered->look)
			continue;
		HASH_DEL(unregistered->all, process);
		free(process);
	}
}

void unregistered_deinit(struct unregistered *unregistered)
{
	hash_release(unregistered->all, free);
}

/* Reported processes of the same container and GPU before @end. They share a series. */
static unsigned count_same(const struct gpu_process *begin, const struct gpu_process *end,
			   const struct gpu_process *like)
{
	unsigned n = 0;

	for (const struct gpu_process *process = begin; process != end; process = process->hh.next)
		n += process->reported && process->key.gpu == like->key.gpu &&
		     strcmp(process->identity.pod_uid, like->identity.pod_uid) == 0 &&
		     strcmp(process->identity.container_id, like->identity.container_id) == 0;
	return n;
}

void unregistered_metrics(FILE *out, const struct unregistered *unregistered)
{
	const struct gpu_process *all = unregistered->all;

	metric_head(out, "weir_unregistered_processes",
		    "Processes of containers with shares that use a GPU without libweir.");
	for (const struct gpu_process *process = all; process; process = process->hh.next) {
		const struct pod *pod;
		const struct pod_container *container =
			sharing_container(unregistered, process, &pod);
		if (!process->reported || !container || count_same(all, process, process))
			continue;
		fputs("weir_unregistered_processes{", out);
		metric_label(out, "namespace", pod->namespace_);
		metric_label(out, ",pod", pod->name);
		metric_label(out, ",container", container->name);
		metric_label(out, ",gpu", process->key.gpu->id);
		fprintf(out, "} %u\n", count_same(all, NULL, process));
	}
	metric_head(out, "weir_unregistered_processes_killed_total",
		    "Such processes killed, if the configuration says so.");
	fprintf(out, "weir_unregistered_processes_killed_total %" PRIu64 "\n",
		unregistered->n_killed);
}
