#include "samples.h"

#include <stdlib.h>

#include "workload.h"

void samples_add(struct samples *samples, double value)
{
	if (samples->n == samples->capacity) {
		size_t capacity = samples->capacity ? 2 * samples->capacity : 1024;
		double *values = realloc(samples->values, capacity * sizeof(*values));

		if (!values)
			workload_fail("out of memory");
		samples->values = values;
		samples->capacity = capacity;
	}
	samples->values[samples->n++] = value;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void samples_sort(struct samples *samples)
{
	if (samples->n)
		qsort(samples->values, samples->n, sizeof(*samples->values), compare);
}

double samples_quantile(const struct samples *samples, double q)
{
	size_t index = (size_t)(q * (double)samples->n);

	if (!samples->n)
		return 0;
	return samples->values[index < samples->n ? index : samples->n - 1];
}

double samples_mean(const struct samples *samples)
{
	double sum = 0;

	for (size_t i = 0; i < samples->n; i++)
		sum += samples->values[i];
	return samples->n ? sum / (double)samples->n : 0;
}

void samples_deinit(struct samples *samples)
{
	free(samples->values);
	*samples = (struct samples){0};
}
