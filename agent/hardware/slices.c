#include "hardware/slices.h"

#include "weir/base.h"

/* By weight. If the smallest slice would be too short, all are longer. */
static uint64_t share_of(const struct slice_rank *rank)
{
	uint64_t mean = rank->above ? SLICE_AMONG : SLICE_SHARE, total = mean * rank->n;
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
