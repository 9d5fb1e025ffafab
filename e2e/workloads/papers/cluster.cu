/* Clusters of points: k-means (Rodinia), streaming clusters (Parboil). */
#include "cluster.h"

/* Points with their features behind each other become features with their points. */
extern "C" __global__ void means_invert(const float *in, float *out, unsigned points)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= points)
		return;
	for (unsigned feature = 0; feature < FEATURES; feature++)
		out[(size_t)feature * points + i] = in[(size_t)i * FEATURES + feature];
}

/* The nearest centre of each point. */
extern "C" __global__ void means_assign(const float *features, const float *centres, unsigned *nearest,
					unsigned points)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x, best = 0;
	float least = 3.4e38f;

	if (i >= points)
		return;
	for (unsigned k = 0; k < CENTRES; k++) {
		float distance = 0;

		for (unsigned feature = 0; feature < FEATURES; feature++) {
			float apart = features[(size_t)feature * points + i] - centres[k * FEATURES + feature];

			distance += apart * apart;
		}
		if (distance < least) {
			least = distance;
			best = k;
		}
	}
	nearest[i] = best;
}

/* What a new centre, the point @candidate, is worth to each point: bit @bit of @moves says that it
 * moves there, and a row of @gains has what is gained: last if it moves, else for its old centre. */
extern "C" __global__ void cluster_cost(const float *features, const float *weights, const float *costs,
					const unsigned *centre_of, float *gains, unsigned *moves, unsigned points,
					unsigned candidate, unsigned bit)
{
	__shared__ float at[FEATURES];
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	float distance = 0;

	if (threadIdx.x < FEATURES)
		at[threadIdx.x] = features[(size_t)threadIdx.x * points + candidate];
	__syncthreads();
	if (i >= points)
		return;
	for (unsigned feature = 0; feature < FEATURES; feature++) {
		float apart = features[(size_t)feature * points + i] - at[feature];

		distance += apart * apart;
	}
	float cost = distance * weights[i], *row = gains + (size_t)i * (CENTRES + 1);

	if (cost < costs[i]) {
		moves[i] |= 1u << bit;
		row[CENTRES] += costs[i] - cost;
	} else {
		row[centre_of[i]] += cost - costs[i];
	}
}
