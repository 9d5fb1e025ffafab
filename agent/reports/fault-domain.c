#include "reports/fault-domain.h"

#include <string.h>

#include "kubernetes/events.h"
#include "kubernetes/pods.h"
#include "scheduler/tenants.h"

/* Levels with other namespaces' clients in the same server, as bits. */
static unsigned mixed_levels(const struct gpu *gpu, bool per_level)
{
	const char *first[WEIR_LEVELS] = {NULL};
	unsigned mixed = 0;

	for (const struct client *client = gpu->clients; client; client = client->gpu_next) {
		const char *name = client->tenant->namespace_;
		unsigned server = per_level ? client->level : 0;
		if (*name && first[server] && strcmp(name, first[server]) != 0)
			mixed |= per_level ? 1u << server : ~0u;
		if (*name)
			first[server] = name;
	}
	return mixed;
}

void fault_domain_look(struct events *events, struct pods *pods, const struct gpu *gpu,
		       bool per_level)
{
	unsigned mixed = mixed_levels(gpu, per_level);

	for (const struct client *client = mixed ? gpu->clients : NULL; client;
	     client = client->gpu_next) {
		struct tenant *tenant = client->tenant;
		const struct pod *pod = pods_of(pods, &tenant->identity);
		if (!pod || tenant->fault_domain_told || !(mixed & 1u << client->level))
			continue;
		tenant->fault_domain_told = true;
		events_tell(events, pod, EVENT_WARNING, "SharedFaultDomain",
			    "%s has one MPS server for pods of several namespaces%s: if one of "
			    "them is killed in a long kernel, the others' work fails with it",
			    gpu->id, per_level ? " at this pod's level" : "");
	}
}
