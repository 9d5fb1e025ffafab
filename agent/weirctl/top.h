/* Rates of clients, from two answers to `status`. Pure. */
#pragma once

#include <cjson/cJSON.h>

/* Adds rates to each client of @now that is also in @before: gpuShare (predicted GPU time per
 * time), waitShare (time spent waiting per time), launchRate (per second). @seconds passed in
 * between. */
void top_rates(cJSON *now, const cJSON *before, double seconds);
