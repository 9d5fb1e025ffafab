/* Processes that use a GPU without libweir although their container has only a share of it. Nobody
 * holds them back, and no memory limit counts their memory.
 *
 * NVML lists a GPU's processes. One is unregistered if its container is known to have a share, and
 * if it has not been a client for longer than a client needs to come back. Processes in whole-GPU
 * pods, in no pod or in an unknown pod are left alone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <uthash.h>

#include "config/config.h"
#include "kubernetes/container.h"
#include "daemon/monitor.h"
#include "reports/ending.h"

#define UNREGISTERED_PROCESSES_MAX 1024 /* read for each GPU */

struct events;
struct mps;
struct pods;

/* A process on a GPU. */
struct gpu_process {
	struct {
		const struct gpu *gpu;
		uint64_t pid;
	} key;
	UT_hash_handle hh;
	struct container_identity identity;
	uint64_t started; /* by /proc/PID/stat, because PIDs are used again */
	uint64_t since;   /* when it was first seen, or last was a client */
	uint64_t look;    /* number of the last look that saw it */
	bool reported;
	bool served; /* it is a client of an MPS server */
	struct ending ending;
};

struct unregistered {
	const struct config_unregistered *config;
	struct pods *pods;     /* NULL: no Kubernetes */
	struct events *events; /* NULL: none are sent */
	struct mps *mps;
	struct gpu_process *all;
	uint64_t look;
	uint64_t n_killed;
	nvmlProcessInfo_t list[UNREGISTERED_PROCESSES_MAX];
};

/* Reads the processes of all GPUs, and reports or kills as the configuration says. */
void unregistered_look(struct unregistered *unregistered, struct monitor *monitor, uint64_t now);
void unregistered_deinit(struct unregistered *unregistered);
void unregistered_metrics(FILE *out, const struct unregistered *unregistered);
