/* Watches the node's GPUs by NVML: errors each second, health and processes every two seconds. Does
 * nothing if NVML was missing at the agent's start. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/gpu/gpus.h"

#include "weir/health.h"
#include "weir/loop.h"
#include "weir/nvml.h"

#define MONITOR_XIDS_MAX 16 /* numbers that are counted one by one, for each GPU */

struct monitor;

struct monitor_xid {
	uint64_t xid, n;
};

struct monitor_gpu {
	struct gpu *gpu;
	nvmlDevice_t device; /* NULL: NVML does not list it now */
	struct health health;
	bool healthy;                   /* as the listener was told */
	char reason[HEALTH_REASON_MAX]; /* why not healthy */
	size_t n_xids;
	struct monitor_xid xids[MONITOR_XIDS_MAX];
	uint64_t other_xids;
};

/* A GPU counts as healthy until the listener hears otherwise. */
struct monitor_listener {
	void (*health)(struct monitor *monitor, const struct monitor_gpu *gpu);
	/* All GPUs were probed. NVML is open. */
	void (*looked)(struct monitor *monitor, uint64_t now);
};

struct monitor {
	const struct monitor_listener *listener;
	const struct health_settings *settings;
	const char *path; /* of NVML; empty: search */
	struct gpus *gpus;
	struct loop_timer timer;
	struct nvml nvml;
	nvmlEventSet_t events; /* NULL: this driver reports no errors */
	uint64_t opened, next_probe;
	bool lost;       /* a GPU is missing or silent */
	char driver[80]; /* version; empty: unknown */
	bool mig;        /* a GPU is in MIG mode */
	unsigned n;
	struct monitor_gpu all[GPUS_MAX];
};

/* Watches @gpus if NVML listed them. All arguments must outlive the monitor. 0, or a negative
 * errno. */
int monitor_init(struct monitor *monitor, struct loop *loop, struct gpus *gpus, const char *path,
		 const struct health_settings *settings, const struct monitor_listener *listener);
/* NULL: @gpu is not watched. */
const struct monitor_gpu *monitor_find(const struct monitor *monitor, const struct gpu *gpu);
void monitor_deinit(struct monitor *monitor);
