#include "hardware/limit.h"

#include "weir/base.h"

static int64_t allowance(const struct limit *limit)
{
	return (int64_t)(LIMIT_PERIOD_NS / 100 * limit->percent);
}

void limit_set(struct limit *limit, uint32_t percent, uint64_t now)
{
	percent = percent < 100 ? percent : 0;
	if (limit->percent == percent)
		return;
	limit->percent = percent;
	limit->over = false;
	limit->begun = now;
	limit->left = allowance(limit);
	limit->sums = (typeof(limit->sums)){.since = now};
}

static void renew(struct limit *limit, uint64_t now)
{
	uint64_t n = (now - limit->begun) / LIMIT_PERIOD_NS;
	int64_t each = allowance(limit);

	if (now <= limit->begun || !n)
		return;
	limit->begun += n * LIMIT_PERIOD_NS;
	n = smaller(n, (uint64_t)LIMIT_DEBT_MAX / (uint64_t)each + 2);
	limit->left += (int64_t)n * each;
	if (limit->left > each)
		limit->left = each;
}

/* What to charge now. */
static uint64_t more(struct limit *limit, const struct limit_use *use, uint64_t now)
{
	if (now - limit->sums.since >= LIMIT_SUM_NS)
		limit->sums = (typeof(limit->sums)){.since = now};
	limit->sums.most += use->most;
	limit->sums.least += use->least;
	limit->sums.reported += smaller(use->reported, LIMIT_SUM_NS);
	uint64_t sum = smaller(larger(limit->sums.reported, limit->sums.least), limit->sums.most);
	uint64_t before = limit->sums.charged;
	limit->sums.charged = larger(sum, before);
	return limit->sums.charged - before;
}

void limit_charge(struct limit *limit, const struct limit_use *use, uint64_t now)
{
	if (!limit->percent)
		return;
	uint64_t used = more(limit, use, now);
	limit->used += used;
	limit->throttled += use->waited;
	limit->left -= (int64_t)smaller(used, (uint64_t)LIMIT_DEBT_MAX);
	if (limit->left < -LIMIT_DEBT_MAX)
		limit->left = -LIMIT_DEBT_MAX;
	renew(limit, now);
	limit->over = limit->left <= 0;
}

uint64_t limit_next(const struct limit *limit, bool works, uint64_t now)
{
	if (!limit->percent || (!works && !limit->over))
		return UINT64_MAX;
	if (limit->over)
		return larger(limit->begun + LIMIT_PERIOD_NS, now + 1);
	return now + smaller(larger((uint64_t)limit->left, LIMIT_LATE_NS), LIMIT_LOOK_NS);
}
