#include "hardware/process-use.h"

#include "weir/base.h"

#define CLOCK_SET_NS 2000000   /* the clocks drift less between two calls */
#define AWAITED_NS   15000000u /* after a period's end: its samples come a little later */
#define RETRY_NS     5000000u
#define CALL_NS      2000000u  /* after the end */
#define JITTER_NS    10000000u /* of the ends */
#define RECENT       5u        /* periods since one ended: it is known when the next one does */

bool process_periods_begin(struct process_periods *periods, uint64_t wall_now, uint64_t now)
{
	int64_t offset = (int64_t)(wall_now - now), drift = offset - periods->offset;
	bool first = !periods->offset;

	periods->offset = offset;
	if (first || (drift < CLOCK_SET_NS && drift > -CLOCK_SET_NS))
		return true;
	periods->last = 0;
	return false;
}

/* Periods without samples make a distance longer, never shorter. */
static void learn(struct process_periods *periods, uint64_t end_us)
{
	uint64_t distance = (end_us - periods->last) * NS_PER_US;

	if (end_us <= periods->last)
		return;
	bool counts = periods->last && distance >= PROCESS_USE_SHORTEST_NS &&
		      distance <= PROCESS_USE_LONGEST_NS;
	if (counts && (!periods->period || distance < periods->period))
		periods->period = distance;
	periods->last = end_us;
}

/* The longest time of which a sample may tell that ended @later after what was asked for. */
static uint64_t length(const struct process_periods *periods, uint64_t later)
{
	uint64_t period = periods->period;

	if (!period)
		return later + PROCESS_USE_LONGEST_NS;
	return period * larger((later + period - JITTER_NS) / period, 1);
}

struct process_sample process_periods_take(struct process_periods *periods, pid_t pid,
					   uint64_t after_us, uint64_t end_us, unsigned percent)
{
	uint64_t end = (uint64_t)((int64_t)(end_us * NS_PER_US) - periods->offset);
	uint64_t later = end_us > after_us ? (end_us - after_us) * NS_PER_US : 0;

	learn(periods, end_us);
	uint64_t before = length(periods, later);
	return (struct process_sample){
		.pid = pid,
		.begin = end > before ? end - before : 0,
		.end = end,
		.percent = percent,
	};
}

/* A distance of several periods is longer than that. */
static bool is_single(uint64_t period)
{
	return period && period < 2 * PROCESS_USE_SHORTEST_NS;
}

uint64_t process_periods_due(const struct process_periods *periods, uint64_t now)
{
	uint64_t last = (uint64_t)((int64_t)(periods->last * NS_PER_US) - periods->offset);
	uint64_t period = periods->period;

	if (!periods->last || !is_single(period) || now < last || now - last > RECENT * period)
		return now + PROCESS_USE_INTERVAL_NS;
	uint64_t n = (now - last) / period, end = last + n * period;
	uint64_t again = now - end < AWAITED_NS ? RETRY_NS : PROCESS_USE_INTERVAL_NS;
	return smaller(n ? now + again : UINT64_MAX, end + period + CALL_NS);
}

bool process_use_shows(const struct process_sample *sample, uint64_t since)
{
	uint64_t begin = sample->begin, end = sample->end;

	if (end <= begin || end <= since || sample->percent > 100)
		return false;
	uint64_t hundredth = (end - begin) / 100, ran = sample->percent * hundredth;
	uint64_t before = since > begin ? since - begin : 0, after = end - begin - before;
	return ran >= before + larger(after / 2, PROCESS_USE_SURE_NS + hundredth);
}
