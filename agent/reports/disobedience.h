/* Tells of clients that ran although they were held (scheduler/preemption.h). */
#pragma once

#include "scheduler/gpu/gpu.h"

struct events;
struct pods;

/* An event for each pod with new cases on @gpu. Call now and then. */
void disobedience_look(struct events *events, struct pods *pods, const struct gpu *gpu);
