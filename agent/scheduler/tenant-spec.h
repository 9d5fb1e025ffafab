/* What a container may have beside its level: weight among same-level clients, latency objective,
 * limits of compute and memory. Computed from a pod's annotations and resources, or from a rule.
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "kubernetes/podlist.h"

#define WEIGHT_EXPECTED "a whole number from 1 to 100"
#define WEIGHT_LEAST    1

/* MEMORY_FULL_DEFAULT: neither `fail` nor `wait`. */
enum memory_full memory_full_parse(const char *text);

/* Same-level clients leave a container of @share its minimum rate. */
bool min_rate_holds(uint32_t thousandths, uint32_t share, bool may_raise);

struct memory_spec {
	uint64_t bytes; /* on each GPU; 0: not given, or invalid */
	uint32_t share; /* of a GPU, 1..100; 0: not given */
	bool may_raise; /* `bytes` may be more than the GPU's default */
	enum memory_full full;
	/* By a resource claim, instead of the GPU's default; 0: none. The scheduler keeps the sum
	 * of claims within the GPU. */
	uint64_t claimed;
};

struct tenant_spec {
	uint32_t weight; /* 1..100: the annotation, or the share */
	const char *wanted_weight;
	bool weight_refused; /* invalid, or more than the share where that is not allowed */
	uint64_t slo;        /* ns; 0: none */
	const char *wanted_latency;
	uint32_t compute_limit; /* 1..100 per cent of a GPU's time; 0: none, or invalid */
	const char *wanted_compute;
	uint32_t yield; /* policy/yield.h */
	const char *wanted_yield;
	bool yield_refused;  /* it is invalid */
	uint32_t min_rate;   /* thousandths; 0: none, or invalid */
	bool min_rate_holds; /* among same-level clients, too */
	const char *wanted_rate;
	struct memory_spec memory;
	const char *wanted_memory;
	bool known; /* false: the memory limit known before stays */
};

/* The strings belong to the pod. @container: NULL if the API server has not sent it yet; then its
 * share, and so its weight, is the smallest of the pod. A container without a share weighs 1. */
struct tenant_spec tenant_spec_of_pod(const struct config_levels *config, const struct pod *pod,
				      const struct pod_container *container);
/* @rule: NULL: none fits. */
struct tenant_spec tenant_spec_of_rule(const struct config_rule *rule);
/* For a container whose pod is not known. */
struct tenant_spec tenant_spec_unknown(void);

/* The limit of a container that names none, in bytes; 0: none. */
uint64_t memory_spec_default(const struct memory_spec *spec, const struct config_memory *by_default,
			     uint64_t gpu_memory);
/* The limit in bytes on a GPU of @gpu_memory bytes (0: not known); 0: none. *@cut: it is less than
 * asked for. A whole GPU has no limit by default. */
uint64_t memory_spec_limit(const struct memory_spec *spec, const struct config_memory *by_default,
			   uint64_t gpu_memory, bool *cut);
