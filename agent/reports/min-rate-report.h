/* Tells the owners of pods whose minimum rate (policy/min-rate.h) is missed, or cannot be had
 * beside those of other pods of the GPU. */
#pragma once

#include "scheduler/gpu/gpu.h"

struct events;
struct pods;

/* An event for each pod on @gpu, once for each cause. Call now and then. */
void min_rate_report_look(struct events *events, struct pods *pods, struct gpu *gpu);
