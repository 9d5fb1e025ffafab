/* What clients do now, from two answers to `status`. Pure. */
#pragma once

#include <cjson/cJSON.h>

/* Adds to each client of @now that is in @before, too: gpuShare (of the GPU's time, predicted),
 * waitShare (of the time), launchRate (a second). @seconds lie between the two. */
void top_rates(cJSON *now, const cJSON *before, double seconds);
