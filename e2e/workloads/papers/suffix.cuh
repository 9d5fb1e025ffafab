/* Longest matches of queries in a text by its suffix array (as MUMmerGPU, with an array for a
 * tree): parts of a block's work. */
#pragma once

#include "suffix.h"

/* @array: the @n places of @text in the order of the suffixes that begin there. @queries: @count of
 * SUFFIX_QUERY bases. results[p * count + q]: the longest match of query q from its base p on. */
struct suffix_work {
	const unsigned char *text;
	const unsigned *array;
	unsigned n;
	const unsigned char *queries;
	unsigned *results;
	unsigned count;
};

/* How many bases are equal in @text and @query, of at most @most. Moves pointers: with an index an event
 * loop reads the kernel's parameters again in each step. */
static __device__ unsigned suffix_common(const unsigned char *text, const unsigned char *query, unsigned most)
{
	unsigned length = 0;

	for (; length < most && *text == *query; length++) {
		text++;
		query++;
	}
	return length;
}

/* Halves the part of the array, from low to high, in which the @rest bases from @query on would be. */
static __device__ __forceinline__ void suffix_halve(const suffix_work &work, const unsigned char *query, unsigned rest,
						    unsigned &low, unsigned &high)
{
	unsigned middle = (low + high) / 2, place = work.array[middle], most = min(rest, work.n - place);
	const unsigned char *suffix = work.text + place;
	unsigned length = suffix_common(suffix, query, most);

	/* A suffix that is a beginning of the query's comes before it. */
	if (length < most ? suffix[length] < query[length] : most < rest)
		low = middle + 1;
	else
		high = middle;
}

/* A result, of the @rest bases from @query on, which would be at @low in the array. */
static __device__ unsigned suffix_longest(const suffix_work &work, const unsigned char *query, unsigned rest,
					  unsigned low)
{
	unsigned best = 0, where = 0;

	/* The longest match is next to where the query would be in the array. */
	for (unsigned i = low ? low - 1 : 0; i < work.n && i <= low; i++) {
		unsigned place = work.array[i];
		unsigned length = suffix_common(work.text + place, query, min(rest, work.n - place));

		if (length > best) {
			best = length;
			where = place;
		}
	}
	return best << SUFFIX_PLACE_BITS | where;
}

/* A query for each thread of block @block, from base @from on. */
static __device__ void suffix_matches(const suffix_work &work, unsigned block, unsigned from)
{
	unsigned q = block * SUFFIX_THREADS + threadIdx.x;

	if (q >= work.count)
		return;
	const unsigned char *query = work.queries + q * SUFFIX_QUERY + from;
	unsigned low = 0, high = work.n;

	while (low < high)
		suffix_halve(work, query, SUFFIX_QUERY - from, low, high);
	work.results[from * work.count + q] = suffix_longest(work, query, SUFFIX_QUERY - from, low);
}
