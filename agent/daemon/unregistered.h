/* Processes that NVML sees on the GPUs, and those of them that have shares of one and use it
 * without libweir: nobody holds them back, and no limit of memory counts what they have.
 *
 * Such a process is one whose pod asks for shares, which is not connected to the agent, and which
 * has been so for longer than a client takes to come back. Whole-GPU pods are left alone, and so is
 * what is in no pod or in one that is not known. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <uthash.h>

#include "config/config.h"
#include "kubernetes/container.h"
#include "daemon/monitor.h"

#define UNREGISTERED_PROCESSES_MAX 1024 /* of a GPU that are looked at */

struct agent;

/* A process on a GPU. */
struct gpu_process {
	struct {
		const struct gpu *gpu;
		uint64_t pid;
	} key;
	UT_hash_handle hh;
	struct container_identity identity;
	uint64_t started; /* by /proc/PID/stat: the number alone may be given out again */
	uint64_t since;   /* when it was first seen, or last was a client */
	uint64_t look;    /* the last one that saw it */
	bool reported, killed;
};

struct unregistered {
	struct gpu_process *all;
	uint64_t look;
	uint64_t n_killed;
	nvmlProcessInfo_t list[UNREGISTERED_PROCESSES_MAX];
};

/* Looks which processes there are, and acts as the configuration says. */
void unregistered_look(struct agent *agent, struct monitor *monitor, uint64_t now);
void unregistered_deinit(struct unregistered *unregistered);
void unregistered_metrics(FILE *out, const struct agent *agent);
