/* Pairs of points on a sphere by their angle (Parboil's TPACF): parts of a block's work. */
#pragma once

#include "count.h"

/* The number of pairs of a point of @a and one of @b by the angle between them: bin k has cosines up
 * to limits[k], which fall, and above limits[k + 1]. @same: @a is @b, and each pair counts once. A
 * block compares ANGLE_THREADS points with all others. */
struct angle_work {
	const float4 *a, *b;
	unsigned na, nb;
	const float *limits;
	unsigned long long *counts;
	int same;
};

/* The counts of a block that are not in angle_work::counts yet. */
static __device__ unsigned *angle_bins()
{
	__shared__ unsigned bins[ANGLE_BINS];

	return bins;
}

static __device__ void angle_begin()
{
	if (threadIdx.x < ANGLE_BINS)
		angle_bins()[threadIdx.x] = 0;
}

static __device__ void angle_end(const angle_work &work)
{
	__syncthreads();
	if (threadIdx.x < ANGLE_BINS)
		atomicAdd(&work.counts[threadIdx.x], (unsigned long long)angle_bins()[threadIdx.x]);
}

/* The first of the other points of block @block. */
static __device__ unsigned angle_first(const angle_work &work, unsigned block)
{
	return work.same ? block * ANGLE_THREADS : 0;
}

/* Compares the points of block @block with ANGLE_THREADS others from @begin. */
static __device__ void angle_tile(const angle_work &work, unsigned block, unsigned begin, float4 mine)
{
	__shared__ float4 others[ANGLE_THREADS];
	unsigned i = block * ANGLE_THREADS + threadIdx.x;

	__syncthreads();
	if (begin + threadIdx.x < work.nb)
		others[threadIdx.x] = work.b[begin + threadIdx.x];
	__syncthreads();
	for (unsigned j = 0; j < ANGLE_THREADS && begin + j < work.nb && i < work.na; j++) {
		float cosine = mine.x * others[j].x + mine.y * others[j].y + mine.z * others[j].z;
		unsigned low = 0, high = ANGLE_BINS;

		if (work.same && begin + j <= i)
			continue;
		while (high - low > 1) {
			unsigned middle = (low + high) / 2;

			if (cosine <= work.limits[middle])
				low = middle;
			else
				high = middle;
		}
		atomicAdd(&angle_bins()[low], 1);
	}
}

static __device__ float4 angle_point(const angle_work &work, unsigned block)
{
	unsigned i = block * ANGLE_THREADS + threadIdx.x;

	return i < work.na ? work.a[i] : make_float4(0, 0, 0, 0);
}
