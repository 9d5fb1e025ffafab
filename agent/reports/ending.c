#include "reports/ending.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "common/process.h"
#include "kubernetes/events.h"
#include "kubernetes/pods.h"
#include "mps/mps.h"
#include "scheduler/tenants.h"

#include "weir/log.h"

static const struct {
	const char *event, *why;
} reasons[ENDING_REASONS] = {
	[ENDING_OVERRUN] = {"KernelOverrunsKilled", "its kernel did not leave the GPU"},
	[ENDING_DISOBEDIENCE] = {"HoldDisobeyedKilled", "it did not obey holds"},
};

bool ending_go_on(struct ending *ending, struct mps *mps, const struct ending_process *process)
{
	bool first = !ending->begun;

	if (!ending->killed && process->served &&
	    mps_end_work(mps, process->gpu, process->pid) == MPS_ENDS_WORK) {
		ending->begun = true;
		return first;
	}
	int r = process_signal(process->process, SIGKILL);
	if (r < 0 && r != -ESRCH)
		log_limited(LOG_ERROR, 60, "cannot kill process %d: %s", (int)process->pid,
			    strerror(-r));
	if (r < 0)
		return false;
	ending->begun = ending->killed = true;
	return first;
}

static void begun(struct client *client)
{
	struct usage *usage = tenant_usage(client->tenant, client->gpu);

	if (usage)
		usage->quotas.killed[client->ending.reason]++;
	log_limited(LOG_WARNING, 1, WHOSE "process %d is killed: %s", WHO(client->tenant),
		    (int)client->pid, reasons[client->ending.reason].why);
}

void ending_look(struct gpu *gpu, struct mps *mps)
{
	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		struct ending_process process = {.gpu = gpu,
						 .pid = client->pid,
						 .process = client->process,
						 .served = client_is_concurrent(client)};
		if (client->ending.reason && ending_go_on(&client->ending, mps, &process))
			begun(client);
	}
}

void ending_tell(struct events *events, struct pods *pods, const struct gpu *gpu)
{
	for (const struct client *client = gpu->clients; client; client = client->gpu_next) {
		struct usage *usage = tenant_usage(client->tenant, client->gpu);
		const struct pod *pod = pods_of(pods, &client->tenant->identity);
		for (unsigned i = ENDING_NONE + 1; i < ENDING_REASONS && usage && pod; i++) {
			if (usage->kills_told[i] != usage->quotas.killed[i])
				events_tell(events, pod, EVENT_WARNING, reasons[i].event,
					    "container %s: killed a process that used %s: %s",
					    client->tenant->container, gpu->id, reasons[i].why);
			usage->kills_told[i] = usage->quotas.killed[i];
		}
	}
}
