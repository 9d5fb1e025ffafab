/* Histogram and two-point angular correlation: the host's side. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "count.h"
#include "papers.h"

void plan_histogram(struct plan *plan, uint32_t n)
{
	uint32_t words = (n + 3) / 4, blocks = words / (HISTOGRAM_THREADS * 16) + 1;
	struct buffer *data = plan_buffer(plan, words * sizeof(uint32_t));
	struct buffer *parts = plan_buffer(plan, blocks * HISTOGRAM_BINS * sizeof(uint32_t));
	struct buffer *histogram = plan_buffer(plan, HISTOGRAM_BINS * sizeof(uint32_t));
	uint32_t *word = buffer_input(data), *want = buffer_want(histogram);

	memset(want, 0, histogram->bytes);
	random_words(&plan->random, word, words);
	for (uint32_t i = 0; i < words; i++) {
		/* In some places many bytes are equal: threads meet at the same counters. */
		if (i / 1024 % 4 == 0)
			word[i] &= 0x03030303;
		for (unsigned shift = 0; shift < 32; shift += 8)
			want[word[i] >> shift & 255]++;
	}
	plan_launch(plan, "histogram_256",
		    ((struct shape){{blocks, 1, 1}, {HISTOGRAM_THREADS, 1, 1}, 0}),
		    ARGUMENT(data->device), ARGUMENT(parts->device), ARGUMENT(words));
	plan_launch(plan, "histogram_merge",
		    ((struct shape){{HISTOGRAM_BINS, 1, 1}, {MERGE_THREADS, 1, 1}, 0}),
		    ARGUMENT(parts->device), ARGUMENT(histogram->device), ARGUMENT(blocks));
}

struct point {
	float x, y, z, unused;
};

struct pairs {
	const struct point *a, *b;
	const float *limits;
	uint64_t *counts;
	size_t nb;
	bool same;
};

static void count_point(void *context, size_t i)
{
	const struct pairs *p = context;
	uint32_t bins[ANGLE_BINS] = {0};
	struct point mine = p->a[i];

	for (size_t j = p->same ? i + 1 : 0; j < p->nb; j++) {
		float cosine = mine.x * p->b[j].x + mine.y * p->b[j].y + mine.z * p->b[j].z;
		unsigned bin = 0;

		while (bin + 1 < ANGLE_BINS && cosine <= p->limits[bin + 1])
			bin++;
		bins[bin]++;
	}
	for (unsigned bin = 0; bin < ANGLE_BINS; bin++)
		__atomic_fetch_add(&p->counts[bin], bins[bin], __ATOMIC_RELAXED);
}

static struct buffer *sphere(struct plan *plan, uint32_t n)
{
	struct buffer *buffer = plan_buffer(plan, n * sizeof(struct point));
	struct point *points = buffer_input(buffer);

	for (uint32_t i = 0; i < n; i++) {
		float x, y, z, length;

		do {
			x = random_float(&plan->random, -1, 1);
			y = random_float(&plan->random, -1, 1);
			z = random_float(&plan->random, -1, 1);
			length = sqrtf(x * x + y * y + z * z);
		} while (length > 1 || length < 0.1f);
		points[i] = (struct point){x / length, y / length, z / length, 0};
	}
	return buffer;
}

static void plan_pairs(struct plan *plan, const struct buffer *a, const struct buffer *b,
		       const struct buffer *limits, uint32_t n)
{
	struct buffer *counts = plan_buffer(plan, ANGLE_BINS * sizeof(uint64_t));
	int same = a == b;
	struct pairs pairs = {a->input, b->input, limits->input, buffer_want(counts), n, same};

	counts->adds = true;
	buffer_zeros(counts);
	memset(counts->want, 0, counts->bytes);
	in_parallel(n, count_point, &pairs);
	struct shape shape = shape_line(n, ANGLE_THREADS);

	shape.grid[1] = (n + ANGLE_SEGMENT - 1) / ANGLE_SEGMENT;
	plan_launch(plan, "angle_pairs", shape, ARGUMENT(a->device), ARGUMENT(b->device),
		    ARGUMENT(n), ARGUMENT(n), ARGUMENT(limits->device), ARGUMENT(counts->device),
		    ARGUMENT(same));
}

/* Pairs of observed points, and of an observed and a random one. */
void plan_angles(struct plan *plan, uint32_t n)
{
	struct buffer *observed = sphere(plan, n), *random = sphere(plan, n);
	struct buffer *limits = plan_buffer(plan, ANGLE_BINS * sizeof(float));
	float *limit = buffer_input(limits);

	for (unsigned k = 0; k < ANGLE_BINS; k++)
		limit[k] = (float)cos(M_PI * k / ANGLE_BINS);
	plan_pairs(plan, observed, observed, limits, n);
	plan_pairs(plan, observed, random, limits, n);
}

/* As in reduction.cu. */
struct reduced {
	uint64_t sum;
	uint32_t maximum, odd;
};

void plan_reduction(struct plan *plan, uint32_t n)
{
	struct buffer *values = plan_buffer(plan, n * sizeof(uint32_t));
	struct buffer *result = plan_buffer(plan, sizeof(struct reduced));
	uint32_t *value = buffer_input(values);
	struct reduced *want = buffer_want(result);

	buffer_zeros(result);
	*want = (struct reduced){0};
	random_words(&plan->random, value, n);
	for (uint32_t i = 0; i < n; i++) {
		want->sum += value[i];
		want->odd += value[i] & 1;
		if (value[i] > want->maximum)
			want->maximum = value[i];
	}
	plan_launch(plan, "reduction", shape_line(n / 16 + 1, 256), ARGUMENT(values->device),
		    ARGUMENT(n), ARGUMENT(result->device));
}
