/* Pairs of points on a sphere by their angle (Parboil's TPACF): parts of a block's work. */
#pragma once

#include "count.h"

/* The number of pairs of a point of @a and one of @b by the angle between them: bin k has cosines up
 * to limits[k], which fall, and above limits[k + 1]. @same: @a is @b, and each pair counts once. A
 * block compares ANGLE_THREADS points with ANGLE_SEGMENT others. */
struct angle_work {
	const float4 *a, *b;
	unsigned na, nb;
	const float *limits;
	unsigned long long *counts;
	int same;
};

/* Of a block, in shared memory. It is one variable, for the inner loop then keeps one address. */
struct angle_block {
	unsigned bins[ANGLE_BINS]; /* the counts that are not in angle_work::counts yet */
	float4 others[ANGLE_THREADS];
};

static __device__ angle_block &angle_here()
{
	__shared__ angle_block here;

	return here;
}

static __device__ void angle_begin()
{
	if (threadIdx.x < ANGLE_BINS)
		angle_here().bins[threadIdx.x] = 0;
}

static __device__ void angle_end(const angle_work &work)
{
	__syncthreads();
	if (threadIdx.x < ANGLE_BINS)
		atomicAdd(&work.counts[threadIdx.x], (unsigned long long)angle_here().bins[threadIdx.x]);
}

static __device__ float4 angle_point(const angle_work &work, unsigned block)
{
	unsigned i = block * ANGLE_THREADS + threadIdx.x;

	return i < work.na ? work.a[i] : make_float4(0, 0, 0, 0);
}

/* Compares points @block with @Count others from @begin: ANGLE_THREADS points each. */
template <unsigned Count>
static __device__ void angle_tile(const angle_work &work, unsigned block, unsigned begin, float4 mine)
{
	float4 *others = angle_here().others;
	unsigned i = block * ANGLE_THREADS + threadIdx.x;

	__syncthreads();
	if (threadIdx.x < Count && begin + threadIdx.x < work.nb)
		others[threadIdx.x] = work.b[begin + threadIdx.x];
	__syncthreads();
	const unsigned count = i < work.na ? min(Count, work.nb - begin) : 0;
	for (unsigned j = 0; j < count; j++) {
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
		atomicAdd(&angle_here().bins[low], 1);
	}
}

/* Compares points @block with @Count others from @begin, if there are pairs to be counted. */
template <unsigned Count>
static __device__ __forceinline__ void angle_piece(const angle_work &work, unsigned block, unsigned begin)
{
	unsigned first = work.same ? block * ANGLE_THREADS : 0;

	if (begin < work.nb && begin + Count > first)
		angle_tile<Count>(work, block, begin, angle_point(work, block));
}

/* Compares points @block with segment @segment of the others. */
static __device__ __forceinline__ void angle_segment(const angle_work &work, unsigned block, unsigned segment)
{
	for (unsigned at = 0; at < ANGLE_SEGMENT; at += ANGLE_THREADS)
		angle_piece<ANGLE_THREADS>(work, block, segment * ANGLE_SEGMENT + at);
}
