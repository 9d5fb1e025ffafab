#include "gates/need-trial.h"

#include "weir/base.h"

#include <stdlib.h>

void need_trial_begin(struct need_trial *trial, enum need_way first)
{
	*trial = (struct need_trial){.first = first, .way = first};
}

static int by_time(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static uint64_t median(uint64_t *times)
{
	qsort(times, NEED_TRIAL_SAMPLES, sizeof(*times), by_time);
	return times[NEED_TRIAL_SAMPLES / 2];
}

static enum need_way chosen(const struct need_trial *trial)
{
	uint64_t fastest = UINT64_MAX;
	int way = (int)trial->first;

	for (int i = way; i < NEED_WAYS; i++)
		fastest = smaller(fastest, trial->medians[i]);
	while ((double)trial->medians[way] > NEED_TRIAL_FAST * (double)fastest)
		way++;
	return (enum need_way)way;
}

bool need_trial_learn(struct need_trial *trial, enum need_way way, uint64_t ns)
{
	if (way != trial->way)
		return false;
	trial->times[trial->seen++] = ns;
	if (trial->seen < NEED_TRIAL_SAMPLES)
		return false;
	trial->medians[way] = median(trial->times);
	trial->seen = 0;
	if (way == NEED_WHOLE)
		trial->way = chosen(trial);
	else
		trial->way = (enum need_way)(way + 1);
	return way == NEED_WHOLE;
}
