/* Speckles in pictures, heat in chips: the host's side. */
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "diffusion.h"
#include "papers.h"

#define THREADS 256
#define STEPS   2 /* of removing speckles */

struct plane {
	const float *in, *more; /* coefficients, or power */
	float *out;
	int side;
	float noise;
};

static struct slopes slopes_at(const struct plane *p, int x, int y)
{
	const float *here = &p->in[y * p->side + x];

	return (struct slopes){
		(y > 0 ? here[-p->side] : here[0]) - here[0],
		(y < p->side - 1 ? here[p->side] : here[0]) - here[0],
		(x > 0 ? here[-1] : here[0]) - here[0],
		(x < p->side - 1 ? here[1] : here[0]) - here[0],
	};
}

static void coefficients_row(void *context, size_t row)
{
	const struct plane *p = context;

	for (int x = 0; x < p->side; x++) {
		int i = (int)row * p->side + x;

		p->out[i] = diffusion_coefficient(p->in[i], slopes_at(p, x, (int)row), p->noise);
	}
}

static void update_row(void *context, size_t row)
{
	const struct plane *p = context;
	int south = (int)row < p->side - 1 ? p->side : 0;

	for (int x = 0; x < p->side; x++) {
		int i = (int)row * p->side + x, east = x < p->side - 1 ? 1 : 0;

		p->out[i] = diffusion_step(p->in[i], slopes_at(p, x, (int)row), p->more[i],
					   p->more[i + south], p->more[i + east]);
	}
}

static float noise_of(const float *picture, size_t n)
{
	uint64_t sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		sum += (uint64_t)(picture[i] * DIFFUSION_SCALE);
		squares += (uint64_t)(picture[i] * picture[i] * DIFFUSION_SCALE);
	}
	return diffusion_noise(sum, squares, (unsigned)n);
}

/* A step of @picture into @out, on the CPU. */
static void remove_speckles(const float *picture, float *coefficients, float *out, int side)
{
	struct plane p = {picture, NULL, coefficients, side,
			  noise_of(picture, (size_t)side * (size_t)side)};

	in_parallel((size_t)side, coefficients_row, &p);
	p.more = coefficients;
	p.out = out;
	in_parallel((size_t)side, update_row, &p);
}

/* The launches that extract a picture, take steps and compress it. @tiles: coefficients are
 * computed with tiles in shared memory. */
static void plan_speckles(struct plan *plan, uint32_t n, bool tiles)
{
	size_t count = (size_t)n * n, bytes = count * sizeof(float);
	struct buffer *in = plan_buffer(plan, bytes), *out = plan_buffer(plan, bytes);
	struct buffer *pictures[2] = {plan_buffer(plan, bytes), plan_buffer(plan, bytes)};
	struct buffer *coefficients = plan_buffer(plan, bytes);
	struct buffer *sums = plan_buffer(plan, STEPS * 2 * sizeof(uint64_t));
	cleanup(freep) float *now = workload_alloc(bytes), *next = workload_alloc(bytes);
	float *values = buffer_input(in), *want = buffer_want(out);
	float *passes = buffer_want(coefficients);
	struct shape line = shape_line(count, THREADS);
	uint32_t all = (uint32_t)count;

	buffer_zeros(sums);
	random_floats(&plan->random, values, count, 0, 255);
	for (size_t i = 0; i < count; i++)
		now[i] = arith_exp(values[i] / 255);
	plan_launch(plan, "speckle_extract", line, ARGUMENT(in->device),
		    ARGUMENT(pictures[0]->device), ARGUMENT(all));
	for (unsigned step = 0; step < STEPS; step++) {
		struct buffer *from = pictures[step % 2], *to = pictures[(step + 1) % 2];
		CUdeviceptr sum = sums->device + 2 * sizeof(uint64_t) * step;

		remove_speckles(now, passes, next, (int)n);
		memcpy(now, next, bytes);
		plan_launch(plan, "speckle_sums", line, ARGUMENT(from->device), ARGUMENT(sum),
			    ARGUMENT(all));
		plan_launch(plan, tiles ? "speckle_tile" : "speckle_coefficients",
			    tiles ? shape_plane(n, n, DIFFUSION_SIDE, DIFFUSION_SIDE) : line,
			    ARGUMENT(from->device), ARGUMENT(sum), ARGUMENT(coefficients->device),
			    ARGUMENT(n));
		plan_launch(plan, "speckle_update", line, ARGUMENT(from->device),
			    ARGUMENT(coefficients->device), ARGUMENT(to->device), ARGUMENT(n));
	}
	for (size_t i = 0; i < count; i++)
		want[i] = arith_log(now[i]) * 255;
	plan_launch(plan, "speckle_compress", line, ARGUMENT(pictures[STEPS % 2]->device),
		    ARGUMENT(out->device), ARGUMENT(all));
}

void plan_speckles_plain(struct plan *plan, uint32_t n)
{
	plan_speckles(plan, n, false);
}

void plan_speckles_tiled(struct plan *plan, uint32_t n)
{
	plan_speckles(plan, n, true);
}

static void heat_row(void *context, size_t row)
{
	const struct plane *p = context;
	size_t side = (size_t)p->side;
	const float *here = p->in + row * side, *north = row > 0 ? here - side : here;
	const float *south = row < side - 1 ? here + side : here;

	for (size_t x = 0; x < side; x++)
		p->out[row * side + x] =
			heat_step(here[x], north[x], south[x], here[x > 0 ? x - 1 : x],
				  here[x < side - 1 ? x + 1 : x], p->more[row * side + x]);
}

void plan_heat(struct plan *plan, uint32_t n)
{
	size_t bytes = (size_t)n * n * sizeof(float);
	int steps[] = {HEAT_STEPS, HEAT_STEPS - 1}, side = (int)n;
	struct buffer *power = plan_buffer(plan, bytes);
	struct buffer *planes[2] = {plan_buffer(plan, bytes), plan_buffer(plan, bytes)};
	cleanup(freep) float *now = workload_alloc(bytes), *next = workload_alloc(bytes);
	float *warms = buffer_input(power), *start = buffer_start(planes[0]);

	random_floats(&plan->random, warms, (size_t)n * n, 0, 1);
	random_floats(&plan->random, start, (size_t)n * n, 70, 90);
	memcpy(now, start, bytes);
	for (unsigned launch = 0; launch < countof(steps); launch++) {
		unsigned wide = (unsigned)(DIFFUSION_SIDE - 2 * steps[launch]);
		struct shape shape = shape_plane(n, n, wide, wide);

		for (int step = 0; step < steps[launch]; step++) {
			in_parallel(n, heat_row, &(struct plane){now, warms, next, side, 0});
			memcpy(now, next, bytes);
		}
		shape.block[0] = shape.block[1] = DIFFUSION_SIDE;
		plan_launch(plan, "heat", shape, ARGUMENT(power->device),
			    ARGUMENT(planes[launch % 2]->device),
			    ARGUMENT(planes[(launch + 1) % 2]->device), ARGUMENT(side),
			    ARGUMENT(steps[launch]));
	}
	memcpy(buffer_want(planes[countof(steps) % 2]), now, bytes);
}
