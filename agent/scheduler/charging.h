/* Charges clients for what they ran: by the clock, and by what they report (policy/charge.h). */
#pragma once

#include "scheduler/client.h"
#include "scheduler/gpu/gpu.h"

/* @passed ns have gone by since the last look, and no decision in between. */
void charging_look(struct gpu *gpu, uint64_t passed, uint64_t now);
