#include "reports/disobedience.h"

#include "kubernetes/events.h"
#include "kubernetes/pods.h"
#include "scheduler/tenants.h"

void disobedience_look(struct events *events, struct pods *pods, const struct gpu *gpu)
{
	for (const struct client *client = gpu->clients; client; client = client->gpu_next) {
		struct usage *usage = tenant_usage(client->tenant, client->gpu);
		const struct pod *pod = pods_of(pods, &client->tenant->identity);
		if (!usage || !pod || usage->disobedience_told == usage->quotas.disobeyed)
			continue;
		usage->disobedience_told = usage->quotas.disobeyed;
		events_tell(events, pod, EVENT_WARNING, "HoldDisobeyed",
			    "container %s ran on %s although it was held, %llu times so far; its "
			    "channels were stopped",
			    client->tenant->container, gpu->id,
			    (unsigned long long)usage->quotas.disobeyed);
	}
}
