/* Publishes what fits on this node: free shares by GPU, the most on one, whole GPUs. The scheduler
 * only knows their sum.
 *
 * The kubelet's checkpoint says which shares containers have, the API server which pods live.
 * Labels of the node are for people and node selectors. Labels of the agent's own pod are for the
 * anti-affinity that the chart's policy adds to pods: an affinity to labels of the node would not
 * do, because a kubelet that restarts ends running pods whose node affinity no longer fits. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "daemon/waiting.h"
#include "kubernetes/checkpoint.h"
#include "kubernetes/labels.h"

#include "weir/file-watch.h"

/* A pod that the checkpoint has and the API server has not sent: new, or deleted. After this time
 * since the last allocation it counts as deleted. */
#define PLACEMENT_NEW_POD_NS 3000000000ull

struct config;
struct events;
struct pod;
struct pods;

struct placement {
	const struct config *config;
	struct pods *pods;
	struct labels *node; /* of the node; without effect where they are off */
	struct labels own;   /* of the agent's pod */
	struct waiting waiting;
	struct file_watch watch;
	struct loop_timer again;
	struct checkpoint free; /* as last published */
	uint64_t changed_at;    /* when the checkpoint last changed */
	bool known;             /* `free` is */
	bool awaits;            /* the last look met a pod that may be new */
};

/* Does nothing if the configuration names no checkpoint. @api: NULL: publishes only metrics. */
int placement_init(struct placement *placement, struct loop *loop, struct api *api,
		   struct events *events);
void placement_deinit(struct placement *placement);
/* Call it when the pods changed. */
void placement_look(struct placement *placement);
void placement_metrics(FILE *out, const struct placement *placement);
/* One line about what is free, for people; another one if @pod waits for it. */
void placement_explain(FILE *out, const struct placement *placement, const struct pod *pod);
