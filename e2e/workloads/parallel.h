/* Host work on all processors: expected results and random inputs. */
#pragma once

#include "workload.h"

/* @low <= number < @high, one of 2^20. */
float random_float(struct random *random, float low, float high);

/* Many of them at once, with all processors. */
void random_floats(struct random *random, float *values, size_t n, float low, float high);
void random_words(struct random *random, uint32_t *values, size_t n);

/* Calls @each for 0..@n-1, on all processors. */
void in_parallel(size_t n, void (*each)(void *context, size_t i), void *context);
