#include "daemon/waiting.h"

#include <inttypes.h>
#include <string.h>

#include "common/hash.h"
#include "common/metric.h"
#include "kubernetes/api.h"
#include "kubernetes/checkpoint.h"
#include "kubernetes/events.h"
#include "kubernetes/pods.h"

#include "weir/base.h"
#include "weir/log.h"

int waiting_init(struct waiting *waiting, struct loop *loop, loop_timer_fn *look)
{
	return loop_timer_init(&waiting->timer, loop, look);
}

void waiting_deinit(struct waiting *waiting)
{
	loop_timer_deinit(&waiting->timer);
	hash_release(waiting->all, free);
}

static struct waiting_pod *find_or_add(struct waiting *waiting, const struct pod *pod, uint64_t now)
{
	struct waiting_pod *found;

	HASH_FIND_STR(waiting->all, pod->uid, found);
	if (found || !(found = calloc(1, sizeof(*found))))
		return found;
	memcpy(found->uid, pod->uid, sizeof(found->uid));
	found->since = now;
	HASH_ADD_STR(waiting->all, uid, found);
	events_tell(waiting->events, pod, EVENT_WARNING, "GPUShareWaits",
		    "no GPU of this node has room for %u shares; %s", pod->request,
		    *pod->owner.uid ? "when one has, the pod is replaced"
				    : "the pod has no controller: delete it and create it again");
	return found;
}

static void deleted(void *userdata, long status)
{
	struct waiting *waiting = userdata;

	waiting->n_replaced += status >= 200 && status < 300;
}

static void replace(struct waiting *waiting, struct waiting_pod *entry, const struct pod *pod,
		    uint64_t now)
{
	cJSON *body = cJSON_CreateObject();
	cJSON *preconditions = cJSON_AddObjectToObject(body, "preconditions");
	char path[600];

	cJSON_AddStringToObject(body, "apiVersion", "v1");
	cJSON_AddStringToObject(body, "kind", "DeleteOptions");
	/* Not its successor, which may have the same name. */
	if (!cJSON_AddStringToObject(preconditions, "uid", pod->uid)) {
		cJSON_Delete(body);
		return;
	}
	snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s", pod->namespace_, pod->name);
	if (api_send(waiting->api, "DELETE", path, body, deleted, waiting) < 0)
		return;
	entry->deleted_at = now;
	log_info("namespace '%s', pod '%s': deleted, so that its controller replaces it where it "
		 "fits",
		 pod->namespace_, pod->name);
}

/* When the pod is to be deleted; 0: now. UINT64_MAX: never. */
static uint64_t due(const struct waiting_pod *entry, const struct pod *pod, bool fits)
{
	if (!*pod->owner.uid)
		return UINT64_MAX;
	if (entry->deleted_at)
		return entry->deleted_at + WAITING_AGAIN_NS;
	if (fits)
		return 0;
	return strcmp(pod->owner.kind, "ReplicaSet") == 0 ? entry->since + WAITING_LONG_NS
							  : UINT64_MAX;
}

static void forget(struct waiting *waiting, struct waiting_pod *entry)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it is in no list any more */
	HASH_DEL(waiting->all, entry);
	free(entry);
}

void waiting_look(struct waiting *waiting, const struct checkpoint *checkpoint, uint64_t now)
{
	struct waiting_pod *entry, *next;
	uint64_t soonest = UINT64_MAX;

	waiting->generation++;
	for (size_t i = 0; i < checkpoint->n_waiting; i++) {
		const struct pod *pod = pods_find(waiting->pods, checkpoint->waiting[i].uid);
		entry = pod ? find_or_add(waiting, pod, now) : NULL;
		if (!entry)
			continue;
		entry->generation = waiting->generation;
		bool fits = checkpoint_fits(checkpoint, &checkpoint->waiting[i]);
		if (waiting->api && due(entry, pod, fits) <= now)
			replace(waiting, entry, pod, now);
		uint64_t at = due(entry, pod, fits);
		if (at < soonest)
			soonest = at;
	}
	HASH_ITER (hh, waiting->all, entry, next) {
		if (entry->generation != waiting->generation)
			forget(waiting, entry);
	}
	if (waiting->api && soonest != UINT64_MAX)
		loop_timer_set(&waiting->timer, soonest > now ? soonest - now : WAITING_AGAIN_NS,
			       0);
}

void waiting_metrics(FILE *out, const struct waiting *waiting)
{
	metric_head(out, "weir_pods_waiting",
		    "Pods on the node that wait because no GPU has room for their shares.");
	fprintf(out, "weir_pods_waiting %u\n", HASH_COUNT(waiting->all));
	metric_head(out, "weir_pods_replaced_total",
		    "Pods that waited, and were deleted to be replaced where they fit.");
	fprintf(out, "weir_pods_replaced_total %" PRIu64 "\n", waiting->n_replaced);
}

const struct waiting_pod *waiting_find(const struct waiting *waiting, const struct pod *pod)
{
	struct waiting_pod *found;

	HASH_FIND_STR(waiting->all, pod->uid, found);
	return found;
}
