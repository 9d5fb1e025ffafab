/* What the agent sees of the GPUs, told to people: Kubernetes events on the node and on the pods
 * that use a GPU, labels of the node, metrics. */
#pragma once

#include <stdio.h>

struct agent;

/* Begins to look, and to tell as the configuration says. 0, or a negative errno. */
int report_init(struct agent *agent);
/* Whatever state agent->api, events, labels, monitor and unregistered are in. */
void report_deinit(struct agent *agent);

void report_metrics(FILE *out, const struct agent *agent);
