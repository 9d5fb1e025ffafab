#include "choose.h"

#include "choose-plan.h"
#include "gate.h"
#include "preempt.h"

#include "weir/base.h"
#include "weir/log.h"

#include <stdlib.h>
#include <string.h>

#define LATENCY_NS  100000u /* preemptLatency */
#define TRIAL_CLEAN 5u      /* samples that decide */
#define TRIAL_MOST  16u     /* so many, if evictions spoil them */
#define TRIAL_MORE  3u      /* times as many of each for the one that was the best */
#define TRIAL_LOST  400u    /* native ones, and the candidate has not had its own yet */
#define TRIAL_AGAIN 8u      /* native ones, and nothing came of what was granted */
#define OVERHEAD    1.02
#define HOPELESS    1.5 /* overhead of the first launch */
/* While somebody waits: */
#define OVERHEAD_WAITED 1.25
#define OVERHEAD_SOON   1.10       /* the first one below is in use */
#define FIRST_WAITED    4          /* launches in a form until it is known not to be hopeless */
#define GRANTED_WAITED  (1 << 30)  /* and then */
#define NATIVE_EVERY    200000000u /* ns between native launches */
#define EVICTION_WAITED 5000000u   /* ns of a first launch that are one eviction more */
#define STRANGE         3u         /* samples of quite another time: the choice is made anew */
/* ns of work between evictions, at least: demand lingers so long. */
#define EVICTION_EVERY 100000u

static struct settings settings;

static struct choice choices[CHOICES_MAX];
static _Atomic size_t n_choices;         /* ever used */
static _Atomic int waiting[CLIENTS_MAX]; /* choices of this client may be CHOICE_WANTED */

static const char *const form_names[WEIR_FORM_COUNT] = {
	[WEIR_NATIVE] = "native",
	[WEIR_SLICED] = "sliced",
	[WEIR_PERSISTENT] = "persistent",
	[WEIR_RESUMABLE] = "resumable",
};

const char *choose_form_name(enum weir_form form)
{
	return form_names[form];
}

void choose_init(void)
{
	const char *latency = getenv("WEIR_PREEMPT_LATENCY_US"), *form = getenv("WEIR_FORM"),
		   *chunk = getenv("WEIR_CHUNK");

	settings.latency = latency ? strtoull(latency, NULL, 10) * 1000 : LATENCY_NS;
	settings.chunk = chunk ? (uint32_t)strtoul(chunk, NULL, 10) : 0;
	settings.forced = 0;
	while (settings.forced < WEIR_FORM_COUNT &&
	       !(form && strcmp(form, form_names[settings.forced]) == 0))
		settings.forced++;
	if (form && settings.forced == WEIR_FORM_COUNT)
		log_warning("WEIR_FORM=%s is no form", form);
}

/* NULL: the program changed the kernel in a way that its forms cannot follow. */
static const struct rewritten *rewritten_of(struct choice *choice, const struct plan *plan)
{
	struct function *function = atomic_load_explicit(&choice->function, memory_order_relaxed);
	const struct rewritten *rewritten =
		atomic_load_explicit(&function->rewritten, memory_order_acquire);

	return rewritten == plan->rewritten ? rewritten : NULL;
}

/* Takes one of those left. */
static bool take_one(_Atomic int32_t *left)
{
	return atomic_load_explicit(left, memory_order_relaxed) > 0 &&
	       atomic_fetch_sub_explicit(left, 1, memory_order_relaxed) > 0;
}

/* About every third one, in no order that a program's launches could have, too, or the few that
 * must be while somebody waits; and all that were not granted. */
static bool is_native_turn(struct choice *choice, bool waited)
{
	uint32_t turn = atomic_fetch_add_explicit(&choice->turns, 1, memory_order_relaxed);

	return (waited ? take_one(&choice->natives) : (turn * 2654435761u >> 16) % 3 == 0) ||
	       !take_one(&choice->grants);
}

struct turn choose_turn(struct choice *choice, const struct client *client, uint64_t key,
			uint64_t predicted, uint64_t interval)
{
	enum waited waited = client_waiting(client, predicted);
	struct turn turn = {0};

	if (!choice || atomic_load_explicit(&choice->key, memory_order_acquire) != key ||
	    atomic_load_explicit(&choice->client, memory_order_relaxed) != client)
		return turn;
	turn.choice = choice;
	turn.candidate = atomic_load_explicit(&choice->in_use[waited], memory_order_acquire);
	turn.forms = turn.candidate ||
		     atomic_load_explicit(&choice->state, memory_order_relaxed) != CHOICE_SETTLED;
	if (atomic_load_explicit(&choice->trying, memory_order_relaxed)) {
		turn.sample = true;
		if (is_native_turn(choice, waited != WAITED_NOT))
			turn.candidate = 0;
	} else if (predicted < interval && !is_forced(&settings)) {
		turn.candidate = 0;
	}
	if (!turn.candidate)
		return turn;
	/* Leaving costs an equal more than the end of a short kernel, for which it may wait. */
	turn.yields = waited != WAITED_NOT || predicted >= WAITED_LONG_NS || is_forced(&settings);
	const struct plan *plan = &choice->candidates[turn.candidate].plan;
	turn.rewritten = rewritten_of(choice, plan);
	if (turn.rewritten) {
		turn.plan = plan;
		turn.chain = atomic_load_explicit(&choice->chain, memory_order_relaxed);
	}
	return turn;
}

/* Whoever waits. */
static void use(struct choice *choice, uint32_t candidate)
{
	for (size_t i = 0; i < WAITED_COUNT; i++)
		atomic_store(&choice->in_use[i], candidate);
}

void choose_refused(struct choice *choice)
{
	atomic_store(&choice->refused, 1);
	atomic_store(&choice->trying, 0);
	use(choice, 0);
}

void choose_untaken(const struct turn *turn)
{
	if (atomic_load_explicit(&turn->choice->trying, memory_order_relaxed))
		atomic_fetch_add_explicit(&turn->choice->grants, 1, memory_order_relaxed);
}

/* Worker. */

static const char *name_of(const struct choice *choice)
{
	const char *name = NULL;

	if (real(cuFuncGetName)(&name, (CUfunction)choice->geometry.function) || !name)
		return "?";
	return name;
}

static uint32_t chain_max(const struct choice *choice)
{
	uint64_t most = choice->native / EVICTION_EVERY + 1;

	return most < CHAIN_MAX ? (uint32_t)most : CHAIN_MAX;
}

/* Somebody waits for this kernel, or did so of late. */
static bool is_waited(const struct choice *choice)
{
	return client_waited(atomic_load(&choice->client), choice->native);
}

/* One for a short kernel, more for a long one, and twice what was needed of late. */
static void set_chain(struct choice *choice)
{
	uint64_t wanted = (choice->native < 1000000   ? 1
			   : choice->native < 3000000 ? 2
						      : 3) +
			  2 * choice->evicted / 16;
	uint32_t most = chain_max(choice);

	atomic_store(&choice->chain, wanted < most ? (uint32_t)wanted : most);
}

/* Of the first launches in a form, of which nothing is known. */
static void expect_evictions(struct choice *choice)
{
	uint64_t likely = is_waited(choice) ? 16 * (choice->native / EVICTION_WAITED + 1) : 0;

	if (choice->evicted < likely)
		choice->evicted = likely;
	set_chain(choice);
}

void choose_evicted(struct choice *choice, uint32_t evictions, uint32_t chain)
{
	uint64_t now = 16ull * (evictions < CHAIN_MAX ? evictions : CHAIN_MAX);

	if (!atomic_load(&choice->key))
		return;
	if (evictions >= chain) /* who knows how many more there would have been */
		choice->evicted = 16ull * chain_max(choice);
	else if (now > choice->evicted)
		choice->evicted = now;
	else
		choice->evicted -= (choice->evicted + 15) / 16;
	set_chain(choice);
}

/* 0: there are none. */
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
		  name_of(choice), (unsigned long long)geometry_blocks(&choice->geometry),
		  (unsigned long long)choice->native / 1000, form_names[chosen->plan.form],
		  candidate ? "" : " as it is",
		  (unsigned long long)(candidate ? chunk_of(choice, &chosen->plan) : 0),
		  chosen->plan.hidden.ahead ? " ahead" : "", build_names[chosen->plan.build],
		  chosen->plan.hidden.across > 1 ? " apart" : "",
		  (unsigned long long)median(chosen) / 1000, why);
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
	choice->state = CHOICE_SETTLED;
	atomic_store(&choice->trying, 0);
}

static void settle_on(struct choice *choice, uint32_t candidate, const char *why)
{
	use(choice, candidate);
	settle(choice, why);
}

/* 1.0: as fast as the native kernel; one that was evicted in every sample has the benefit of the
 * doubt. */
static double ratio(const struct choice *choice, const struct candidate *candidate)
{
	return candidate->clean ? (double)median(candidate) / (double)choice->native : 1.0;
}

static bool is_hopeless(const struct choice *choice, const struct candidate *candidate)
{
	return ratio(choice, candidate) > HOPELESS;
}

static bool was_tried(const struct candidate *candidate)
{
	return candidate->clean + candidate->dirty != 0;
}

/* Whether it was tried, takes no more than @most, and leaves soon if it must. */
static bool qualifies(const struct choice *choice, size_t candidate, double most, bool soon)
{
	const struct candidate *c = &choice->candidates[candidate];

	return was_tried(c) && c->ratio <= most &&
	       (!soon || plan_leave_time(choice, &c->plan) <= settings.latency);
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

/* 0: none is good enough. */
static uint32_t winner(const struct choice *choice)
{
	return fastest(choice, OVERHEAD, false);
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
 * waits for the last block. */
static double turn_cost(const struct choice *choice, size_t candidate)
{
	const struct candidate *c = &choice->candidates[candidate];

	return c->ratio + (double)plan_leave_time(choice, &c->plan) / WAITED_LONG_NS;
}

/* The one with which turns cost least; 0: there is none. */
static uint32_t cheapest_turns(const struct choice *choice, bool soon)
{
	uint32_t best = 0;

	for (size_t i = choice->first; i < choice->n; i++) {
		if (qualifies(choice, i, OVERHEAD_WAITED, soon) &&
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
	choice->candidates[0].clean = choice->candidates[0].dirty = 0;
}

/* One launch first, or some if others would be what somebody waits for. */
static void try_candidate(struct choice *choice, uint32_t candidate)
{
	compare_anew(choice);
	choice->doubted = false;
	choice->native_at = client_now();
	atomic_store(&choice->natives, 0);
	atomic_store(&choice->grants, is_waited(choice) ? FIRST_WAITED : 1);
	use(choice, candidate);
	atomic_store(&choice->trying, 1);
	choice->state = CHOICE_TRYING;
}

/* The least of many ratios that were measured is less than what it measures: the best is tried once
 * more, and if that was it, the next. */
static void confirm(struct choice *choice)
{
	uint32_t best = winner(choice);
	struct candidate *candidate = &choice->candidates[best];

	if (!best || candidate->again || is_waited(choice)) {
		settle_measured(choice);
		return;
	}
	candidate->again = true;
	candidate->clean = candidate->dirty = 0;
	try_candidate(choice, best);
}

/* This one has shown what it can. Others of its form are tried as well, another form only if none
 * of these is good enough; while somebody above waits, none behind one that is little slower. */
static void next_candidate(struct choice *choice)
{
	uint32_t current = atomic_load(&choice->in_use[WAITED_NOT]), next = current + 1;
	struct candidate *tried = &choice->candidates[current];
	enum waited waited = client_waiting(atomic_load(&choice->client), choice->native);

	tried->ratio = ratio(choice, tried);
	if (log_enabled(LOG_DEBUG))
		log_debug("kernel %s: %s, chunk %u%s%s, %u workers: %.3f", name_of(choice),
			  form_names[tried->plan.form], tried->plan.hidden.chunk,
			  tried->plan.hidden.ahead ? " ahead" : "", build_names[tried->plan.build],
			  tried->plan.workers, tried->ratio);
	bool other = next < choice->n && choice->candidates[next].plan.form != tried->plan.form;
	bool enough = other ? winner(choice) || (waited != WAITED_NOT && winner_waited(choice))
			    : waited == WAITED_ALWAYS && soonest(choice, false);
	if (next < choice->n && !enough && !tried->again) {
		plan_refine(choice, next);
		try_candidate(choice, next);
	} else {
		confirm(choice);
	}
}

/* A kernel may have more to do than when it was compared. Native launches follow, and if the
 * candidate has had more than one, it has them again. */
static void doubt(struct choice *choice, struct candidate *tried)
{
	bool again = tried->clean + tried->dirty > 1;

	choice->doubted = true;
	compare_anew(choice);
	if (again)
		tried->clean = tried->dirty = 0;
	atomic_store(&choice->grants, again);
}

static unsigned samples_wanted(const struct candidate *tried, unsigned of)
{
	return tried->again ? TRIAL_MORE * of : of;
}

/* It is not hopeless: what is to be launched next. */
static void go_on(struct choice *choice, const struct candidate *tried)
{
	uint64_t now = client_now();

	if (!is_waited(choice)) {
		atomic_store(&choice->grants, (int32_t)samples_wanted(tried, TRIAL_CLEAN));
		return;
	}
	atomic_store(&choice->grants, GRANTED_WAITED);
	if (choice->candidates[0].clean < TRIAL_CLEAN && now - choice->native_at > NATIVE_EVERY) {
		choice->native_at = now;
		atomic_store(&choice->natives, 1);
	}
}

/* There is enough to judge the one that is tried by. */
static bool is_compared(const struct choice *choice, const struct candidate *tried)
{
	const struct candidate *native = &choice->candidates[0];
	unsigned seen = tried->clean + tried->dirty, enough = samples_wanted(tried, TRIAL_CLEAN);

	return native->clean &&
	       (is_hopeless(choice, tried) ||
		(native->clean >= enough &&
		 (tried->clean >= enough || seen >= samples_wanted(tried, TRIAL_MOST))));
}

static void advance(struct choice *choice)
{
	unsigned natives = choice->candidates[0].clean;
	struct candidate *tried = &choice->candidates[atomic_load(&choice->in_use[WAITED_NOT])];

	if (atomic_load(&choice->refused)) {
		settle_on(choice, 0, "the driver takes no launch in a form");
	} else if (natives >= TRIAL_LOST) {
		settle_on(choice, 0, "no launch could be made in a form");
	} else if (!was_tried(tried)) {
		if (natives % TRIAL_AGAIN == TRIAL_AGAIN - 1)
			atomic_store(&choice->grants, 1);
	} else if (!choice->doubted && is_hopeless(choice, tried)) {
		doubt(choice, tried);
	} else if (is_compared(choice, tried)) {
		next_candidate(choice);
	} else if (natives || (is_waited(choice) && !choice->doubted)) {
		go_on(choice, tried);
	}
}

static struct choice *take_choice(void)
{
	for (size_t i = 0; i < n_choices; i++) {
		if (!atomic_load(&choices[i].key))
			return &choices[i];
	}
	if (n_choices < CHOICES_MAX)
		return &choices[n_choices++];
	log_limited(LOG_INFO, 3600, "more than %d long kernels: the others stay native",
		    CHOICES_MAX);
	return NULL;
}

static bool is_long(uint64_t ns)
{
	return is_forced(&settings) ? settings.forced != WEIR_NATIVE : ns > settings.latency;
}

/* Launched before its choice was made, perhaps. */
static struct choice *choice_of(const struct sampled *of)
{
	struct choice *choice = of->choice ? of->choice : atomic_load(&of->kernel->choice);

	return choice && atomic_load(&choice->key) == of->key ? choice : NULL;
}

static void consider(struct client *client, const struct sampled *of, uint64_t ns)
{
	struct choice *choice;

	if (!of->formable || !is_long(ns) || geometry_blocks(&of->geometry) > INT32_MAX)
		return;
	choice = take_choice();
	if (!choice)
		return;
	choice->state = CHOICE_WANTED;
	choice->client = client;
	choice->geometry = of->geometry;
	choice->unloads = of->unloads;
	choice->native = ns ? ns : 1;
	choice->made_for = 0;
	choice->evicted = 0;
	choice->strange = 0;
	choice->n = 1;
	choice->candidates[0] = (struct candidate){0};
	choice->function = NULL;
	choice->trying = choice->turns = choice->refused = 0;
	use(choice, 0);
	atomic_store(&choice->key, of->key);
	atomic_store(&waiting[client->index], 1);
	if (atomic_load(&of->kernel->key) == of->key)
		atomic_store(&of->kernel->choice, choice);
}

void choose_runs(struct client *client, const struct sample *sample, uint64_t ns)
{
	struct choice *choice = choice_of(&sample->of);

	if (!choice)
		consider(client, &sample->of, ns);
	else if (choice->state == CHOICE_WANTED && ns > choice->native)
		choice->native = ns;
}

/* Some samples of quite another time, of the native kernel or of what was chosen: other candidates
 * may suit it better now. */
static void check_time(struct choice *choice, uint32_t candidate, uint64_t ns)
{
	bool chosen = choice->state == CHOICE_SETTLED && choice_uses(choice, candidate);

	if (choice->state == CHOICE_WANTED || is_forced(&settings) || (candidate && !chosen))
		return;
	if (ns / 2 <= choice->made_for && ns >= choice->made_for / 2)
		choice->strange = 0;
	else if (++choice->strange >= STRANGE && choice->n < CANDIDATES_MAX && choice->made_for &&
		 !atomic_load(&choice->refused)) {
		choice->native = ns ? ns : 1;
		choice->state = CHOICE_WANTED;
		atomic_store(&waiting[atomic_load(&choice->client)->index], 1);
	}
}

void choose_learn(struct client *client, const struct sample *sample, uint64_t ns)
{
	const struct sampled *of = &sample->of;
	struct choice *choice = choice_of(of);

	if (!choice) {
		consider(client, of, ns);
		choice = choice_of(of);
	}
	if (!choice || of->candidate >= choice->n)
		return;
	struct candidate *candidate = &choice->candidates[of->candidate];
	bool clean = !sample_evicted(sample);
	if (clean)
		candidate->times[candidate->clean++ % TRIAL_TIMES] = ns;
	else
		candidate->dirty++;
	if (of->candidate == 0)
		choice->native = median(candidate) ? median(candidate) : 1;
	if (clean)
		check_time(choice, of->candidate, ns);
	if (choice->state == CHOICE_TRYING)
		advance(choice);
}

static void try_forms(struct choice *choice, const struct rewritten *rewritten)
{
	choice->first = choice->n;
	choice->made_for = choice->native;
	choice->strange = 0;
	plans_add(choice, rewritten, &settings);
	expect_evictions(choice);
	if (choice->n == choice->first) {
		if (is_forced(&settings))
			log_info("kernel %s cannot be %s here: it runs as it is", name_of(choice),
				 form_names[settings.forced]);
		settle_on(choice, 0, "no form of it can be launched so");
	} else if (is_forced(&settings)) {
		settle_on(choice, 1, "forced");
	} else {
		try_candidate(choice, (uint32_t)choice->first);
	}
}

/* A client for whom others make room is not disturbed by forms of kernels that end as soon as its
 * next gate comes. */
static bool is_of_use(const struct choice *choice, const struct client *client)
{
	const struct standing *standing = atomic_load(&client->standing);

	return is_forced(&settings) || (standing && !standing->level) || is_waited(choice) ||
	       choice->native >= GATE_INTERVAL_ALONE;
}

/* Nothing can be done yet for one that is at the agent. */
static bool is_due(const struct choice *choice, const struct client *client)
{
	if (!atomic_load(&choice->key) || choice->client != client ||
	    choice->state != CHOICE_WANTED || !is_of_use(choice, client))
		return false;
	const struct function *function = atomic_load(&choice->function);
	if (!function)
		return true;
	int state = atomic_load(&function->state);
	return state != FUNCTION_WANTED && state != FUNCTION_REQUESTED;
}

bool choose_pending(const struct client *client)
{
	for (size_t i = 0; atomic_load(&waiting[client->index]) && i < n_choices; i++) {
		if (is_due(&choices[i], client))
			return true;
	}
	return false;
}

static void ask(struct choice *choice)
{
	/* What it was launched by may be no handle any more. */
	if (choice->unloads != function_unloads()) {
		atomic_store(&choice->key, 0);
		return;
	}
	struct function *function =
		function_find(choice->client, (CUfunction)choice->geometry.function);

	atomic_store(&choice->function, function);
	if (function)
		function_want(function);
	else
		settle_on(choice, 0, "too many kernels");
}

static void decide(struct choice *choice)
{
	struct function *function = atomic_load(&choice->function);
	const struct rewritten *rewritten = atomic_load(&function->rewritten);

	if (atomic_load(&function->state) == FUNCTION_READY && rewritten)
		try_forms(choice, rewritten);
	else
		settle_on(choice, 0, "it is not rewritten");
}

void choose_work(struct client *client)
{
	bool wait = false;

	for (size_t i = 0; i < n_choices; i++) {
		struct choice *choice = &choices[i];
		if (is_due(choice, client) && !atomic_load(&choice->function))
			ask(choice);
		else if (is_due(choice, client))
			decide(choice);
		wait = wait || (choice->client == client && choice->state == CHOICE_WANTED);
	}
	/* This thread alone makes choices, so none came meanwhile. */
	atomic_store(&waiting[client->index], wait);
}

void choose_gone(const struct function *function)
{
	for (size_t i = 0; i < n_choices; i++) {
		if (atomic_load(&choices[i].function) == function)
			atomic_store(&choices[i].key, 0);
	}
}

const struct choice *choose_at(size_t index)
{
	return index < n_choices ? &choices[index] : NULL;
}

void choose_forget(struct client *client)
{
	for (size_t i = 0; i < n_choices; i++) {
		if (choices[i].client == client)
			atomic_store(&choices[i].key, 0);
	}
}
