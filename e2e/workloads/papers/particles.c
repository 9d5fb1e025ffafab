/* Lennard-Jones forces, forces between boxes, particle filter: the host's side. */
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "arithmetic.h"
#include "papers.h"
#include "particles.h"

struct float4 {
	float x, y, z, w;
};

struct float2 {
	float x, y;
};

struct atoms {
	const struct float4 *position;
	const uint32_t *list;
	struct float4 *force;
	size_t n;
	float cut_square;
};

static void md_atom(void *context, size_t i)
{
	const struct atoms *a = context;
	struct float4 here = a->position[i], sum = {0};

	for (unsigned k = 0; k < MD_NEIGHBOURS; k++) {
		struct float4 there = a->position[a->list[k * a->n + i]];
		float x = here.x - there.x, y = here.y - there.y, z = here.z - there.z;
		float square = x * x + y * y + z * z;

		if (!(square < a->cut_square && square > 0))
			continue;
		float r2 = 1.0f / square, r6 = r2 * r2 * r2;
		float f = r2 * r6 * (48.0f * r6 - 24.0f);
		sum.x += x * f;
		sum.y += y * f;
		sum.z += z * f;
		sum.w += 4.0f * r6 * (r6 - 1.0f);
	}
	a->force[i] = sum;
}

/* Point @i of a lattice with @side points along an edge. */
struct point {
	uint32_t x, y, z;
};

static struct point lattice(uint32_t i, uint32_t side)
{
	return (struct point){i % side, i / side % side, i / side / side};
}

/* @at moved by up to 2, within the lattice. */
static uint32_t nearby(struct random *random, uint32_t at, uint32_t side)
{
	uint32_t moved = at + random_below(random, 5);

	return moved < 2 ? 0 : moved - 2 < side ? moved - 2 : side - 1;
}

/* Atoms near the points of a cube's lattice; neighbours are others at most 2 points away, in a
 * random choice. */
static void fill_atoms(struct random *random, struct float4 *position, uint32_t *list,
		       uint32_t side)
{
	uint32_t n = side * side * side;

	for (uint32_t i = 0; i < n; i++) {
		struct point at = lattice(i, side);

		position[i].x = (float)at.x + random_float(random, -0.1f, 0.1f);
		position[i].y = (float)at.y + random_float(random, -0.1f, 0.1f);
		position[i].z = (float)at.z + random_float(random, -0.1f, 0.1f);
		position[i].w = 0;
		for (size_t k = 0; k < MD_NEIGHBOURS; k++) {
			uint32_t x = nearby(random, at.x, side), y = nearby(random, at.y, side);

			list[k * n + i] = (nearby(random, at.z, side) * side + y) * side + x;
		}
	}
}

void plan_md(struct plan *plan, uint32_t side)
{
	uint32_t n = side * side * side;
	struct buffer *positions = plan_buffer(plan, n * sizeof(struct float4));
	struct buffer *lists = plan_buffer(plan, (size_t)n * MD_NEIGHBOURS * sizeof(uint32_t));
	struct buffer *forces = plan_buffer(plan, n * sizeof(struct float4));
	struct atoms atoms = {buffer_input(positions), buffer_input(lists), buffer_want(forces), n,
			      5};

	fill_atoms(&plan->random, positions->input, lists->input, side);
	in_parallel(n, md_atom, &atoms);
	plan_launch(plan, "md_forces", shape_line(n, 256), ARGUMENT(positions->device),
		    ARGUMENT(lists->device), ARGUMENT(forces->device), ARGUMENT(n),
		    ARGUMENT(atoms.cut_square));
}

struct boxes {
	const struct float4 *particles;
	struct float4 *force;
	int side;
	float alpha;
};

/* The part of @sum that comes from the particles of @box. */
static void box_pair(const struct boxes *b, struct float4 mine, struct float4 *sum, int box)
{
	const struct float4 *others = b->particles + (size_t)box * BOX_PARTICLES;

	for (int j = 0; j < BOX_PARTICLES; j++) {
		float dx = mine.x - others[j].x, dy = mine.y - others[j].y,
		      dz = mine.z - others[j].z;
		float square = dx * dx + dy * dy + dz * dz;
		float v = others[j].w * arith_exp(-b->alpha * square), f = 2 * b->alpha * v;

		sum->x += f * dx;
		sum->y += f * dy;
		sum->z += f * dz;
		sum->w += v;
	}
}

static void box_particle(void *context, size_t i)
{
	const struct boxes *b = context;
	int box = (int)(i / BOX_PARTICLES), n = b->side;
	struct float4 sum = {0};

	for (int k = 0; k < BOX_AROUND; k++) {
		int x = box % n + k % 3 - 1, y = box / n % n + k / 3 % 3 - 1,
		    z = box / n / n + k / 9 - 1;

		if (x >= 0 && y >= 0 && z >= 0 && x < n && y < n && z < n)
			box_pair(b, b->particles[i], &sum, (z * n + y) * n + x);
	}
	b->force[i] = sum;
}

void plan_boxes(struct plan *plan, uint32_t side)
{
	uint32_t n = side * side * side * BOX_PARTICLES;
	struct buffer *particles = plan_buffer(plan, n * sizeof(struct float4));
	struct buffer *forces = plan_buffer(plan, n * sizeof(struct float4));
	struct float4 *particle = buffer_input(particles);
	struct boxes boxes = {particle, buffer_want(forces), (int)side, 0.5f};

	for (uint32_t i = 0; i < n; i++) {
		struct point at = lattice(i / BOX_PARTICLES, side);

		particle[i].x = (float)at.x + random_float(&plan->random, 0, 1);
		particle[i].y = (float)at.y + random_float(&plan->random, 0, 1);
		particle[i].z = (float)at.z + random_float(&plan->random, 0, 1);
		particle[i].w = random_float(&plan->random, -1, 1);
	}
	in_parallel(n, box_particle, &boxes);
	plan_launch(plan, "box_forces",
		    ((struct shape){{side, side, side}, {BOX_THREADS, 1, 1}, 0}),
		    ARGUMENT(particles->device), ARGUMENT(forces->device), ARGUMENT(boxes.alpha));
}

#define FILTER_SIDE   64
#define FILTER_FRAMES 3

/* A bright square that moves on noise. */
static void draw_frames(struct random *random, uint8_t *frames)
{
	for (int frame = 0; frame < FILTER_FRAMES; frame++)
		for (int i = 0; i < FILTER_SIDE * FILTER_SIDE; i++) {
			int x = i % FILTER_SIDE - 30 - frame, y = i / FILTER_SIDE - 20 - 2 * frame;
			bool object = x >= -4 && x <= 4 && y >= -4 && y <= 4;

			*frames++ = (uint8_t)((object ? 200 : 0) + (int)random_below(random, 56));
		}
}

/* One frame on the CPU: moves, weighs and resamples @particles. */
static void filter_frame(struct float2 *particles, uint32_t *seeds, const uint8_t *image,
			 uint32_t n)
{
	cleanup(freep) struct float2 *moved = workload_alloc(n * sizeof(*moved));
	cleanup(freep) uint64_t *sums = workload_alloc(n * sizeof(*sums));
	uint64_t sum = 0;

	memcpy(moved, particles, n * sizeof(*moved));
	for (uint32_t i = 0; i < n; i++) {
		seeds[i] = arith_filter_move(&moved[i].x, &moved[i].y, seeds[i], FILTER_SIDE);
		sum += arith_filter_weight(image, moved[i].x, moved[i].y, FILTER_SIDE);
		sums[i] = sum;
	}
	for (uint32_t i = 0, from = 0; i < n; i++) {
		while (from < n - 1 && sums[from] <= sum / n * i)
			from++;
		particles[i] = moved[from];
	}
}

static void launch_frame(struct plan *plan, struct buffer *const particles[2], struct buffer *seeds,
			 struct buffer *images, uint32_t n, int frame)
{
	struct buffer *weights = plan_buffer(plan, n * sizeof(uint32_t));
	struct buffer *sums = plan_buffer(plan, n * sizeof(uint64_t));
	struct buffer *now = particles[frame % 2], *next = particles[!(frame % 2)];
	int side = FILTER_SIDE;

	plan_launch(plan, "filter_weigh", shape_line(n, 128), ARGUMENT(now->device),
		    ARGUMENT(seeds->device), ARGUMENT(weights->device), ARGUMENT(images->device),
		    ARGUMENT(n), ARGUMENT(side), ARGUMENT(frame));
	plan_launch(plan, "filter_sum", shape_line(1, 512), ARGUMENT(weights->device),
		    ARGUMENT(sums->device), ARGUMENT(n));
	plan_launch(plan, "filter_resample", shape_line(n, 128), ARGUMENT(now->device),
		    ARGUMENT(sums->device), ARGUMENT(next->device), ARGUMENT(n));
}

void plan_particle_filter(struct plan *plan, uint32_t n)
{
	struct buffer *images = plan_buffer(plan, FILTER_FRAMES * FILTER_SIDE * FILTER_SIDE);
	struct buffer *particles[2] = {plan_buffer(plan, n * sizeof(struct float2)),
				       plan_buffer(plan, n * sizeof(struct float2))};
	struct buffer *seeds = plan_buffer(plan, n * sizeof(uint32_t));
	struct buffer *estimate = plan_buffer(plan, 2 * sizeof(uint64_t));
	struct float2 *start = buffer_start(particles[0]);
	struct float2 *end = buffer_want(particles[FILTER_FRAMES % 2]);
	uint32_t *seed = buffer_start(seeds), *want_seed = buffer_want(seeds);
	uint64_t *want;

	draw_frames(&plan->random, buffer_input(images));
	buffer_zeros(estimate);
	want = buffer_want(estimate);
	for (uint32_t i = 0; i < n; i++) {
		end[i] = start[i] =
			(struct float2){random_float(&plan->random, 2, FILTER_SIDE - 3),
					random_float(&plan->random, 2, FILTER_SIDE - 3)};
		want_seed[i] = seed[i] = (uint32_t)random_next(&plan->random);
	}
	for (int frame = 0; frame < FILTER_FRAMES; frame++) {
		launch_frame(plan, particles, seeds, images, n, frame);
		filter_frame(end, want_seed,
			     (const uint8_t *)images->input + frame * FILTER_SIDE * FILTER_SIDE, n);
	}
	want[0] = want[1] = 0;
	for (uint32_t i = 0; i < n; i++) {
		want[0] += (uint64_t)(end[i].x * 256);
		want[1] += (uint64_t)(end[i].y * 256);
	}
	plan_launch(plan, "filter_estimate", shape_line(n, 256),
		    ARGUMENT(particles[FILTER_FRAMES % 2]->device), ARGUMENT(estimate->device),
		    ARGUMENT(n));
}
