#include "daemon/memory-wait.h"

#include "kubernetes/events.h"
#include "kubernetes/pods.h"
#include "scheduler/tenants.h"

#include "weir/log.h"

void memory_wait_begin(struct memory_wait *wait, struct tenant *tenant, struct gpu *gpu,
		       uint64_t bytes, uint64_t now)
{
	struct usage *usage = tenant_usage(tenant, gpu);

	if (!usage)
		return;
	*wait = (struct memory_wait){usage, now};
	usage->memory_waits.n++;
	usage->memory_waits.waiting++;
	usage->memory_waits.bytes = bytes;
	log_limited(LOG_INFO, 1, WHOSE "%llu MiB wait for memory of %s", WHO(tenant),
		    (unsigned long long)(bytes >> 20), gpu->id);
}

void memory_wait_end(struct memory_wait *wait, uint64_t now)
{
	if (!wait->usage)
		return;
	wait->usage->memory_waits.waiting--;
	wait->usage->memory_waits.waited += now - wait->began;
	wait->usage = NULL;
}

void memory_wait_tell(struct events *events, struct pods *pods, struct tenant *tenant)
{
	const struct pod *pod = pods_of(pods, &tenant->identity);

	for (struct usage *usage = tenant->usages; usage; usage = usage->next) {
		struct memory_waits *waits = &usage->memory_waits;
		if (!pod || waits->told == waits->n)
			continue;
		waits->told = waits->n;
		events_tell(events, pod, EVENT_WARNING, "GPUMemoryWaits",
			    "container %s waits for memory of %s, which is full: an allocation of "
			    "%llu MiB",
			    tenant->container, usage->gpu->id,
			    (unsigned long long)(waits->bytes >> 20));
	}
}
