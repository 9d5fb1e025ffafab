/* Shares that running pods got from the device plugin and keep, although the configuration has
 * since given them to claims. The kubelet lists what pods have (its PodResources API). Until it
 * has, no GPU is offered to claims; until such pods end, their shares are not. */
#pragma once

#include <stdbool.h>

#include "dra-v1.pb-c.h"
#include "rpc/rpc.h"
#include "weir/loop.h"

#define KEPT_PERIOD (10 * NS_PER_S)
#define KEPT_LOOKS                                                                     \
	6u /* after the start, even if nothing is kept: an allocation may be under way \
	    */

struct config;
struct inventory;

struct kept {
	const struct config *config;
	struct inventory *inventory; /* gets the shares in each `gpu.kept` */
	struct rpc *rpc;
	struct rpc_request *request; /* NULL: none is running */
	struct loop_timer timer;
	bool known; /* the kubelet has answered, about all GPUs */
	unsigned n_gpus;
	unsigned looks;
	void (*changed)(struct kept *kept);
};

/* Without a socket in the configuration nothing is kept. @changed: also when it becomes known. */
int kept_init(struct kept *kept, struct loop *loop, struct rpc *rpc, const struct config *config,
	      struct inventory *inventory, void (*changed)(struct kept *kept));
void kept_deinit(struct kept *kept);
/* Asks again if there are more GPUs than the kubelet has answered about. */
void kept_look(struct kept *kept);

/* Writes `gpu.kept` of all GPUs. True: some changed. Pure. */
bool kept_count(struct inventory *inventory, const struct config *config,
		const Dra__ListPodResourcesResponse *list);
