#include "autotune/autotune-candidates.h"

#include "autotune/launch-config.h"

#include "weir/log.h"

#define TRIAL_MORE  3u   /* times as many of each for the one that was the best */
#define TRIAL_LOST  400u /* native ones, and the candidate has not had its own yet */
#define TRIAL_AGAIN 8u   /* native ones, and nothing came of what was granted */
#define OVERHEAD    1.02
#define HOPELESS    1.5 /* overhead of the first launch */
/* While somebody waits: */
#define OVERHEAD_WAITED 1.25
#define OVERHEAD_SOON   1.10       /* the first one below is in use */
#define TURNS_CHEAP     1.03       /* for equals nothing further is tried */
#define EQUALS_SOON     1000000u   /* ns for which they may wait until a kernel has left */
#define FIRST_WAITED    4          /* launches in a form until it is known not to be hopeless */
#define GRANTED_WAITED  (1 << 30)  /* and then */
#define NATIVE_EVERY    200000000u /* ns between native launches, */
#define NATIVE_PARTS    10u        /* or for equals so many times what one takes */

/* What makes a sample longer makes that of a long kernel longer by less of it. */
static const struct trial {
	uint64_t below; /* ns of the native kernel */
	unsigned clean; /* samples that decide: their median, of two the lesser */
	unsigned most;  /* so many, if evictions spoil them: some are left, even of long ones */
} trials[] = {
	{WAITED_LONG_NS, 5, 16},
	{8000000, 3, 12},
	{UINT64_MAX, 2, 10},
};

static const struct trial *trial_of(const struct tuned_kernel *tuned)
{
	const struct trial *trial = trials;

	while (tuned->native >= trial->below)
		trial++;
	return trial;
}

const char *trial_name(const struct tuned_kernel *tuned)
{
	const char *name = NULL;

	if (real(cuFuncGetName)(&name, (CUfunction)tuned->geometry.function) || !name)
		return "?";
	return name;
}

static uint64_t median(const struct candidate *candidate)
{
	unsigned n = candidate->clean < TRIAL_TIMES ? candidate->clean : TRIAL_TIMES;
	uint64_t sorted[TRIAL_TIMES] = {0};

	for (unsigned i = 0; i < n; i++) {
		unsigned k = i;
		for (; k && sorted[k - 1] > candidate->times[i]; k--)
			sorted[k] = sorted[k - 1];
		sorted[k] = candidate->times[i];
	}
	return n ? sorted[(n - 1) / 2] : 0;
}

uint64_t trial_time(const struct candidate *candidate)
{
	return candidate->clean ? median(candidate) : candidate->least;
}

/* Besides the one without a limit (weir/transform.h). */
static const char *const build_names[BUILDS_MAX] = {"", " narrow", " wide"};

/* Blocks of a ticket, or of a slice. */
static uint64_t chunk_of(const struct tuned_kernel *tuned, const struct launch_config *config)
{
	const struct geometry *geometry = &tuned->geometry;

	return config->form == WEIR_SLICED
		       ? geometry_blocks(geometry) / geometry->grid[config->axis] * config->step
		       : config->hidden.chunk;
}

static void describe(const struct tuned_kernel *tuned, uint32_t candidate, const char *why)
{
	const struct candidate *chosen = &tuned->candidates[candidate];

	log_debug("kernel %s, %llu blocks, %llu us: %s%s, chunk %llu%s%s%s, %llu us (%s)",
		  trial_name(tuned), (unsigned long long)geometry_blocks(&tuned->geometry),
		  (unsigned long long)tuned->native / 1000, form_name(chosen->config.form),
		  candidate ? "" : " as it is",
		  (unsigned long long)(candidate ? chunk_of(tuned, &chosen->config) : 0),
		  chosen->config.hidden.ahead ? " ahead" : "", build_names[chosen->config.build],
		  chosen->config.hidden.across > 1 ? " apart" : "",
		  (unsigned long long)trial_time(chosen) / 1000, why);
}

/* Of what is in use. */
static double quickest(const struct tuned_kernel *tuned)
{
	double least = 1;

	for (size_t i = 0; i < WAITED_COUNT; i++) {
		uint32_t candidate = atomic_load(&tuned->in_use[i]);
		double ratio = candidate ? tuned->candidates[candidate].ratio : 1;
		if (ratio > 0 && ratio < least)
			least = ratio;
	}
	return least;
}

/* With what is in use. */
static void settle(struct tuned_kernel *tuned, const char *why)
{
	static const char *const while_waited[WAITED_COUNT] = {
		[WAITED_LONG] = "while equals wait",
		[WAITED_ALWAYS] = "while somebody waits",
	};
	uint32_t usual = atomic_load(&tuned->in_use[WAITED_NOT]);

	for (size_t i = 0; log_enabled(LOG_DEBUG) && i < WAITED_COUNT; i++) {
		uint32_t candidate = atomic_load(&tuned->in_use[i]);
		if (i == WAITED_NOT || candidate != usual)
			describe(tuned, candidate, i == WAITED_NOT ? why : while_waited[i]);
	}
	atomic_store(&tuned->quickest, quickest(tuned));
	tuned->state = TUNING_SETTLED;
	atomic_store(&tuned->trying, 0);
}

void trial_settle(struct tuned_kernel *tuned, uint32_t candidate, const char *why)
{
	tuning_use(tuned, candidate);
	settle(tuned, why);
}

/* 1.0: as fast as the native kernel; one that was evicted in every sample has the benefit of the
 * doubt. */
static double ratio(const struct tuned_kernel *tuned, const struct candidate *candidate)
{
	uint64_t time = trial_time(candidate);

	return time ? (double)time / (double)tuned->native : 1.0;
}

/* What others may have made longer is not believed at once. */
static bool is_hopeless(const struct tuned_kernel *tuned, const struct candidate *candidate)
{
	return (candidate->clean || candidate->dirty >= FIRST_WAITED) &&
	       ratio(tuned, candidate) > HOPELESS;
}

/* Samples of it. */
static unsigned seen(const struct candidate *candidate)
{
	return candidate->clean + candidate->dirty;
}

static bool was_tried(const struct candidate *candidate)
{
	return seen(candidate) != 0;
}

static void forget(struct candidate *candidate)
{
	candidate->clean = candidate->dirty = 0;
	candidate->least = 0;
}

/* Whether it takes no more than @most, and leaves soon if it must. */
static bool qualifies(const struct tuned_kernel *tuned, size_t candidate, double most, bool soon)
{
	const struct candidate *c = &tuned->candidates[candidate];

	return c->ratio <= most &&
	       (!soon || launch_config_leave_time(tuned, &c->config) <= tuning_settings()->latency);
}

/* The fastest of those; 0: there is none. */
static uint32_t fastest(const struct tuned_kernel *tuned, double most, bool soon)
{
	uint32_t best = 0;

	for (size_t i = tuned->first; i < tuned->n; i++) {
		if (qualifies(tuned, i, most, soon) &&
		    (!best || tuned->candidates[i].ratio < tuned->candidates[best].ratio))
			best = (uint32_t)i;
	}
	return best;
}

/* 0: none is good enough, or none is known to be. */
static uint32_t winner(const struct tuned_kernel *tuned)
{
	uint32_t best = fastest(tuned, OVERHEAD, false);

	return trial_time(&tuned->candidates[best]) ? best : 0;
}

/* Of the same form, and with no more blocks to run before it leaves. */
static bool leaves_as_soon(const struct launch_config *config, const struct launch_config *other)
{
	return config->form == other->form && config->hidden.chunk + config->hidden.ahead <=
						      other->hidden.chunk + other->hidden.ahead;
}

/* The first that is little slower leaves soonest; or the fastest of those that leave as soon.
 * 0: there is none. */
static uint32_t soonest(const struct tuned_kernel *tuned, bool soon)
{
	const struct candidate *candidates = tuned->candidates;
	uint32_t best = 0;

	for (size_t i = tuned->first; i < tuned->n; i++) {
		if (qualifies(tuned, i, OVERHEAD_SOON, soon) &&
		    (!best || (leaves_as_soon(&candidates[i].config, &candidates[best].config) &&
			       candidates[i].ratio < candidates[best].ratio)))
			best = (uint32_t)i;
	}
	return best;
}

/* That, else the fastest, if it is not much slower. */
static uint32_t usable(const struct tuned_kernel *tuned, bool soon)
{
	uint32_t first = soonest(tuned, soon);

	return first ? first : fastest(tuned, OVERHEAD_WAITED, soon);
}

/* One that leaves too late only if there is no other. */
static uint32_t winner_waited(const struct tuned_kernel *tuned)
{
	uint32_t soon = usable(tuned, true);

	return soon ? soon : usable(tuned, false);
}

/* Of a turn among equals, natively 1: all of it takes longer in the form, and at its end the GPU
 * waits for the last block; but who has the next one begins where a slice ends. */
static double turn_cost(const struct tuned_kernel *tuned, size_t candidate)
{
	const struct candidate *c = &tuned->candidates[candidate];

	return c->config.form == WEIR_SLICED
		       ? c->ratio
		       : c->ratio + (double)launch_config_leave_time(tuned, &c->config) /
					    WAITED_LONG_NS;
}

/* The one with which turns cost least; 0: there is none. */
static uint32_t cheapest_turns(const struct tuned_kernel *tuned, bool soon)
{
	uint32_t best = 0;

	for (size_t i = tuned->first; i < tuned->n; i++) {
		const struct candidate *c = &tuned->candidates[i];
		if (c->ratio <= OVERHEAD_WAITED &&
		    (!soon || launch_config_leave_time(tuned, &c->config) <= EQUALS_SOON) &&
		    (!best || turn_cost(tuned, i) < turn_cost(tuned, best)))
			best = (uint32_t)i;
	}
	return best;
}

/* One that leaves too late only if there is no other. */
static uint32_t winner_among_equals(const struct tuned_kernel *tuned)
{
	uint32_t soon = cheapest_turns(tuned, true);

	return soon ? soon : cheapest_turns(tuned, false);
}

/* What is still to be tried could not be much better for those who wait. */
static bool is_enough(const struct tuned_kernel *tuned, enum waited waited, bool other_form)
{
	uint32_t cheapest;

	switch (waited) {
	case WAITED_LONG:
		cheapest = cheapest_turns(tuned, true);
		return cheapest && turn_cost(tuned, cheapest) <= TURNS_CHEAP;
	case WAITED_ALWAYS:
		return other_form ? winner(tuned) || winner_waited(tuned)
				  : soonest(tuned, false) != 0;
	default:
		return other_form && winner(tuned);
	}
}

static void settle_measured(struct tuned_kernel *tuned)
{
	atomic_store(&tuned->in_use[WAITED_NOT], winner(tuned));
	atomic_store(&tuned->in_use[WAITED_LONG], winner_among_equals(tuned));
	atomic_store(&tuned->in_use[WAITED_ALWAYS], winner_waited(tuned));
	settle(tuned, winner(tuned) ? "measured" : "every form is more than 2 % slower");
}

/* Native samples are taken anew, for they may have had more or less to do. */
static void compare_anew(struct tuned_kernel *tuned)
{
	forget(&tuned->candidates[0]);
}

/* One launch first, or some if others would be what somebody waits for. */
void trial_begin(struct tuned_kernel *tuned, uint32_t candidate)
{
	compare_anew(tuned);
	tuned->doubted = false;
	tuned->native_at = client_now();
	atomic_store(&tuned->natives, 0);
	atomic_store(&tuned->grants, trial_is_waited(tuned) ? FIRST_WAITED : 1);
	tuning_use(tuned, candidate);
	atomic_store(&tuned->trying, 1);
	tuned->state = TUNING_COMPARING;
}

void trial_resume(struct tuned_kernel *tuned)
{
	forget(&tuned->candidates[tuned->untried]);
	trial_begin(tuned, tuned->untried);
}

/* The least of many ratios that were measured is less than what it measures: the best is tried once
 * more, and if that was it, the next. */
static void confirm(struct tuned_kernel *tuned)
{
	uint32_t best = winner(tuned);
	struct candidate *candidate = &tuned->candidates[best];

	if (!best || candidate->again || trial_is_waited(tuned)) {
		settle_measured(tuned);
		return;
	}
	candidate->again = true;
	forget(candidate);
	trial_begin(tuned, best);
}

/* This one has shown what it can. Others of its form are tried as well, another form only if none
 * of these is good enough; while somebody above waits, none behind one that is little slower. */
static void next_candidate(struct tuned_kernel *tuned)
{
	uint32_t current = atomic_load(&tuned->in_use[WAITED_NOT]), next = current + 1;
	struct candidate *tried = &tuned->candidates[current];
	enum waited waited = trial_waited(tuned);

	tried->ratio = ratio(tuned, tried);
	if (log_enabled(LOG_DEBUG))
		log_debug("kernel %s: %s, chunk %u%s%s, %u workers: %.3f", trial_name(tuned),
			  form_name(tried->config.form), tried->config.hidden.chunk,
			  tried->config.hidden.ahead ? " ahead" : "",
			  build_names[tried->config.build], tried->config.workers, tried->ratio);
	bool more = next < tuned->n && !tried->again;
	bool other = more && tuned->candidates[next].config.form != tried->config.form;
	bool enough = is_enough(tuned, waited, other);
	tuned->untried = more && enough && waited == WAITED_LONG ? next : 0;
	if (tuned->untried || (more && !enough)) /* before any launch is made so */
		launch_config_refine(tuned, next);
	if (more && !enough)
		trial_begin(tuned, next);
	else
		confirm(tuned);
}

/* A kernel may have more to do than when it was compared. Native launches follow, and if the
 * candidate has had more than one, it has them again. */
static void doubt(struct tuned_kernel *tuned, struct candidate *tried)
{
	bool again = seen(tried) > 1;

	tuned->doubted = true;
	compare_anew(tuned);
	if (again)
		forget(tried);
	atomic_store(&tuned->grants, again);
}

/* More for the one that is confirmed; but nobody is to wait for that. */
static unsigned samples_wanted(const struct tuned_kernel *tuned, const struct candidate *tried,
			       unsigned of)
{
	return tried->again && !trial_is_waited(tuned) ? TRIAL_MORE * of : of;
}

/* Equals can have a tenth of the time taken by launches that do not leave: the sooner it is over.
 */
static uint64_t native_every(const struct tuned_kernel *tuned)
{
	uint64_t often = NATIVE_PARTS * tuned->native;

	return trial_waited(tuned) == WAITED_LONG && often < NATIVE_EVERY ? often : NATIVE_EVERY;
}

/* It is not hopeless: what is to be launched next. */
static void go_on(struct tuned_kernel *tuned, const struct candidate *tried)
{
	unsigned wanted = samples_wanted(tuned, tried, trial_of(tuned)->clean);
	uint64_t now = client_now();

	if (!trial_is_waited(tuned)) {
		atomic_store(&tuned->grants, (int32_t)wanted);
		return;
	}
	atomic_store(&tuned->grants, GRANTED_WAITED);
	if (seen(&tuned->candidates[0]) < wanted && now - tuned->native_at > native_every(tuned)) {
		tuned->native_at = now;
		atomic_store(&tuned->natives, 1);
	}
}

/* There is enough to judge the one that is tried by. */
static bool is_compared(const struct tuned_kernel *tuned, const struct candidate *tried)
{
	const struct candidate *native = &tuned->candidates[0];
	const struct trial *trial = trial_of(tuned);
	unsigned enough = samples_wanted(tuned, tried, trial->clean);
	unsigned most = samples_wanted(tuned, tried, trial->most);

	return trial_time(native) &&
	       (is_hopeless(tuned, tried) ||
		(seen(native) >= enough && (tried->clean >= enough || seen(tried) >= most)));
}

/* Equals wait by now, and one of those before is good enough for them. */
static bool can_be_put_off(const struct tuned_kernel *tuned, const struct candidate *tried)
{
	return !tried->again && trial_waited(tuned) == WAITED_LONG &&
	       is_enough(tuned, WAITED_LONG, false);
}

static void put_off(struct tuned_kernel *tuned, uint32_t current)
{
	tuned->untried = current;
	settle_measured(tuned);
}

void trial_advance(struct tuned_kernel *tuned)
{
	unsigned natives = seen(&tuned->candidates[0]);
	uint32_t current = atomic_load(&tuned->in_use[WAITED_NOT]);
	struct candidate *tried = &tuned->candidates[current];

	if (atomic_load(&tuned->refused)) {
		trial_settle(tuned, 0, "the driver takes no launch in a form");
	} else if (natives >= TRIAL_LOST) {
		trial_settle(tuned, 0, "no launch could be made in a form");
	} else if (can_be_put_off(tuned, tried)) {
		put_off(tuned, current);
	} else if (!was_tried(tried)) {
		if (natives % TRIAL_AGAIN == TRIAL_AGAIN - 1)
			atomic_store(&tuned->grants, 1);
	} else if (!tuned->doubted && is_hopeless(tuned, tried)) {
		doubt(tuned, tried);
	} else if (is_compared(tuned, tried)) {
		next_candidate(tuned);
	} else if (natives || (trial_is_waited(tuned) && !tuned->doubted)) {
		go_on(tuned, tried);
	}
}
