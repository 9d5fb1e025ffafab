#include "hardware/slices.h"

#include "hardware/limit.h"

#include "weir/base.h"

/* The sum of all slices, so that a period's part of the client with the compute limit is a whole
 * number of its slices. 0: no limit below a client's part by weight. */
static uint64_t total_beside_limit(const struct slice_rank *rank)
{
	uint64_t part = LIMIT_PERIOD_NS / NS_PER_US * rank->limit / 100;
	uint64_t n = (part + SLICE_LIMITED - 1) / SLICE_LIMITED;

	if (!part || rank->above || rank->limit * rank->weights >= 100 * rank->limited)
		return 0;
	return part / n * rank->weights / rank->limited;
}

/* By weight. If the smallest slice would be too short, all are longer. */
static uint64_t share_of(const struct slice_rank *rank)
{
	uint64_t mean = rank->above ? SLICE_AMONG : SLICE_SHARE;
	uint64_t limited = total_beside_limit(rank), total = limited ? limited : mean * rank->n;
	uint64_t shortest = rank->above ? SLICE_AMONG_MIN : SLICE_SHARE_MIN;
	uint64_t weights = larger(rank->weights, 1);
	uint64_t least = total * rank->least / weights;

	if (least < shortest)
		total = total * shortest / larger(least, 1);
	return smaller(larger(total * rank->weight / weights, shortest), SLICE_ABOVE);
}

uint64_t slice_for(const struct slice_rank *rank)
{
	if (rank->above && rank->n == 1)
		return rank->below || rank->tight ? SLICE_BETWEEN : SLICE_BELOW;
	if (rank->n > 1)
		return share_of(rank);
	return rank->below ? SLICE_ABOVE : SLICE_DEFAULT;
}
