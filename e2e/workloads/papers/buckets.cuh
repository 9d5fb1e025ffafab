/* Hybrid sort (Rodinia): buckets, then a merge sort of each. The work of one block of each kernel. */
#pragma once

#include "sort.h"

/* Counts the keys of each bucket; 0 <= key < 1. slots[i]: key i's place in its bucket. */
static __device__ void bucket_count_of(unsigned block, const float *keys, unsigned *counts, unsigned *slots,
				       unsigned n, unsigned buckets)
{
	unsigned i = block * blockDim.x + threadIdx.x;

	if (i < n)
		slots[i] = atomicAdd(&counts[min((unsigned)(keys[i] * buckets), buckets - 1)], 1);
}

static __device__ void bucket_scatter_of(unsigned block, const float *keys, const unsigned *starts,
					 const unsigned *slots, float *out, unsigned n, unsigned buckets)
{
	unsigned i = block * blockDim.x + threadIdx.x;

	if (i < n)
		out[starts[min((unsigned)(keys[i] * buckets), buckets - 1)] + slots[i]] = keys[i];
}

/* How many of the sorted @n keys come before @key; of equal ones all if @also. */
static __device__ unsigned rank_of(const float *keys, unsigned n, float key, bool also)
{
	unsigned low = 0;

	while (low < n) {
		unsigned middle = (low + n) / 2;

		if (keys[middle] < key || (also && keys[middle] == key))
			low = middle + 1;
		else
			n = middle;
	}
	return low;
}

/* Sorts a bucket, in @memory for 2 * BUCKET_MOST keys: runs are merged in pairs, each key by its rank
 * in the other run. */
static __device__ void bucket_merge_of(unsigned bucket, float *memory, float *keys, const unsigned *starts,
				       const unsigned *counts)
{
	float *now = memory, *next = memory + BUCKET_MOST;
	unsigned n = counts[bucket];
	float *mine = keys + starts[bucket];

	if (n < 2)
		return;
	for (unsigned i = threadIdx.x; i < n; i += BUCKET_THREADS)
		now[i] = mine[i];
	__syncthreads();
	for (unsigned width = 1; width < n; width *= 2) {
		for (unsigned i = threadIdx.x; i < n; i += BUCKET_THREADS) {
			unsigned pair = i / (2 * width) * 2 * width, middle = min(pair + width, n);
			unsigned end = min(pair + 2 * width, n);
			bool left = i < middle;
			unsigned rank = left ? rank_of(now + middle, end - middle, now[i], false)
					     : rank_of(now + pair, width, now[i], true);

			next[left ? i + rank : i - width + rank] = now[i];
		}
		__syncthreads();
		float *done = now;
		now = next;
		next = done;
	}
	for (unsigned i = threadIdx.x; i < n; i += BUCKET_THREADS)
		mine[i] = now[i];
}
