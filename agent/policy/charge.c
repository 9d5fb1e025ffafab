#include "policy/charge.h"

#include "weir/base.h"

/* The clock ratio is measured over so many ns of the client's runs, old ones counting less. */
#define RATIO_MIN 20000000ull
#define RATIO_MAX 500000000ull
/* After so long what was compared counts half, and without another comparison not at all, because
 * kernels may be predicted otherwise meanwhile. */
#define RATIO_AGE 500000000ull
/* A difference of less than 1/32 is noise: the report is taken as it is. */
#define RATIO_EXACT 32
/* A run must have at least so many kernels to be compared. It begins with a whole kernel and ends
 * inside one, so of fewer kernels the report would be short by a large part. */
#define RATIO_KERNELS 16
/* Reports close to a run's begin or end are not compared. At the begin other clients' kernels still
 * leave, so the client ran less than the clock says. At the end only clients that report soon would
 * be seen, and they would seem to run more than the clock says. */
#define RATIO_BEHIND 1500000ull
#define RATIO_BEFORE 2000000ull

/* Kernels are reported as predicted; the clock ratio corrects that, by a factor of 2 at most. */
static uint64_t by_ratio(const struct charge_state *state, uint64_t step, uint64_t now)
{
	uint64_t reported = state->clock_ratio.reported, by_clock = state->clock_ratio.by_clock;
	uint64_t off = reported > by_clock ? reported - by_clock : by_clock - reported;

	if (now - state->clock_ratio.at >= RATIO_AGE || reported < RATIO_MIN ||
	    by_clock < RATIO_MIN || off < by_clock / RATIO_EXACT)
		return step;
	if (reported > 2 * by_clock)
		return step / 2;
	if (by_clock > 2 * reported)
		return step * 2;
	return (uint64_t)((unsigned __int128)step * by_clock / reported);
}

static bool is_comparable(const struct charge_state *state, const struct charge_report *report,
			  const struct charge_run *run)
{
	const uint64_t cut = RATIO_BEHIND + RATIO_BEFORE;

	if (!run->current || state->reported_at <= run->started + RATIO_BEHIND)
		return false;
	if (!run->contended)
		return true;
	uint64_t used = run->used > state->by_clock ? run->used - state->by_clock : 0;
	return run->allowed > cut && (run->allowed - cut) / RATIO_KERNELS > report->kernel &&
	       run->allowed >= used && run->allowed - used >= RATIO_BEFORE;
}

static void compare(struct charge_state *state, uint64_t step, uint64_t now)
{
	bool old = now - state->clock_ratio.at >= RATIO_AGE;

	state->clock_ratio.reported += step;
	state->clock_ratio.by_clock += state->by_clock;
	if (old || state->clock_ratio.by_clock > RATIO_MAX) {
		state->clock_ratio.at = now;
		state->clock_ratio.reported /= 2;
		state->clock_ratio.by_clock /= 2;
	}
}

/* @ns were charged by the clock and not run. */
static uint64_t refund(struct charge_state *state, uint64_t *pool, uint64_t ns)
{
	uint64_t back = smaller(ns, *pool);

	*pool -= back;
	state->credit = smaller(state->credit + ns - back, CHARGE_CREDIT_MAX);
	return back;
}

/* @ns were run and not charged by the clock. */
static uint64_t charge_more(struct charge_state *state, uint64_t *pool, uint64_t ns,
			    const struct charge_run *run, uint64_t passed)
{
	uint64_t paid = smaller(ns, state->credit);
	uint64_t extra = smaller(ns - paid, passed);

	state->credit -= paid;
	if (!run->shared)
		return 0;
	*pool = smaller(*pool + extra, CHARGE_POOL_MAX);
	return extra;
}

struct charges charge_report(struct charge_state *state, uint64_t *pool,
			     const struct charge_report *report, const struct charge_run *run)
{
	struct charges charges = {0};
	uint64_t before = state->reported, passed = report->now - state->reported_at;

	if (report->executed <= before)
		return charges;
	uint64_t step = report->executed - before;
	if (!report->measured && is_comparable(state, report, run))
		compare(state, step, report->now);
	state->reported = report->executed;
	state->reported_at = report->now;
	/* A client may be older than its agent: what it ran before is not charged. */
	if (before == 0)
		return charges;
	charges.ran = report->measured ? step : by_ratio(state, step, report->now);
	if (charges.ran < state->by_clock)
		charges.refund = refund(state, pool, state->by_clock - charges.ran);
	else
		charges.extra =
			charge_more(state, pool, charges.ran - state->by_clock, run, passed);
	state->by_clock = 0;
	return charges;
}
