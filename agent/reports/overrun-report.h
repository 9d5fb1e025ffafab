/* Tells of kernels that did not leave the GPU (scheduler/overrun.h). */
#pragma once

#include "scheduler/gpu.h"

struct events;
struct pods;

/* An event for each pod with new cases on @gpu. Call after overrun_look(). */
void overrun_report_look(struct events *events, struct pods *pods, const struct gpu *gpu);
