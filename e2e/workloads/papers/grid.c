/* Path finder, 9-point stencil, separable convolution: the host's side. */
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "grid.h"
#include "papers.h"

static int min_int(int a, int b)
{
	return a < b ? a : b;
}

static void path_row(const int *wall, const int *in, int *out, int columns)
{
	for (int x = 0; x < columns; x++) {
		int best = in[x];

		if (x > 0)
			best = min_int(best, in[x - 1]);
		if (x < columns - 1)
			best = min_int(best, in[x + 1]);
		out[x] = best + wall[x];
	}
}

void plan_path_find(struct plan *plan, uint32_t size)
{
	int columns = (int)size, rows = plan->workload->gpu ? 200 : 50;
	struct buffer *walls = plan_buffer(plan, (size_t)columns * (size_t)rows * sizeof(int));
	struct buffer *costs[2] = {plan_buffer(plan, size * sizeof(int)),
				   plan_buffer(plan, size * sizeof(int))};
	int *wall = buffer_input(walls), *cost = buffer_start(costs[0]), now = 0;
	cleanup(freep) int *before = workload_alloc(size * sizeof(int));
	cleanup(freep) int *after = workload_alloc(size * sizeof(int));

	for (size_t i = 0; i < (size_t)columns * (size_t)rows; i++)
		wall[i] = (int)random_below(&plan->random, 10);
	for (int x = 0; x < columns; x++)
		before[x] = cost[x] = (int)random_below(&plan->random, 10);
	for (int row = 0; row < rows; row++) {
		path_row(wall + (size_t)row * (size_t)columns, before, after, columns);
		memcpy(before, after, size * sizeof(int));
	}
	for (int row = 0; row < rows; now = !now) {
		int count = min_int(PATH_ROWS, rows - row);

		struct shape shape = shape_line(size, (unsigned)(PATH_THREADS - 2 * count));

		shape.block[0] = PATH_THREADS;
		plan_launch(plan, "path_find", shape, ARGUMENT(walls->device),
			    ARGUMENT(costs[now]->device), ARGUMENT(costs[!now]->device),
			    ARGUMENT(columns), ARGUMENT(row), ARGUMENT(count));
		row += count;
	}
	memcpy(buffer_want(costs[now]), before, size * sizeof(int));
}

struct stencil {
	const float *in;
	float *out;
	size_t n;
	float centre, straight, diagonal;
};

static void stencil_row(void *context, size_t row)
{
	const struct stencil *s = context;
	const float *here = s->in + row * s->n;
	float *out = s->out + row * s->n;

	memcpy(out, here, s->n * sizeof(float));
	if (row == 0 || row == s->n - 1)
		return;
	const float *above = here - s->n, *below = here + s->n;
	for (size_t x = 1; x + 1 < s->n; x++)
		out[x] = s->centre * here[x] +
			 s->straight * (above[x] + here[x - 1] + here[x + 1] + below[x]) +
			 s->diagonal * (above[x - 1] + above[x + 1] + below[x - 1] + below[x + 1]);
}

/* A plane of floats between 0 and 1. */
static struct buffer *plane(struct plan *plan, uint32_t n)
{
	struct buffer *buffer = plan_buffer(plan, (size_t)n * n * sizeof(float));
	float *values = buffer_start(buffer);

	random_floats(&plan->random, values, (size_t)n * n, 0, 1);
	return buffer;
}

void plan_stencil(struct plan *plan, uint32_t n)
{
	const unsigned steps = 6;
	struct buffer *buffers[2] = {plane(plan, n),
				     plan_buffer(plan, (size_t)n * n * sizeof(float))};
	cleanup(freep) float *before = workload_alloc(buffers[0]->bytes);
	float *after = buffer_want(buffers[steps % 2]);
	struct stencil s = {NULL, NULL, n, 0.25f, 0.15f, 0.0375f};
	int side = (int)n;

	memcpy(before, buffers[0]->input, buffers[0]->bytes);
	for (unsigned step = 0; step < steps; step++) {
		s.in = before;
		s.out = after;
		in_parallel(n, stencil_row, &s);
		if (step + 1 < steps)
			memcpy(before, after, buffers[0]->bytes);
		plan_launch(plan, "stencil_9", shape_plane(n, n, STENCIL_X, STENCIL_Y),
			    ARGUMENT(buffers[step % 2]->device),
			    ARGUMENT(buffers[(step + 1) % 2]->device), ARGUMENT(side),
			    ARGUMENT(side), ARGUMENT(s.centre), ARGUMENT(s.straight),
			    ARGUMENT(s.diagonal));
	}
}

struct convolution {
	const float *in, *filter;
	float *out;
	int n, step_x, step_y;
};

static void convolve_row(void *context, size_t row)
{
	const struct convolution *c = context;

	for (int x = 0; x < c->n; x++) {
		float sum = 0;

		for (int k = -FILTER_RADIUS; k <= FILTER_RADIUS; k++) {
			int from_x = x + k * c->step_x, from_y = (int)row + k * c->step_y;
			bool inside = from_x >= 0 && from_x < c->n && from_y >= 0 && from_y < c->n;

			sum += c->filter[k + FILTER_RADIUS] *
			       (inside ? c->in[(size_t)from_y * (size_t)c->n + (size_t)from_x] : 0);
		}
		c->out[row * (size_t)c->n + (size_t)x] = sum;
	}
}

void plan_convolution(struct plan *plan, uint32_t n)
{
	struct buffer *in = plane(plan, n), *rows = plan_buffer(plan, in->bytes);
	struct buffer *out = plan_buffer(plan, in->bytes);
	float filter[FILTER_TAPS];
	struct convolution across = {in->input, filter, buffer_want(rows), (int)n, 1, 0};
	struct convolution down = {across.out, filter, buffer_want(out), (int)n, 0, 1};
	int side = (int)n;

	for (unsigned k = 0; k < FILTER_TAPS; k++)
		filter[k] = random_float(&plan->random, -1, 1);
	plan_constant(plan, "filter", filter, sizeof(filter));
	in_parallel(n, convolve_row, &across);
	in_parallel(n, convolve_row, &down);
	struct shape shape = shape_plane(n, n, ROW_X * STEPS, ROW_Y);
	shape.block[0] = ROW_X;
	plan_launch(plan, "convolve_rows", shape, ARGUMENT(in->device), ARGUMENT(rows->device),
		    ARGUMENT(side), ARGUMENT(side));
	shape = shape_plane(n, n, COLUMN_X, COLUMN_Y * STEPS);
	shape.block[1] = COLUMN_Y;
	plan_launch(plan, "convolve_columns", shape, ARGUMENT(rows->device), ARGUMENT(out->device),
		    ARGUMENT(side), ARGUMENT(side));
}
