#include "daemon/fault-domain.h"

#include <string.h>

#include "kubernetes/events.h"
#include "kubernetes/pods.h"
#include "scheduler/tenants.h"

static bool has_several_namespaces(const struct gpu *gpu)
{
	const char *first = NULL;

	for (const struct client *client = gpu->clients; client; client = client->gpu_next) {
		const char *name = client->tenant->namespace_;
		if (*name && first && strcmp(name, first) != 0)
			return true;
		if (*name)
			first = name;
	}
	return false;
}

void fault_domain_look(struct events *events, struct pods *pods, const struct gpu *gpu)
{
	if (!has_several_namespaces(gpu))
		return;
	for (const struct client *client = gpu->clients; client; client = client->gpu_next) {
		struct tenant *tenant = client->tenant;
		const struct pod *pod = pods_of(pods, &tenant->identity);
		if (!pod || tenant->fault_domain_told)
			continue;
		tenant->fault_domain_told = true;
		events_tell(events, pod, EVENT_WARNING, "SharedFaultDomain",
			    "%s has one MPS server for pods of several namespaces: if one of "
			    "them is killed in a long kernel, the others' work fails with it",
			    gpu->id);
	}
}
