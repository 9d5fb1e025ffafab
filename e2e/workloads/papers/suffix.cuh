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

/* How many bases are equal from @place and from base @from on. */
static __device__ unsigned suffix_common(const suffix_work &work, unsigned place, const unsigned char *query,
					 unsigned from)
{
	unsigned length = 0;

	while (from + length < SUFFIX_QUERY && place + length < work.n &&
	       work.text[place + length] == query[from + length])
		length++;
	return length;
}

/* Whether the suffix at @place, which shares @length bases, comes before the query's. */
static __device__ bool suffix_is_before(const suffix_work &work, unsigned place, const unsigned char *query,
					unsigned from, unsigned length)
{
	if (from + length == SUFFIX_QUERY)
		return false;
	return place + length == work.n || work.text[place + length] < query[from + length];
}

static __device__ unsigned suffix_longest(const suffix_work &work, const unsigned char *query, unsigned from)
{
	unsigned low = 0, high = work.n, best = 0, where = 0;

	while (low < high) {
		unsigned middle = (low + high) / 2, place = work.array[middle];
		unsigned length = suffix_common(work, place, query, from);

		if (suffix_is_before(work, place, query, from, length))
			low = middle + 1;
		else
			high = middle;
	}
	/* The longest match is next to where the query would be in the array. */
	for (unsigned i = low ? low - 1 : 0; i < work.n && i <= low; i++) {
		unsigned length = suffix_common(work, work.array[i], query, from);

		if (length > best) {
			best = length;
			where = work.array[i];
		}
	}
	return best << SUFFIX_PLACE_BITS | where;
}

/* A query for each thread of block @block, from base @from on. */
static __device__ void suffix_matches(const suffix_work &work, unsigned block, unsigned from)
{
	unsigned q = block * SUFFIX_THREADS + threadIdx.x;

	if (q < work.count)
		work.results[from * work.count + q] = suffix_longest(work, work.queries + q * SUFFIX_QUERY, from);
}
