/* Looks at the node's GPUs by NVML as long as the agent runs: errors each second, health and
 * processes each other one. Without NVML at the agent's start it does nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/gpus.h"

#include "weir/health.h"
#include "weir/loop.h"
#include "weir/nvml.h"

#define MONITOR_XIDS_MAX 16 /* kinds of errors that are counted apart, for each GPU */

struct monitor;

struct monitor_xid {
	uint64_t xid, n;
};

struct monitor_gpu {
	struct gpu *gpu;     /* lives as long as the agent */
	nvmlDevice_t device; /* NULL: NVML does not list it at present */
	struct health health;
	bool healthy;                   /* as was told */
	char reason[HEALTH_REASON_MAX]; /* why not */
	size_t n_xids;
	struct monitor_xid xids[MONITOR_XIDS_MAX];
	uint64_t other_xids;
};

/* What is new. A GPU is taken for healthy until it is told to be not. */
struct monitor_listener {
	void (*health)(struct monitor *monitor, const struct monitor_gpu *gpu);
	/* A look at all GPUs ends; NVML is open. */
	void (*looked)(struct monitor *monitor, uint64_t now);
};

struct monitor {
	const struct monitor_listener *listener;
	const struct health_settings *settings;
	const char *path; /* of NVML; empty: searched for */
	struct gpus *gpus;
	struct loop_timer timer;
	struct nvml nvml;
	nvmlEventSet_t events; /* NULL: this driver tells no errors */
	uint64_t opened, next_probe;
	bool lost;       /* a GPU is not there, or does not answer */
	char driver[80]; /* version; empty: not told */
	bool mig;        /* a GPU is in MIG mode */
	unsigned n;
	struct monitor_gpu all[GPUS_MAX];
};

/* Begins to look if @gpus were listed by NVML. The rest of what is given must outlive the monitor.
 * 0, or a negative errno. */
int monitor_init(struct monitor *monitor, struct loop *loop, struct gpus *gpus, const char *path,
		 const struct health_settings *settings, const struct monitor_listener *listener);
/* NULL: @gpu is none of those. */
const struct monitor_gpu *monitor_find(const struct monitor *monitor, const struct gpu *gpu);
void monitor_deinit(struct monitor *monitor);
