#include "reports/overrun-report.h"

#include "kubernetes/events.h"
#include "kubernetes/pods.h"
#include "scheduler/tenants.h"

void overrun_report_look(struct events *events, struct pods *pods, const struct gpu *gpu)
{
	for (const struct client *client = gpu->clients; client; client = client->gpu_next) {
		struct usage *usage = tenant_usage(client->tenant, client->gpu);
		const struct pod *pod = pods_of(pods, &client->tenant->identity);
		if (!usage || !pod)
			continue;
		if (usage->overruns_told != usage->quotas.overruns)
			events_tell(events, pod, EVENT_WARNING, "KernelOverruns",
				    "container %s: a kernel does not leave %s although others "
				    "wait for it, %llu times so far",
				    client->tenant->container, gpu->id,
				    (unsigned long long)usage->quotas.overruns);
		if (usage->kills_told != usage->quotas.overruns_killed)
			events_tell(events, pod, EVENT_WARNING, "KernelOverrunsKilled",
				    "container %s: killed a process whose kernel did not leave %s",
				    client->tenant->container, gpu->id);
		usage->overruns_told = usage->quotas.overruns;
		usage->kills_told = usage->quotas.overruns_killed;
	}
}
