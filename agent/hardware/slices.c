#include "hardware/slices.h"

#include "weir/base.h"

void slice_rank_add(struct slice_rank *rank, uint64_t weight)
{
	rank->n++;
	rank->weights += weight;
	rank->least = smaller(rank->least, weight);
	rank->most = larger(rank->most, weight);
}

/* The longest mean with which no part is off by more than @off in a window. The part that is off
 * most is the one that is closest to a half. */
static uint64_t longest_mean(const struct slice_rank *rank, unsigned off)
{
	uint64_t all = larger(rank->weights, 2), part = smaller(rank->most, all / 2);
	double f = (double)larger(part, 1) / (double)all;

	return (uint64_t)(off / (f * (1 - f)) / rank->n);
}

static uint64_t steady_mean(const struct slice_rank *rank)
{
	uint64_t mean = longest_mean(rank, SLICE_STEADY_OFF);

	return smaller(larger(mean, SLICE_SHARE), SLICE_STEADY);
}

static uint64_t mean_of(const struct slice_rank *rank)
{
	if (rank->above)
		return SLICE_AMONG;
	if (rank->mean)
		return smaller(rank->mean, longest_mean(rank, SLICE_FAIR_OFF));
	return rank->steady ? steady_mean(rank) : SLICE_SHARE;
}

/* By weight. If the smallest slice would be too short, all are longer. What restoring takes of a
 * slice comes on top: it is as long in each. */
static uint64_t share_of(const struct slice_rank *rank)
{
	uint64_t total = mean_of(rank) * rank->n;
	uint64_t shortest = rank->above ? SLICE_AMONG_MIN : SLICE_SHARE_MIN;
	uint64_t weights = larger(rank->weights, 1);
	uint64_t least = total * rank->least / weights;

	if (least < shortest)
		total = total * shortest / larger(least, 1);
	uint64_t slice = larger(total * rank->weight / weights, shortest);
	return smaller(slice + (rank->above ? 0 : SLICE_RESTORE), SLICE_ABOVE);
}

uint64_t slice_for(const struct slice_rank *rank)
{
	if (rank->above && rank->n == 1)
		return rank->below || rank->quick ? SLICE_BETWEEN : SLICE_BELOW;
	if (rank->n > 1)
		return share_of(rank);
	if (rank->below)
		return SLICE_ABOVE;
	return rank->alone ? SLICE_ALONE : SLICE_DEFAULT;
}
