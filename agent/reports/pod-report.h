/* Tells the owners of this node's pods what is wrong with them: an event on the pod (of a refused
 * request: on its controller, too), metrics, and the lists of `weirctl status`. */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdio.h>
#include <uthash.h>

#include "scheduler/gpu/gpu.h"
#include "scheduler/pod-check.h"

#define POD_REPORT_SERIES_MAX 512 /* series of weir_pod_problems */
#define POD_REPORT_GPUS_MAX   64u

struct events;
struct pods;

/* A pod with problems that were told. */
struct told {
	char uid[64];
	UT_hash_handle hh;
	uint64_t hash;       /* of the problems */
	uint64_t generation; /* of the last look that saw the pod */
	bool refused;        /* and counted */
};

struct pod_report {
	const struct config *config;
	struct gpu *const *gpus; /* hash */
	struct pods *pods;       /* NULL: no Kubernetes */
	struct events *events;   /* NULL: none are sent */
	struct told *all;
	uint64_t generation, n_refused;
};

/* Call it when pods or the configuration changed: tells what is new. */
void pod_report_look(struct pod_report *report);
void pod_report_deinit(struct pod_report *report);
void pod_report_check(const struct pod_report *report, struct pod_problems *out,
		      const struct pod *pod);
void pod_report_metrics(FILE *out, const struct pod_report *report);
/* Each pod with problems, as [{namespace, pod, problems: [{subject, problem, message}]}]. NULL: no
 * memory. */
cJSON *pod_report_list(const struct pod_report *report);
/* Adds the list `problems` of @pod to @object. */
void pod_report_describe(cJSON *object, const struct pod_report *report, const struct pod *pod);
