/* k-means, streaming clusters: the host's side. */
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "cluster.h"
#include "papers.h"

#define CANDIDATES 4u

struct points {
	uint32_t n;
	float *by_point, *by_feature;
	float centres[CENTRES * FEATURES], *costs, *weights;
	uint32_t *centre_of;
	float *gains;
	uint32_t *moves, candidates[CANDIDATES];
};

static float distance(const float *a, const float *b)
{
	float sum = 0;

	for (unsigned feature = 0; feature < FEATURES; feature++) {
		float apart = a[feature] - b[feature];

		sum += apart * apart;
	}
	return sum;
}

static void invert(void *context, size_t i)
{
	const struct points *p = context;

	for (size_t feature = 0; feature < FEATURES; feature++)
		p->by_feature[feature * p->n + i] = p->by_point[i * FEATURES + feature];
}

static void assign(void *context, size_t i)
{
	const struct points *p = context;
	float least = 3.4e38f;

	for (unsigned k = 0; k < CENTRES; k++) {
		float d = distance(&p->by_point[i * FEATURES], &p->centres[k * FEATURES]);

		if (d < least) {
			least = d;
			p->centre_of[i] = k;
		}
	}
}

void plan_means(struct plan *plan, uint32_t size)
{
	size_t bytes = (size_t)size * FEATURES * sizeof(float);
	struct buffer *in = plan_buffer(plan, bytes), *inverted = plan_buffer(plan, bytes);
	struct buffer *nearest = plan_buffer(plan, size * sizeof(uint32_t));
	struct buffer *centres = plan_buffer(plan, CENTRES * FEATURES * sizeof(float));
	struct points p = {size, buffer_input(in), buffer_want(inverted),
			   .centre_of = buffer_want(nearest)};
	float *centre = buffer_input(centres);

	random_floats(&plan->random, p.by_point, (size_t)size * FEATURES, 0, 1);
	random_floats(&plan->random, centre, CENTRES * FEATURES, 0, 1);
	for (unsigned i = 0; i < CENTRES * FEATURES; i++)
		p.centres[i] = centre[i];
	in_parallel(size, invert, &p);
	in_parallel(size, assign, &p);
	plan_launch(plan, "means_invert", shape_line(size, CLUSTER_THREADS), ARGUMENT(in->device),
		    ARGUMENT(inverted->device), ARGUMENT(size));
	plan_launch(plan, "means_assign", shape_line(size, CLUSTER_THREADS),
		    ARGUMENT(inverted->device), ARGUMENT(centres->device),
		    ARGUMENT(nearest->device), ARGUMENT(size));
}

/* All candidates, for one point. */
static void gain(void *context, size_t i)
{
	const struct points *p = context;
	float *row = &p->gains[i * (CENTRES + 1)];

	for (unsigned bit = 0; bit < CANDIDATES; bit++) {
		const float *candidate = &p->by_point[(size_t)p->candidates[bit] * FEATURES];
		float cost = distance(&p->by_point[i * FEATURES], candidate) * p->weights[i];

		if (cost < p->costs[i]) {
			p->moves[i] |= 1u << bit;
			row[CENTRES] += p->costs[i] - cost;
		} else {
			row[p->centre_of[i]] += cost - p->costs[i];
		}
	}
}

void plan_stream_cluster(struct plan *plan, uint32_t size)
{
	struct buffer *features = plan_buffer(plan, (size_t)size * FEATURES * sizeof(float));
	struct buffer *weights = plan_buffer(plan, size * sizeof(float));
	struct buffer *costs = plan_buffer(plan, size * sizeof(float));
	struct buffer *centre_of = plan_buffer(plan, size * sizeof(uint32_t));
	struct buffer *gains = plan_buffer(plan, (size_t)size * (CENTRES + 1) * sizeof(float));
	struct buffer *moves = plan_buffer(plan, size * sizeof(uint32_t));
	cleanup(freep) float *by_point = workload_alloc(features->bytes);
	struct points p = {size,
			   by_point,
			   buffer_input(features),
			   .costs = buffer_input(costs),
			   .weights = buffer_input(weights),
			   .centre_of = buffer_input(centre_of)};

	buffer_zeros(gains);
	buffer_zeros(moves);
	p.gains = memset(buffer_want(gains), 0, gains->bytes);
	p.moves = memset(buffer_want(moves), 0, moves->bytes);
	random_floats(&plan->random, by_point, (size_t)size * FEATURES, 0, 1);
	random_floats(&plan->random, p.weights, size, 0.5, 2);
	random_floats(&plan->random, p.costs, size, 4, 10);
	for (uint32_t i = 0; i < size; i++)
		p.centre_of[i] = random_below(&plan->random, CENTRES);
	for (unsigned i = 0; i < CANDIDATES; i++)
		p.candidates[i] = random_below(&plan->random, size);
	in_parallel(size, invert, &p);
	in_parallel(size, gain, &p);
	for (unsigned bit = 0; bit < CANDIDATES; bit++)
		plan_launch(plan, "cluster_cost", shape_line(size, CLUSTER_THREADS),
			    ARGUMENT(features->device), ARGUMENT(weights->device),
			    ARGUMENT(costs->device), ARGUMENT(centre_of->device),
			    ARGUMENT(gains->device), ARGUMENT(moves->device), ARGUMENT(size),
			    ARGUMENT(p.candidates[bit]), ARGUMENT(bit));
}
