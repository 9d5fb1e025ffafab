#include "autotune/choose.h"

#include "autotune/choose-plan.h"
#include "autotune/choose-trial.h"
#include "launch/gate.h"
#include "preempt/preempt.h"

#include "weir/base.h"
#include "weir/log.h"

#include <stdlib.h>
#include <string.h>

#define LATENCY_NS 100000u /* preemptLatency */
/* ns of a first launch that are one eviction more while somebody waits */
#define EVICTION_WAITED 5000000u
/* ns of work between evictions, at least: demand lingers so long. */
#define EVICTION_EVERY 100000u
/* Launches with all continuations that there may be, behind one that had too few: each costs some
 * microseconds, needed or not. */
#define UNSURE 8u
/* Samples of quite another time: the choice is made anew; if others may have made them longer, so
 * many. */
#define STRANGE         3u
#define STRANGE_CROWDED 16u
/* ns: so long at least, for equals run beside it until the agent sees them. */
#define STRANGE_FOR 200000000u
/* ns: what was not measured for so long is not launched any more. */
#define LAUNCHED_FOR 1000000000u

static struct settings settings;

static struct choice choices[CHOICES_MAX];
static _Atomic size_t n_choices;         /* ever used */
static _Atomic int is_open[CLIENTS_MAX]; /* choices of this client may still be to be made */

static const char *const form_names[WEIR_FORM_COUNT] = {
	[WEIR_NATIVE] = "native",
	[WEIR_SLICED] = "sliced",
	[WEIR_PERSISTENT] = "persistent",
	[WEIR_RESUMABLE] = "resumable",
};

const struct settings *choose_settings(void)
{
	return &settings;
}

const char *choose_form_name(enum weir_form form)
{
	return form_names[form];
}

void choose_init(void)
{
	const char *latency = getenv("WEIR_PREEMPT_LATENCY_US"), *form = getenv("WEIR_FORM"),
		   *chunk = getenv("WEIR_CHUNK");

	settings.latency_told = latency != NULL;
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

/* Those above can wait for the end of one that is so short. */
static bool is_bearable(const struct client *client, uint64_t ns)
{
	return !settings.latency_told &&
	       ns <= atomic_load_explicit(&client->patience, memory_order_relaxed);
}

uint64_t choose_native_time(const struct choice *choice, uint64_t predicted)
{
	if (!choice)
		return predicted;
	double quickest = atomic_load_explicit(&choice->quickest, memory_order_relaxed);
	uint64_t native = atomic_load_explicit(&choice->native, memory_order_relaxed);
	if (quickest >= 1 || predicted >= native)
		return predicted;
	uint64_t most = (uint64_t)((double)predicted / quickest);
	return most < native ? most : native;
}

struct turn choose_turn(struct choice *choice, const struct client *client, uint64_t key,
			uint64_t natively, uint64_t interval)
{
	struct turn turn = {0};

	if (!choice || atomic_load_explicit(&choice->key, memory_order_acquire) != key ||
	    atomic_load_explicit(&choice->client, memory_order_relaxed) != client)
		return turn;
	bool trying = atomic_load_explicit(&choice->trying, memory_order_relaxed);
	enum waited waited =
		trying ? client_waiting(client, natively) : choice_waiting(choice, natively);
	turn.choice = choice;
	turn.candidate = atomic_load_explicit(&choice->in_use[waited], memory_order_acquire);
	turn.forms = turn.candidate ||
		     atomic_load_explicit(&choice->state, memory_order_relaxed) != CHOICE_SETTLED;
	if (trying) {
		turn.sample = true;
		if (is_native_turn(choice, waited != WAITED_NOT))
			turn.candidate = 0;
	} else if ((natively < interval || is_bearable(client, natively)) &&
		   !is_forced(&settings)) {
		turn.candidate = 0;
	}
	if (!turn.candidate)
		return turn;
	/* Leaving costs an equal more than the end of a short kernel, for which it may wait. */
	turn.yields = waited != WAITED_NOT || natively >= WAITED_LONG_NS || is_forced(&settings);
	const struct plan *plan = &choice->candidates[turn.candidate].plan;
	turn.rewritten = rewritten_of(choice, plan);
	if (turn.rewritten) {
		turn.plan = plan;
		turn.chain = atomic_load_explicit(&choice->chain, memory_order_relaxed);
	}
	return turn;
}

void choose_refused(struct choice *choice)
{
	atomic_store(&choice->refused, 1);
	atomic_store(&choice->trying, 0);
	choice_use(choice, 0);
}

void choose_untaken(const struct turn *turn)
{
	if (atomic_load_explicit(&turn->choice->trying, memory_order_relaxed))
		atomic_fetch_add_explicit(&turn->choice->grants, 1, memory_order_relaxed);
}

/* Worker. */

static uint32_t chain_max(const struct choice *choice)
{
	uint64_t most = choice->native / EVICTION_EVERY + 1;

	return most < CHAIN_MAX ? (uint32_t)most : CHAIN_MAX;
}

/* One for a short kernel, more for a long one, and twice what was needed of late. */
static void set_chain(struct choice *choice)
{
	uint64_t wanted = (choice->native < 1000000   ? 1
			   : choice->native < 3000000 ? 2
						      : 3) +
			  2 * choice->evicted / 16;
	uint32_t most = chain_max(choice);

	atomic_store(&choice->chain, choice->unsure || wanted > most ? most : (uint32_t)wanted);
}

/* Of the first launches in a form, of which nothing is known. */
static void expect_evictions(struct choice *choice)
{
	uint64_t likely = trial_is_waited(choice) ? 16 * (choice->native / EVICTION_WAITED + 1) : 0;

	if (choice->evicted < likely)
		choice->evicted = likely;
	set_chain(choice);
}

void choose_evicted(struct choice *choice, uint32_t evictions, uint32_t chain)
{
	uint64_t now = 16ull * (evictions < CHAIN_MAX ? evictions : CHAIN_MAX);

	if (!atomic_load(&choice->key))
		return;
	if (evictions >= chain) { /* who knows how many more there would have been */
		choice->unsure = UNSURE;
		now *= 2;
	} else if (choice->unsure) {
		choice->unsure--;
	}
	if (now > choice->evicted)
		choice->evicted = now;
	else
		choice->evicted -= (choice->evicted + 15) / 16;
	set_chain(choice);
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

static bool is_long(const struct client *client, uint64_t ns)
{
	return is_forced(&settings) ? settings.forced != WEIR_NATIVE
				    : ns > settings.latency && !is_bearable(client, ns);
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

	if (!of->formable || !is_long(client, ns) || geometry_blocks(&of->geometry) > INT32_MAX)
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
	choice->evicted = choice->unsure = 0;
	choice->strange = 0;
	choice->seen_at = client_now();
	choice->n = 1;
	choice->candidates[0] = (struct candidate){0};
	choice->function = NULL;
	choice->trying = choice->turns = choice->refused = choice->brief = 0;
	choice->quickest = 1;
	choice_use(choice, 0);
	atomic_store(&choice->key, of->key);
	atomic_store(&is_open[client->index], 1);
	if (atomic_load(&of->kernel->key) == of->key)
		atomic_store(&of->kernel->choice, choice);
}

/* Of what others may have made longer, no more than is known of the kernel: else one that is short
 * enough as it is would get a form among them. */
static uint64_t believed(const struct sampled *of, uint64_t ns, bool crowded)
{
	uint64_t mean = kernel_mean(of->kernel);

	return crowded && mean && mean < ns ? mean : ns;
}

void choose_runs(struct client *client, const struct sample *sample, uint64_t ns, bool crowded)
{
	struct choice *choice = choice_of(&sample->of);

	if (!choice)
		consider(client, &sample->of, believed(&sample->of, ns, crowded));
	else if (choice->state == CHOICE_WANTED && ns > choice->native)
		choice->native = ns;
	if (choice)
		choice->seen_at = client_now();
}

/* Of a launch in a form that took @ns. */
static uint64_t would_take_natively(const struct choice *choice, uint32_t candidate, uint64_t ns)
{
	double ratio = candidate ? choice->candidates[candidate].ratio : 1;

	return ratio > 0 ? (uint64_t)((double)ns / ratio) : ns;
}

/* Some samples of quite another time, of the native kernel or of what was chosen: other candidates
 * may suit it better now. */
static void check_time(struct choice *choice, uint32_t candidate, uint64_t ns, bool crowded)
{
	bool chosen = choice->state == CHOICE_SETTLED && choice_uses(choice, candidate);

	if (choice->state == CHOICE_WANTED || is_forced(&settings) || (candidate && !chosen))
		return;
	uint64_t now = client_now();
	ns = would_take_natively(choice, candidate, ns);
	if (ns / 2 <= choice->made_for && ns >= choice->made_for / 2)
		choice->strange = 0;
	else if (choice->strange++ == 0)
		choice->strange_at = now;
	else if (choice->strange >= (crowded ? STRANGE_CROWDED : STRANGE) &&
		 now - choice->strange_at >= STRANGE_FOR && choice->n < CANDIDATES_MAX &&
		 choice->made_for && !atomic_load(&choice->refused)) {
		choice->native = ns ? ns : 1;
		choice->state = CHOICE_WANTED;
		atomic_store(&is_open[atomic_load(&choice->client)->index], 1);
	}
}

/* Of others' making it is longer, never shorter: of many the least is near to the truth. */
static void learn_dirty(struct candidate *candidate, const struct sample *sample, uint64_t ns)
{
	candidate->dirty++;
	if (!sample_evicted(sample) && (!candidate->least || ns < candidate->least))
		candidate->least = ns;
}

void choose_learn(struct client *client, const struct sample *sample, uint64_t ns, bool crowded)
{
	const struct sampled *of = &sample->of;
	struct choice *choice = choice_of(of);

	if (!choice) {
		consider(client, of, believed(of, ns, crowded));
		choice = choice_of(of);
	}
	if (!choice || of->candidate >= choice->n)
		return;
	choice->seen_at = client_now();
	struct candidate *candidate = &choice->candidates[of->candidate];
	bool clean = !sample_evicted(sample) && !sample->disturbed;
	if (clean)
		candidate->times[candidate->clean++ % TRIAL_TIMES] = ns;
	else
		learn_dirty(candidate, sample, ns);
	if (of->candidate == 0 && trial_time(candidate))
		choice->native = trial_time(candidate);
	if (clean)
		check_time(choice, of->candidate, ns, crowded);
	if (choice->state == CHOICE_TRYING)
		trial_advance(choice);
}

static void try_forms(struct choice *choice, const struct rewritten *rewritten)
{
	choice->first = choice->n;
	choice->made_for = choice->native;
	choice->strange = 0;
	choice->untried = 0;
	plans_add(choice, rewritten, &settings,
		  client_waiting(atomic_load(&choice->client), choice->native));
	expect_evictions(choice);
	if (choice->n == choice->first) {
		if (is_forced(&settings))
			log_info("kernel %s cannot be %s here: it runs as it is",
				 trial_name(choice), form_names[settings.forced]);
		trial_settle(choice, 0, "no form of it can be launched so");
	} else if (is_forced(&settings)) {
		trial_settle(choice, 1, "forced");
	} else {
		trial_begin(choice, (uint32_t)choice->first);
	}
}

/* A client for whom others make room is not disturbed by forms of kernels that end as soon as its
 * next gate comes; nor is anybody while those above can wait for them. */
static bool is_of_use(const struct choice *choice, const struct client *client)
{
	const struct standing *standing = atomic_load(&client->standing);

	if (is_forced(&settings))
		return true;
	return !is_bearable(client, choice->native) &&
	       ((standing && !standing->level) || trial_is_waited(choice) ||
		choice->native >= GATE_INTERVAL_ALONE);
}

/* What was good enough for equals may not be for others. */
static bool is_unfinished(const struct choice *choice)
{
	return choice->state == CHOICE_SETTLED && choice->untried;
}

/* Nothing can be done yet for one that is at the agent. */
static bool is_due(const struct choice *choice, const struct client *client)
{
	if (!atomic_load(&choice->key) || choice->client != client)
		return false;
	if (is_unfinished(choice))
		return client_waiting(client, choice->native) != WAITED_LONG;
	if (choice->state != CHOICE_WANTED || !is_of_use(choice, client))
		return false;
	const struct function *function = atomic_load(&choice->function);
	if (!function)
		return true;
	int state = atomic_load(&function->state);
	return state != FUNCTION_WANTED && state != FUNCTION_REQUESTED;
}

bool choose_pending(const struct client *client)
{
	bool more = false;

	for (size_t i = 0; atomic_load(&is_open[client->index]) && i < n_choices; i++) {
		const struct choice *choice = &choices[i];
		if (is_due(choice, client))
			return true;
		more |= atomic_load(&choice->key) && choice->client == client &&
			(choice->state != CHOICE_SETTLED || choice->untried);
	}
	/* This thread alone makes choices, so none came meanwhile. */
	atomic_store(&is_open[client->index], more);
	return false;
}

static bool is_comparing(const struct choice *choice, const struct client *client, uint64_t now)
{
	bool open = choice->state == CHOICE_TRYING ||
		    (choice->state == CHOICE_WANTED && is_of_use(choice, client));

	return atomic_load(&choice->key) && choice->client == client && open &&
	       now - choice->seen_at < LAUNCHED_FOR;
}

uint64_t choose_comparing(const struct client *client)
{
	uint64_t now = client_now(), n = 0;

	for (size_t i = 0; atomic_load(&is_open[client->index]) && i < n_choices; i++)
		n += is_comparing(&choices[i], client, now);
	return n;
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
		trial_settle(choice, 0, "too many kernels");
}

static void decide(struct choice *choice)
{
	struct function *function = atomic_load(&choice->function);
	const struct rewritten *rewritten = atomic_load(&function->rewritten);

	if (atomic_load(&function->state) == FUNCTION_READY && rewritten)
		try_forms(choice, rewritten);
	else
		trial_settle(choice, 0, "it is not rewritten");
}

void choose_work(struct client *client)
{
	for (size_t i = 0; i < n_choices; i++) {
		struct choice *choice = &choices[i];
		if (is_due(choice, client) && is_unfinished(choice))
			trial_resume(choice);
		else if (is_due(choice, client) && !atomic_load(&choice->function))
			ask(choice);
		else if (is_due(choice, client))
			decide(choice);
	}
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
