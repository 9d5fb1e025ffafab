/* Metrics of containers, of GPUs and of the scheduler. Pure. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "scheduler/scheduler.h"
#include "scheduler/tenants.h"

struct metrics_input {
	struct tenants *tenants; /* their status pages are read */
	struct gpu *gpus;        /* hash */
	const char *policy;
	struct scheduler_timers timers;
	bool kubernetes, connected;
};

/* 0, or a negative errno; then part of the text may be written. */
int metrics_write(FILE *out, const struct metrics_input *input);

/* Metrics of hardware preemption, by GPU. */
void hardware_metrics_write(FILE *out, struct gpu *gpus);

/* Metrics of the agent's process, by the names that Prometheus clients use. */
void process_metrics_write(FILE *out);
