/* Tells people what the agent sees of the GPUs: Kubernetes events on the node and on the pods that
 * use a GPU or have problems, labels of the node, metrics. */
#pragma once

#include <stdio.h>

#include "daemon/monitor.h"
#include "daemon/placement.h"
#include "reports/pod-report.h"
#include "daemon/unregistered.h"
#include "kubernetes/labels.h"
#include "kubernetes/pod-fetch.h"

struct config;
struct mps;
struct tenants;

struct report {
	const struct config *config;
	struct gpus *gpus;
	struct tenants *tenants;
	struct mps *mps;
	struct pods *pods; /* NULL: no Kubernetes */
	struct monitor monitor;
	struct unregistered unregistered;
	struct pod_report problems;
	struct placement placement;
	struct pod_fetch *fetch; /* made at its first use */
	struct loop *loop;
	struct api *api;       /* NULL: nothing is written */
	struct events *events; /* NULL: none are sent */
	struct labels labels;
};

/* Starts to watch the GPUs, and to report as the configuration says. The first five members are
 * set. */
int report_init(struct report *report, struct loop *loop, bool standalone);
/* Accepts any state of report_init(). */
void report_deinit(struct report *report);
/* Call it when pods or the configuration changed. */
void report_pods_changed(struct report *report);
/* A pod that is not on this node, from the API server. */
enum pod_fetch_result report_fetch(struct report *report, const char *namespace_, const char *name,
				   const struct pod **out);
void report_metrics(FILE *out, const struct report *report);
