/* Under one MPS server all clients fail together: if one is killed in a long kernel, the work of
 * the others ends with an illegal memory access. Pods that share a server with another namespace's
 * pods get an event. */
#pragma once

#include <stdbool.h>

struct events;
struct gpu;
struct pods;

/* @gpu has an MPS server; @per_level: one for each level. Each container's pod is told once. Does
 * nothing without @pods. */
void fault_domain_look(struct events *events, struct pods *pods, const struct gpu *gpu,
		       bool per_level);
