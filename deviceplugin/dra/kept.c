#include "dra/kept.h"

#include <string.h>

#include "codec.h"
#include "config.h"
#include "inventory.h"
#include "weir/base.h"
#include "weir/log.h"

#define LIST       "/v1.PodResourcesLister/List"
#define TIMEOUT_MS 10000u
#define RETRY      (5 * NS_PER_S)

static void count_devices(unsigned taken[GPUS_MAX], const struct inventory *inventory,
			  const struct config *config, const Dra__ContainerDevices *devices)
{
	unsigned gpu, share;

	if (strcmp(devices->resource_name, config->resource_name) != 0)
		return;
	for (size_t i = 0; i < devices->n_device_ids; i++)
		if (inventory_find(inventory, devices->device_ids[i], &gpu, &share))
			taken[gpu]++;
}

bool kept_count(struct inventory *inventory, const struct config *config,
		const Dra__ListPodResourcesResponse *list)
{
	unsigned taken[GPUS_MAX] = {0};
	bool changed = false;

	for (size_t p = 0; p < list->n_pod_resources; p++) {
		const Dra__PodResources *pod = list->pod_resources[p];
		for (size_t c = 0; c < pod->n_containers; c++)
			for (size_t d = 0; d < pod->containers[c]->n_devices; d++)
				count_devices(taken, inventory, config,
					      pod->containers[c]->devices[d]);
	}
	for (unsigned i = 0; i < inventory->node.n_gpus; i++) {
		struct gpu *gpu = &inventory->gpus[i];
		unsigned offered = config_for_gpu(config, gpu).shares;
		unsigned beyond = taken[i] > offered ? taken[i] - offered : 0;
		changed |= gpu->kept != beyond;
		gpu->kept = beyond;
		if (beyond)
			log_limited(LOG_INFO, 60,
				    "pods keep %u shares of %s that are for claims now", beyond,
				    gpu->uuid);
	}
	return changed;
}

static void message(void *owner, const void *bytes, size_t size)
{
	struct kept *kept = owner;
	cleanup(codec_freep) Dra__ListPodResourcesResponse *list =
		(void *)codec_decode(&dra__list_pod_resources_response__descriptor, bytes, size);

	if (!list)
		return;
	bool changed = kept_count(kept->inventory, kept->config, list) || !kept->known;
	kept->known = true;
	kept->n_gpus = kept->inventory->node.n_gpus;
	if (changed)
		kept->changed(kept);
}

static bool any(const struct inventory *inventory)
{
	for (unsigned i = 0; i < inventory->node.n_gpus; i++)
		if (inventory->gpus[i].kept)
			return true;
	return false;
}

static void done(void *owner, enum rpc_status status, const char *text)
{
	struct kept *kept = owner;

	kept->request = NULL;
	if (status != RPC_OK || !kept->known) {
		log_limited(LOG_WARNING, 60, "the kubelet does not say which shares pods have: %s",
			    text);
		loop_timer_set(&kept->timer, RETRY, 0);
	} else if (++kept->looks < KEPT_LOOKS || any(kept->inventory)) {
		loop_timer_set(&kept->timer, KEPT_PERIOD, 0);
	}
}

static void look(struct loop_timer *timer)
{
	static const struct rpc_receiver receiver = {message, done};
	struct kept *kept = container_of(timer, struct kept, timer);

	int r = rpc_request_new(&kept->request, kept->rpc, kept->config->dra.pod_resources, LIST,
				"", 0, TIMEOUT_MS, &receiver, kept);
	if (r < 0) {
		log_limited(LOG_WARNING, 60, "cannot call the kubelet at %s: %s",
			    kept->config->dra.pod_resources, strerror(-r));
		loop_timer_set(&kept->timer, RETRY, 0);
	}
}

void kept_look(struct kept *kept)
{
	if (!*kept->config->dra.pod_resources || !kept->known ||
	    kept->n_gpus == kept->inventory->node.n_gpus)
		return;
	kept->known = false;
	kept->looks = 0;
	if (!kept->request)
		loop_timer_set(&kept->timer, 0, 0);
}

int kept_init(struct kept *kept, struct loop *loop, struct rpc *rpc, const struct config *config,
	      struct inventory *inventory, void (*changed)(struct kept *kept))
{
	*kept = (struct kept){
		.config = config, .inventory = inventory, .rpc = rpc, .changed = changed};
	kept->known = !*config->dra.pod_resources;
	int r = loop_timer_init(&kept->timer, loop, look);
	return r < 0 || kept->known ? r : loop_timer_set(&kept->timer, 0, 0);
}

void kept_deinit(struct kept *kept)
{
	rpc_request_cancel(take(kept->request));
	loop_timer_deinit(&kept->timer);
}
