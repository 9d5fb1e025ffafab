/* Host work on all processors: expected results and random inputs. */
#pragma once

#include "workload.h"

/* @low <= number < @high, one of 2^20. */
float random_float(struct random *random, float low, float high);

/* Many of them at once, with all processors. */
void random_floats(struct random *random, float *values, size_t n, float low, float high);
void random_words(struct random *random, uint32_t *values, size_t n);

/* Threads on all processors but the caller's, which wait for work. To be freed by crew_free(). */
struct crew *crew_new(void);
void crew_free(struct crew *crew);

/* Calls @each for 0..@n-1, on all processors. */
void crew_run(struct crew *crew, size_t n, void (*each)(void *context, size_t i), void *context);

/* The same with a crew of its own. */
void in_parallel(size_t n, void (*each)(void *context, size_t i), void *context);
