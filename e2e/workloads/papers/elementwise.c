/* Vector addition, triad, nearest neighbour, Black-Scholes: the host's side. */
#include <stdlib.h>

#include <weir/base.h>

#include "../plan.h"
#include "arithmetic.h"
#include "papers.h"

static float *floats(struct plan *plan, struct buffer **buffer, uint32_t n, float low, float high)
{
	*buffer = plan_buffer(plan, n * sizeof(float));
	float *values = buffer_input(*buffer);

	random_floats(&plan->random, values, n, low, high);
	return values;
}

void plan_vector_add(struct plan *plan, uint32_t n)
{
	struct buffer *a, *b, *c = plan_buffer(plan, n * sizeof(float));
	const float *left = floats(plan, &a, n, -100, 100), *right = floats(plan, &b, n, -1, 1);
	float *want = buffer_want(c);

	for (uint32_t i = 0; i < n; i++)
		want[i] = left[i] + right[i];
	plan_launch(plan, "vector_add", shape_line(n, 256), ARGUMENT(a->device),
		    ARGUMENT(b->device), ARGUMENT(c->device), ARGUMENT(n));
}

void plan_triad(struct plan *plan, uint32_t n)
{
	struct buffer *a, *b, *c = plan_buffer(plan, n * sizeof(float));
	const float *left = floats(plan, &a, n, -100, 100), *right = floats(plan, &b, n, -1, 1);
	float *want = buffer_want(c), factor = 1.75f;

	for (uint32_t i = 0; i < n; i++)
		want[i] = left[i] + factor * right[i];
	plan_launch(plan, "triad", shape_line(n / 4 + 1, 128), ARGUMENT(a->device),
		    ARGUMENT(b->device), ARGUMENT(c->device), ARGUMENT(factor), ARGUMENT(n));
}

void plan_nearest(struct plan *plan, uint32_t n)
{
	struct buffer *places, *distances = plan_buffer(plan, n * sizeof(float));
	struct buffer *best = plan_buffer(plan, sizeof(uint64_t));
	const float *place = floats(plan, &places, 2 * n, -90, 90);
	float *want = buffer_want(distances), latitude = 30.5f, longitude = -12.25f;
	uint64_t *want_best = buffer_want(best);

	*want_best = UINT64_MAX;
	for (uint32_t i = 0; i < n; i++) {
		float x = place[2 * i] - latitude, y = place[2 * i + 1] - longitude;

		want[i] = sqrtf(x * x + y * y);
		uint64_t key = (uint64_t)arith_bits(want[i]) << 32 | i;
		if (key < *want_best)
			*want_best = key;
	}
	/* As many blocks as there are places, in rows of at most 1024. */
	struct shape shape = shape_line(n, 256);
	shape.grid[1] = shape.grid[0] / 1024 + 1;
	shape.grid[0] = (shape.grid[0] + shape.grid[1] - 1) / shape.grid[1];
	plan_launch(plan, "nearest_distance", shape, ARGUMENT(places->device),
		    ARGUMENT(distances->device), ARGUMENT(n), ARGUMENT(latitude),
		    ARGUMENT(longitude));
	plan_launch(plan, "nearest_pick", shape_line(n / 16 + 1, 256), ARGUMENT(distances->device),
		    ARGUMENT(n), ARGUMENT(best->device));
}

struct options {
	const float *price, *strike, *years;
	float *call, *put, rate, volatility;
};

static void option(void *context, size_t i)
{
	const struct options *o = context;

	arith_black_scholes(&o->call[i], &o->put[i], o->price[i], o->strike[i], o->years[i],
			    o->rate, o->volatility);
}

void plan_black_scholes(struct plan *plan, uint32_t n)
{
	struct buffer *prices, *strikes, *years;
	struct buffer *call = plan_buffer(plan, n * sizeof(float));
	struct buffer *put = plan_buffer(plan, n * sizeof(float));
	struct options options = {.price = floats(plan, &prices, n, 5, 30),
				  .strike = floats(plan, &strikes, n, 1, 100),
				  .years = floats(plan, &years, n, 0.25f, 10),
				  .call = buffer_want(call),
				  .put = buffer_want(put),
				  .rate = 0.02f,
				  .volatility = 0.3f};

	in_parallel(n, option, &options);
	plan_launch(plan, "black_scholes", shape_line(n, 128), ARGUMENT(call->device),
		    ARGUMENT(put->device), ARGUMENT(prices->device), ARGUMENT(strikes->device),
		    ARGUMENT(years->device), ARGUMENT(options.rate), ARGUMENT(options.volatility),
		    ARGUMENT(n));
}
