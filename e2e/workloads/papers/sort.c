/* Scan, radix sort, hybrid sort: the host's side. */
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "papers.h"
#include "sort.h"

#define SCAN_LEVELS 4

/* Where a scan keeps the sums of tiles, of tiles of those, and so on; for one scan after the other.
 */
struct scan {
	struct buffer *sums[SCAN_LEVELS], *before[SCAN_LEVELS];
};

/* Launches that make @out the sums of the values of @in before each of its @n; @level: 0. */
static void launch_scan(struct plan *plan, struct scan *scan, unsigned level,
			const struct buffer *in, const struct buffer *out, uint32_t n)
{
	uint32_t tiles = (n + SCAN_TILE - 1) / SCAN_TILE;
	struct shape shape = {{tiles, 1, 1}, {SCAN_THREADS, 1, 1}, 0};

	if (!scan->sums[level])
		scan->sums[level] = plan_buffer(plan, tiles * sizeof(uint32_t));
	plan_launch(plan, "scan_tiles", shape, ARGUMENT(in->device), ARGUMENT(out->device),
		    ARGUMENT(scan->sums[level]->device), ARGUMENT(n));
	if (tiles == 1)
		return;
	if (!scan->before[level])
		scan->before[level] = plan_buffer(plan, tiles * sizeof(uint32_t));
	launch_scan(plan, scan, level + 1, scan->sums[level], scan->before[level], tiles);
	plan_launch(plan, "scan_add", shape, ARGUMENT(out->device),
		    ARGUMENT(scan->before[level]->device), ARGUMENT(n));
}

void plan_scan(struct plan *plan, uint32_t n)
{
	struct buffer *in = plan_buffer(plan, n * sizeof(uint32_t));
	struct buffer *out = plan_buffer(plan, n * sizeof(uint32_t));
	uint32_t *value = buffer_input(in), *want = buffer_want(out), sum = 0;

	random_words(&plan->random, value, n);
	for (uint32_t i = 0; i < n; i++) {
		value[i] %= 1000;
		want[i] = sum;
		sum += value[i];
	}
	launch_scan(plan, &(struct scan){0}, 0, in, out, n);
}

struct pair {
	uint32_t key, value;
};

/* Values are places in the input, so that this is the one stable order. */
static int compare_pairs(const void *a, const void *b)
{
	const struct pair *left = a, *right = b;

	if (left->key != right->key)
		return left->key < right->key ? -1 : 1;
	return left->value < right->value ? -1 : left->value > right->value;
}

void plan_radix_sort(struct plan *plan, uint32_t n)
{
	uint32_t tiles = (n + RADIX_TILE - 1) / RADIX_TILE;
	struct buffer *pairs[2] = {plan_buffer(plan, n * sizeof(struct pair)),
				   plan_buffer(plan, n * sizeof(struct pair))};
	struct buffer *counts = plan_buffer(plan, RADIX_DIGITS * tiles * sizeof(uint32_t));
	struct buffer *starts = plan_buffer(plan, RADIX_DIGITS * tiles * sizeof(uint32_t));
	struct pair *start = buffer_start(pairs[0]), *want = buffer_want(pairs[0]);
	struct shape shape = {{tiles, 1, 1}, {RADIX_THREADS, 1, 1}, 0};
	struct scan scan = {0};
	unsigned now = 0;

	/* Half of the keys are short, so that some are equal. */
	for (uint32_t i = 0; i < n; i++)
		start[i] = (struct pair){(uint32_t)random_next(&plan->random) >> (i % 2 * 20), i};
	memcpy(want, start, n * sizeof(*want));
	qsort(want, n, sizeof(*want), compare_pairs);
	for (uint32_t shift = 0; shift < 32; shift += RADIX_BITS, now = !now) {
		plan_launch(plan, "radix_count", shape, ARGUMENT(pairs[now]->device),
			    ARGUMENT(counts->device), ARGUMENT(n), ARGUMENT(shift));
		launch_scan(plan, &scan, 0, counts, starts, RADIX_DIGITS * tiles);
		plan_launch(plan, "radix_scatter", shape, ARGUMENT(pairs[now]->device),
			    ARGUMENT(starts->device), ARGUMENT(pairs[!now]->device), ARGUMENT(n),
			    ARGUMENT(shift));
	}
}

static int compare_floats(const void *a, const void *b)
{
	const float *left = a, *right = b;

	return *left < *right ? -1 : *left > *right;
}

static void check_buckets(const float *keys, uint32_t n, uint32_t buckets)
{
	cleanup(freep) uint32_t *counts = workload_alloc(buckets * sizeof(*counts));

	memset(counts, 0, buckets * sizeof(*counts));
	for (uint32_t i = 0; i < n; i++)
		if (++counts[(uint32_t)(keys[i] * (float)buckets)] > BUCKET_MOST)
			workload_fail("hybrid-sort: a bucket is too full: another seed");
}

void plan_hybrid_sort(struct plan *plan, uint32_t n)
{
	uint32_t buckets = n / BUCKET_MEAN + 1;
	struct buffer *in = plan_buffer(plan, n * sizeof(float)),
		      *out = plan_buffer(plan, in->bytes);
	struct buffer *counts = plan_buffer(plan, buckets * sizeof(uint32_t));
	struct buffer *starts = plan_buffer(plan, buckets * sizeof(uint32_t));
	struct buffer *slots = plan_buffer(plan, n * sizeof(uint32_t));
	float *key = buffer_input(in), *want = buffer_want(out);

	random_floats(&plan->random, key, n, 0, 1);
	check_buckets(key, n, buckets);
	memcpy(want, key, in->bytes);
	qsort(want, n, sizeof(*want), compare_floats);
	buffer_zeros(counts);
	plan_launch(plan, "bucket_count", shape_line(n, BUCKET_PASS), ARGUMENT(in->device),
		    ARGUMENT(counts->device), ARGUMENT(slots->device), ARGUMENT(n),
		    ARGUMENT(buckets));
	launch_scan(plan, &(struct scan){0}, 0, counts, starts, buckets);
	plan_launch(plan, "bucket_scatter", shape_line(n, BUCKET_PASS), ARGUMENT(in->device),
		    ARGUMENT(starts->device), ARGUMENT(slots->device), ARGUMENT(out->device),
		    ARGUMENT(n), ARGUMENT(buckets));
	plan_launch(plan, "bucket_merge",
		    ((struct shape){{buckets, 1, 1},
				    {BUCKET_THREADS, 1, 1},
				    2 * BUCKET_MOST * sizeof(float)}),
		    ARGUMENT(out->device), ARGUMENT(starts->device), ARGUMENT(counts->device));
}
