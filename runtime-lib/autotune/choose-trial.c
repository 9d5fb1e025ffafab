#include "autotune/choose-trial.h"

#include "autotune/choose-plan.h"

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

static const struct trial *trial_of(const struct choice *choice)
{
	const struct trial *trial = trials;

	while (choice->native >= trial->below)
		trial++;
	return trial;
}

const char *trial_name(const struct choice *choice)
{
	const char *name = NULL;

	if (real(cuFuncGetName)(&name, (CUfunction)choice->geometry.function) || !name)
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
static uint64_t chunk_of(const struct choice *choice, const struct plan *plan)
{
	const struct geometry *geometry = &choice->geometry;

	return plan->form == WEIR_SLICED
		       ? geometry_blocks(geometry) / geometry->grid[plan->axis] * plan->step
		       : plan->hidden.chunk;
}

static void describe(const struct choice *choice, uint32_t candidate, const char *why)
{
	const struct candidate *chosen = &choice->candidates[candidate];

	log_debug("kernel %s, %llu blocks, %llu us: %s%s, chunk %llu%s%s%s, %llu us (%s)",
		  trial_name(choice), (unsigned long long)geometry_blocks(&choice->geometry),
		  (unsigned long long)choice->native / 1000, choose_form_name(chosen->plan.form),
		  candidate ? "" : " as it is",
		  (unsigned long long)(candidate ? chunk_of(choice, &chosen->plan) : 0),
		  chosen->plan.hidden.ahead ? " ahead" : "", build_names[chosen->plan.build],
		  chosen->plan.hidden.across > 1 ? " apart" : "",
		  (unsigned long long)trial_time(chosen) / 1000, why);
}

/* Of what is in use. */
static double quickest(const struct choice *choice)
{
	double least = 1;

	for (size_t i = 0; i < WAITED_COUNT; i++) {
		uint32_t candidate = atomic_load(&choice->in_use[i]);
		double ratio = candidate ? choice->candidates[candidate].ratio : 1;
		if (ratio > 0 && ratio < least)
			least = ratio;
	}
	return least;
}

/* With what is in use. */
static void settle(struct choice *choice, const char *why)
{
	static const char *const while_waited[WAITED_COUNT] = {
		[WAITED_LONG] = "while equals wait",
		[WAITED_ALWAYS] = "while somebody waits",
	};
	uint32_t usual = atomic_load(&choice->in_use[WAITED_NOT]);

	for (size_t i = 0; log_enabled(LOG_DEBUG) && i < WAITED_COUNT; i++) {
		uint32_t candidate = atomic_load(&choice->in_use[i]);
		if (i == WAITED_NOT || candidate != usual)
			describe(choice, candidate, i == WAITED_NOT ? why : while_waited[i]);
	}
	atomic_store(&choice->quickest, quickest(choice));
	choice->state = CHOICE_SETTLED;
	atomic_store(&choice->trying, 0);
}

void trial_settle(struct choice *choice, uint32_t candidate, const char *why)
{
	choice_use(choice, candidate);
	settle(choice, why);
}

/* 1.0: as fast as the native kernel; one that was evicted in every sample has the benefit of the
 * doubt. */
static double ratio(const struct choice *choice, const struct candidate *candidate)
{
	uint64_t time = trial_time(candidate);

	return time ? (double)time / (double)choice->native : 1.0;
}

/* What others may have made longer is not believed at once. */
static bool is_hopeless(const struct choice *choice, const struct candidate *candidate)
{
	return (candidate->clean || candidate->dirty >= FIRST_WAITED) &&
	       ratio(choice, candidate) > HOPELESS;
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
static bool qualifies(const struct choice *choice, size_t candidate, double most, bool soon)
{
	const struct candidate *c = &choice->candidates[candidate];

	return c->ratio <= most &&
	       (!soon || plan_leave_time(choice, &c->plan) <= choose_settings()->latency);
}

/* The fastest of those; 0: there is none. */
static uint32_t fastest(const struct choice *choice, double most, bool soon)
{
	uint32_t best = 0;

	for (size_t i = choice->first; i < choice->n; i++) {
		if (qualifies(choice, i, most, soon) &&
		    (!best || choice->candidates[i].ratio < choice->candidates[best].ratio))
			best = (uint32_t)i;
	}
	return best;
}

/* 0: none is good enough, or none is known to be. */
static uint32_t winner(const struct choice *choice)
{
	uint32_t best = fastest(choice, OVERHEAD, false);

	return trial_time(&choice->candidates[best]) ? best : 0;
}

/* Of the same form, and with no more blocks to run before it leaves. */
static bool leaves_as_soon(const struct plan *plan, const struct plan *other)
{
	return plan->form == other->form &&
	       plan->hidden.chunk + plan->hidden.ahead <= other->hidden.chunk + other->hidden.ahead;
}

/* The first that is little slower leaves soonest; or the fastest of those that leave as soon.
 * 0: there is none. */
static uint32_t soonest(const struct choice *choice, bool soon)
{
	const struct candidate *candidates = choice->candidates;
	uint32_t best = 0;

	for (size_t i = choice->first; i < choice->n; i++) {
		if (qualifies(choice, i, OVERHEAD_SOON, soon) &&
		    (!best || (leaves_as_soon(&candidates[i].plan, &candidates[best].plan) &&
			       candidates[i].ratio < candidates[best].ratio)))
			best = (uint32_t)i;
	}
	return best;
}

/* That, else the fastest, if it is not much slower. */
static uint32_t usable(const struct choice *choice, bool soon)
{
	uint32_t first = soonest(choice, soon);

	return first ? first : fastest(choice, OVERHEAD_WAITED, soon);
}

/* One that leaves too late only if there is no other. */
static uint32_t winner_waited(const struct choice *choice)
{
	uint32_t soon = usable(choice, true);

	return soon ? soon : usable(choice, false);
}

/* Of a turn among equals, natively 1: all of it takes longer in the form, and at its end the GPU
 * waits for the last block; but who has the next one begins where a slice ends. */
static double turn_cost(const struct choice *choice, size_t candidate)
{
	const struct candidate *c = &choice->candidates[candidate];

	return c->plan.form == WEIR_SLICED
		       ? c->ratio
		       : c->ratio + (double)plan_leave_time(choice, &c->plan) / WAITED_LONG_NS;
}

/* The one with which turns cost least; 0: there is none. */
static uint32_t cheapest_turns(const struct choice *choice, bool soon)
{
	uint32_t best = 0;

	for (size_t i = choice->first; i < choice->n; i++) {
		const struct candidate *c = &choice->candidates[i];
		if (c->ratio <= OVERHEAD_WAITED &&
		    (!soon || plan_leave_time(choice, &c->plan) <= EQUALS_SOON) &&
		    (!best || turn_cost(choice, i) < turn_cost(choice, best)))
			best = (uint32_t)i;
	}
	return best;
}

/* One that leaves too late only if there is no other. */
static uint32_t winner_among_equals(const struct choice *choice)
{
	uint32_t soon = cheapest_turns(choice, true);

	return soon ? soon : cheapest_turns(choice, false);
}

/* What is still to be tried could not be much better for those who wait. */
static bool is_enough(const struct choice *choice, enum waited waited, bool other_form)
{
	uint32_t cheapest;

	switch (waited) {
	case WAITED_LONG:
		cheapest = cheapest_turns(choice, true);
		return cheapest && turn_cost(choice, cheapest) <= TURNS_CHEAP;
	case WAITED_ALWAYS:
		return other_form ? winner(choice) || winner_waited(choice)
				  : soonest(choice, false) != 0;
	default:
		return other_form && winner(choice);
	}
}

static void settle_measured(struct choice *choice)
{
	atomic_store(&choice->in_use[WAITED_NOT], winner(choice));
	atomic_store(&choice->in_use[WAITED_LONG], winner_among_equals(choice));
	atomic_store(&choice->in_use[WAITED_ALWAYS], winner_waited(choice));
	settle(choice, winner(choice) ? "measured" : "every form is more than 2 % slower");
}

/* Native samples are taken anew, for they may have had more or less to do. */
static void compare_anew(struct choice *choice)
{
	forget(&choice->candidates[0]);
}

/* One launch first, or some if others would be what somebody waits for. */
void trial_begin(struct choice *choice, uint32_t candidate)
{
	compare_anew(choice);
	choice->doubted = false;
	choice->native_at = client_now();
	atomic_store(&choice->natives, 0);
	atomic_store(&choice->grants, trial_is_waited(choice) ? FIRST_WAITED : 1);
	choice_use(choice, candidate);
	atomic_store(&choice->trying, 1);
	choice->state = CHOICE_TRYING;
}

void trial_resume(struct choice *choice)
{
	forget(&choice->candidates[choice->untried]);
	trial_begin(choice, choice->untried);
}

/* The least of many ratios that were measured is less than what it measures: the best is tried once
 * more, and if that was it, the next. */
static void confirm(struct choice *choice)
{
	uint32_t best = winner(choice);
	struct candidate *candidate = &choice->candidates[best];

	if (!best || candidate->again || trial_is_waited(choice)) {
		settle_measured(choice);
		return;
	}
	candidate->again = true;
	forget(candidate);
	trial_begin(choice, best);
}

/* This one has shown what it can. Others of its form are tried as well, another form only if none
 * of these is good enough; while somebody above waits, none behind one that is little slower. */
static void next_candidate(struct choice *choice)
{
	uint32_t current = atomic_load(&choice->in_use[WAITED_NOT]), next = current + 1;
	struct candidate *tried = &choice->candidates[current];
	enum waited waited = trial_waited(choice);

	tried->ratio = ratio(choice, tried);
	if (log_enabled(LOG_DEBUG))
		log_debug("kernel %s: %s, chunk %u%s%s, %u workers: %.3f", trial_name(choice),
			  choose_form_name(tried->plan.form), tried->plan.hidden.chunk,
			  tried->plan.hidden.ahead ? " ahead" : "", build_names[tried->plan.build],
			  tried->plan.workers, tried->ratio);
	bool more = next < choice->n && !tried->again;
	bool other = more && choice->candidates[next].plan.form != tried->plan.form;
	bool enough = is_enough(choice, waited, other);
	choice->untried = more && enough && waited == WAITED_LONG ? next : 0;
	if (choice->untried || (more && !enough)) /* before any launch is made so */
		plan_refine(choice, next);
	if (more && !enough)
		trial_begin(choice, next);
	else
		confirm(choice);
}

/* A kernel may have more to do than when it was compared. Native launches follow, and if the
 * candidate has had more than one, it has them again. */
static void doubt(struct choice *choice, struct candidate *tried)
{
	bool again = seen(tried) > 1;

	choice->doubted = true;
	compare_anew(choice);
	if (again)
		forget(tried);
	atomic_store(&choice->grants, again);
}

/* More for the one that is confirmed; but nobody is to wait for that. */
static unsigned samples_wanted(const struct choice *choice, const struct candidate *tried,
			       unsigned of)
{
	return tried->again && !trial_is_waited(choice) ? TRIAL_MORE * of : of;
}

/* Equals can have a tenth of the time taken by launches that do not leave: the sooner it is over.
 */
static uint64_t native_every(const struct choice *choice)
{
	uint64_t often = NATIVE_PARTS * choice->native;

	return trial_waited(choice) == WAITED_LONG && often < NATIVE_EVERY ? often : NATIVE_EVERY;
}

/* It is not hopeless: what is to be launched next. */
static void go_on(struct choice *choice, const struct candidate *tried)
{
	unsigned wanted = samples_wanted(choice, tried, trial_of(choice)->clean);
	uint64_t now = client_now();

	if (!trial_is_waited(choice)) {
		atomic_store(&choice->grants, (int32_t)wanted);
		return;
	}
	atomic_store(&choice->grants, GRANTED_WAITED);
	if (seen(&choice->candidates[0]) < wanted &&
	    now - choice->native_at > native_every(choice)) {
		choice->native_at = now;
		atomic_store(&choice->natives, 1);
	}
}

/* There is enough to judge the one that is tried by. */
static bool is_compared(const struct choice *choice, const struct candidate *tried)
{
	const struct candidate *native = &choice->candidates[0];
	const struct trial *trial = trial_of(choice);
	unsigned enough = samples_wanted(choice, tried, trial->clean);
	unsigned most = samples_wanted(choice, tried, trial->most);

	return trial_time(native) &&
	       (is_hopeless(choice, tried) ||
		(seen(native) >= enough && (tried->clean >= enough || seen(tried) >= most)));
}

/* Equals wait by now, and one of those before is good enough for them. */
static bool can_be_put_off(const struct choice *choice, const struct candidate *tried)
{
	return !tried->again && trial_waited(choice) == WAITED_LONG &&
	       is_enough(choice, WAITED_LONG, false);
}

static void put_off(struct choice *choice, uint32_t current)
{
	choice->untried = current;
	settle_measured(choice);
}

void trial_advance(struct choice *choice)
{
	unsigned natives = seen(&choice->candidates[0]);
	uint32_t current = atomic_load(&choice->in_use[WAITED_NOT]);
	struct candidate *tried = &choice->candidates[current];

	if (atomic_load(&choice->refused)) {
		trial_settle(choice, 0, "the driver takes no launch in a form");
	} else if (natives >= TRIAL_LOST) {
		trial_settle(choice, 0, "no launch could be made in a form");
	} else if (can_be_put_off(choice, tried)) {
		put_off(choice, current);
	} else if (!was_tried(tried)) {
		if (natives % TRIAL_AGAIN == TRIAL_AGAIN - 1)
			atomic_store(&choice->grants, 1);
	} else if (!choice->doubted && is_hopeless(choice, tried)) {
		doubt(choice, tried);
	} else if (is_compared(choice, tried)) {
		next_candidate(choice);
	} else if (natives || (trial_is_waited(choice) && !choice->doubted)) {
		go_on(choice, tried);
	}
}
