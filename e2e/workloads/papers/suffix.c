/* Longest matches by a suffix array: the host's side. */
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "papers.h"
#include "suffix.h"

#define BASES  "ACGT"
#define CHANGE 24 /* of so many bases of a query one is not the text's, on average */

struct text {
	const uint8_t *bases;
	const uint32_t *array;
	uint32_t n;
	const uint8_t *queries;
	uint32_t *results, count;
};

static int compare_suffixes(const void *a, const void *b, void *context)
{
	const struct text *text = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	uint32_t longest = left > right ? left : right;
	int order = memcmp(text->bases + left, text->bases + right, text->n - longest);

	return order ? order : left > right ? -1 : 1; /* a suffix comes after its beginning */
}

/* Bases that query and text have in common, from @place and base @from on. */
static uint32_t common(const struct text *text, const uint8_t *query, uint32_t from, uint32_t place)
{
	uint32_t most = (uint32_t)smaller(SUFFIX_QUERY - from, text->n - place), length = 0;

	while (length < most && query[from + length] == text->bases[place + length])
		length++;
	return length;
}

/* The number of suffixes that come before the query from base @from on. */
static uint32_t rank_of(const struct text *text, const uint8_t *query, uint32_t from)
{
	uint32_t first = 0, left = text->n;

	while (left) {
		uint32_t half = left / 2, place = text->array[first + half];
		uint32_t most = (uint32_t)smaller(SUFFIX_QUERY - from, text->n - place);
		int order = memcmp(text->bases + place, query + from, most);

		if (order < 0 || (order == 0 && most < SUFFIX_QUERY - from)) {
			first += half + 1;
			left -= half + 1;
		} else {
			left = half;
		}
	}
	return first;
}

static void match_query(void *context, size_t q)
{
	const struct text *text = context;
	const uint8_t *query = text->queries + q * SUFFIX_QUERY;

	for (uint32_t from = 0; from < SUFFIX_QUERY; from++) {
		uint32_t rank = rank_of(text, query, from), best = 0, where = 0;

		for (uint32_t i = rank ? rank - 1 : 0; i <= rank && i < text->n; i++) {
			uint32_t length = common(text, query, from, text->array[i]);

			if (length > best) {
				best = length;
				where = text->array[i];
			}
		}
		text->results[(size_t)from * text->count + q] = best << SUFFIX_PLACE_BITS | where;
	}
}

/* Pieces of the text with some bases changed. */
static void make_queries(struct plan *plan, const struct text *text, uint8_t *queries)
{
	for (uint32_t q = 0; q < text->count; q++) {
		uint8_t *query = queries + (size_t)q * SUFFIX_QUERY;

		memcpy(query, text->bases + random_below(&plan->random, text->n - SUFFIX_QUERY),
		       SUFFIX_QUERY);
		for (uint32_t i = 0; i < SUFFIX_QUERY; i++)
			if (random_below(&plan->random, CHANGE) == 0)
				query[i] = BASES[random_below(&plan->random, 4)];
	}
}

void plan_suffixes(struct plan *plan, uint32_t count)
{
	uint32_t n = 4 * count + 2 * SUFFIX_QUERY;
	struct buffer *bases = plan_buffer(plan, n),
		      *array = plan_buffer(plan, n * sizeof(uint32_t)),
		      *queries = plan_buffer(plan, (size_t)count * SUFFIX_QUERY),
		      *results = plan_buffer(plan, (size_t)count * SUFFIX_QUERY * sizeof(uint32_t));
	uint8_t *base = buffer_input(bases), *query = buffer_input(queries);
	uint32_t *place = buffer_input(array);
	struct text text = {base, place, n, query, buffer_want(results), count};

	for (uint32_t i = 0; i < n; i++) {
		base[i] = BASES[random_below(&plan->random, 4)];
		place[i] = i;
	}
	qsort_r(place, n, sizeof(*place), compare_suffixes, &text);
	make_queries(plan, &text, query);
	in_parallel(count, match_query, &text);
	plan_launch(plan, "suffix_match", shape_line(count, SUFFIX_THREADS),
		    ARGUMENT(bases->device), ARGUMENT(array->device), ARGUMENT(n),
		    ARGUMENT(queries->device), ARGUMENT(results->device), ARGUMENT(count));
}
