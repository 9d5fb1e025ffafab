#include "hardware/process-use.h"

#include "weir/base.h"

#define CLOCK_SET_NS 2000000   /* the clocks drift less between two calls */
#define AWAITED_NS   15000000u /* after a period's end: its samples may come late */
#define RETRY_NS     5000000u
#define CALL_NS      2000000u /* after the end */
#define LEAST        50u      /* per cent of a period */

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
struct process_sample process_periods_take(struct process_periods *periods, pid_t pid,
					   uint64_t end_us, unsigned percent)
{
	uint64_t end = (uint64_t)((int64_t)(end_us * NS_PER_US) - periods->offset);
	uint64_t distance = (end_us - periods->last) * NS_PER_US;

	if (end_us > periods->last) {
		bool counts = periods->last && distance >= PROCESS_USE_PERIOD_NS;
		if (counts && (!periods->period || distance < periods->period))
			periods->period = distance;
		periods->last = end_us;
	}
	return (struct process_sample){
		.pid = pid,
		.begin = periods->period && end > periods->period ? end - periods->period : 0,
		.end = end,
		.percent = percent,
	};
}

uint64_t process_periods_due(const struct process_periods *periods, uint64_t now)
{
	uint64_t last = (uint64_t)((int64_t)(periods->last * NS_PER_US) - periods->offset);
	uint64_t due = now + PROCESS_USE_INTERVAL_NS;

	if (!periods->period || !periods->last || now < last)
		return due;
	uint64_t n = (now - last) / periods->period, end = last + n * periods->period;
	if (n && now - end < AWAITED_NS)
		due = smaller(due, now + RETRY_NS);
	return smaller(due, end + periods->period + CALL_NS);
}

bool process_use_shows(const struct process_sample *sample, uint64_t since)
{
	return sample->begin && sample->begin >= since && sample->percent >= LEAST &&
	       sample->percent <= 100;
}
