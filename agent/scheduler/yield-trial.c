#include "scheduler/yield-trial.h"

#include "policy/yield.h"

#include "weir/base.h"

/* Windows with odd numbers are of the other kind than usual. */
static enum weir_yield_kind kind_of(const struct yield_trial *trial)
{
	return trial->needs_all != (trial->window % 2 != 0) ? WEIR_YIELD_ALL : WEIR_YIELD_SOME;
}

uint32_t yield_trial_now(const struct yield_trial *trial, uint32_t wanted)
{
	return kind_of(trial) == WEIR_YIELD_ALL ? YIELD_WHOLE : yield_first(wanted);
}

/* By how much a counter has grown. One that fell belongs to another client. */
static uint64_t gained(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* The client was idle in between. A client whose work never ends would need the whole GPU for ever
 * once it has asked for it (runtime-lib/gates/demand-pages.h). */
static bool has_idled(const struct yield_look *last, const struct yield_look *look)
{
	uint64_t passed = look->now - last->now;

	return gained(look->told.demand_time, last->told.demand_time) < passed - passed / 16;
}

static void begin_window(struct yield_trial *trial, uint64_t now)
{
	trial->window++;
	trial->window_samples = 0;
	trial->window_until = now + YIELD_TRIAL_PATIENCE;
}

static void begin(struct yield_trial *trial, uint64_t now)
{
	for (size_t i = 0; i < WEIR_YIELD_KINDS; i++)
		trial->measured[i] = trial->predicted[i] = 0;
	begin_window(trial, now);
}

static void end(struct yield_trial *trial, uint64_t now, bool longer)
{
	trial->rest = longer ? smaller(2 * trial->rest, YIELD_TRIAL_REST_MAX)
			     : larger(trial->rest / 2, YIELD_TRIAL_REST_MIN);
	trial->next = now + trial->rest;
	trial->window = 0;
}

/* Time as a multiple of the predicted one; 0: there is none. */
static double slowness(const struct yield_trial *trial, enum weir_yield_kind kind)
{
	return trial->predicted[kind] > 0 ? trial->measured[kind] / trial->predicted[kind] : 0;
}

static void judge(struct yield_trial *trial, uint64_t now)
{
	double all = slowness(trial, WEIR_YIELD_ALL), sms = slowness(trial, WEIR_YIELD_SOME);
	double most = trial->needs_all ? YIELD_TRIAL_ENOUGH : YIELD_TRIAL_SLOWER;

	if (all > 0 && sms > 0) {
		trial->slower = sms / all;
		trial->needs_all = trial->slower > most;
	}
	end(trial, now, trial->needs_all);
}

/* Only what ran beside others counts. */
static void count(struct yield_trial *trial, const struct yield_look *look)
{
	const struct yield_told *before = &trial->last.told, *told = &look->told;

	if (!look->is_beside || !trial->last.is_beside)
		return;
	for (size_t i = 0; i < WEIR_YIELD_KINDS; i++) {
		trial->measured[i] += (double)gained(told->measured[i], before->measured[i]);
		trial->predicted[i] += (double)gained(told->predicted[i], before->predicted[i]);
	}
	enum weir_yield_kind kind = kind_of(trial);
	trial->window_samples += gained(told->samples[kind], before->samples[kind]);
}

static void compare(struct yield_trial *trial, const struct yield_look *look)
{
	count(trial, look);
	if (trial->window_samples >= YIELD_TRIAL_SAMPLES && trial->window == YIELD_TRIAL_WINDOWS)
		judge(trial, look->now);
	else if (trial->window_samples >= YIELD_TRIAL_SAMPLES)
		begin_window(trial, look->now);
	else if (look->now >= trial->window_until)
		end(trial, look->now, true);
}

/* A client of an older libweir reports nothing, so nothing can be compared. */
static bool reports(const struct yield_told *told)
{
	return told->samples[WEIR_YIELD_SOME] || told->samples[WEIR_YIELD_ALL];
}

static bool may_begin(const struct yield_trial *trial, const struct yield_look *look)
{
	return look->is_beside && !look->others_compare && reports(&look->told) &&
	       trial->idled >= YIELD_TRIAL_IDLED;
}

bool yield_trial_look(struct yield_trial *trial, uint32_t wanted, const struct yield_look *look)
{
	bool before = trial->needs_all;

	if (wanted != YIELD_MEASURED) {
		*trial = (struct yield_trial){0};
		return before;
	}
	trial->idled = trial->last.now && has_idled(&trial->last, look) ? trial->idled + 1 : 0;
	if (!trial->last.now) {
		trial->rest = YIELD_TRIAL_REST_MIN;
		trial->next = look->now + YIELD_TRIAL_FIRST;
	} else if (trial->window) {
		compare(trial, look);
	} else if (look->now >= trial->next && may_begin(trial, look)) {
		begin(trial, look->now);
	}
	trial->last = *look;
	return trial->needs_all != before;
}
