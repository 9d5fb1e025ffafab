#include "policy/objective.h"

#include "weir/units.h"

#include "weir/base.h"

bool objective_parse(const char *text, uint64_t *ns)
{
	return duration_parse(text, OBJECTIVE_MIN, OBJECTIVE_MAX, ns);
}

void objective_count(struct objective *objective, uint64_t ns, const struct account *before,
		     const struct account *after)
{
	uint64_t step[ACCOUNT_COUNTERS];

	for (int i = 0; i < ACCOUNT_COUNTERS; i++)
		step[i] = after->total[i] - before->total[i];
	if (after->total[ACCOUNT_STARTS] > 0) {
		objective->starts += step[ACCOUNT_STARTS];
		objective->late += step[ACCOUNT_STARTS_LATE];
		return;
	}
	objective->starts += step[ACCOUNT_LAUNCHES];
	objective->late += smaller(step[ACCOUNT_WAIT_TIME] / ns, step[ACCOUNT_WAITS]);
}

void objective_add(struct objective *sum, const struct objective *more)
{
	sum->starts += more->starts;
	sum->late += more->late;
	sum->missed |= more->missed;
}

bool objective_judge(struct objective *objective)
{
	uint64_t starts = objective->starts - objective->judged_starts;
	uint64_t late = objective->late - objective->judged_late;

	if (starts < OBJECTIVE_WINDOW)
		return false;
	bool missed = late > starts / OBJECTIVE_PARTS, before = objective->missed;
	objective->judged_starts = objective->starts;
	objective->judged_late = objective->late;
	objective->missed = missed;
	return missed != before;
}
