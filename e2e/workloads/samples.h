/* A growing list of measurements and their quantiles. */
#pragma once

#include <stddef.h>

struct samples {
	double *values;
	size_t n, capacity;
};

void samples_add(struct samples *samples, double value);
/* Sorts; then samples_quantile() may be asked. */
void samples_sort(struct samples *samples);
/* @q 0..1; 0 without samples. The value below which a share @q lies, no interpolation. */
double samples_quantile(const struct samples *samples, double q);
double samples_mean(const struct samples *samples);
void samples_deinit(struct samples *samples);
