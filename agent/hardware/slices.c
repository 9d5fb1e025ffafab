#include "hardware/slices.h"

#include "weir/base.h"

void slice_rank_add(struct slice_rank *rank, uint64_t weight)
{
	rank->n++;
	rank->weights += weight;
	rank->least = smaller(rank->least, weight);
	rank->most = larger(rank->most, weight);
}

/* The longest mean with which parts hold over each second. The part that is off most is the one
 * that is closest to a half. */
static uint64_t steady_mean(const struct slice_rank *rank)
{
	uint64_t all = larger(rank->weights, 2), part = smaller(rank->most, all / 2);
	double f = (double)larger(part, 1) / (double)all;
	uint64_t mean = (uint64_t)(SLICE_STEADY_OFF / (f * (1 - f)) / rank->n);

	return smaller(larger(mean, SLICE_SHARE), SLICE_STEADY);
}

static uint64_t mean_of(const struct slice_rank *rank)
{
	if (rank->above)
		return SLICE_AMONG;
	if (rank->mean)
		return smaller(rank->mean, steady_mean(rank));
	return rank->steady ? steady_mean(rank) : SLICE_SHARE;
}

/* By weight. If the smallest slice would be too short, all are longer. */
static uint64_t share_of(const struct slice_rank *rank)
{
	uint64_t total = mean_of(rank) * rank->n;
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
