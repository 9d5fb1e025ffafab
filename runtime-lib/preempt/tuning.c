#include "preempt/tuning.h"

#include "autotune/launch-config.h"
#include "autotune/autotune-candidates.h"
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
/* Samples of quite another time: the tuned is made anew; if others may have made them longer, so
 * many. */
#define STRANGE         3u
#define STRANGE_CROWDED 16u
/* ns: so long at least, for equals run beside it until the agent sees them. */
#define STRANGE_FOR 200000000u
/* ns: what was not measured for so long is not launched any more. */
#define LAUNCHED_FOR 1000000000u

static struct settings settings;

static struct tuned_kernel choices[TUNED_KERNELS_MAX];
static _Atomic size_t n_choices;         /* ever used */
static _Atomic int is_open[CLIENTS_MAX]; /* choices of this client may still be to be made */

static const char *const form_names[WEIR_FORM_COUNT] = {
	[WEIR_NATIVE] = "native",
	[WEIR_SLICED] = "sliced",
	[WEIR_PERSISTENT] = "persistent",
	[WEIR_RESUMABLE] = "resumable",
};

const struct settings *tuning_settings(void)
{
	return &settings;
}

const char *form_name(enum weir_form form)
{
	return form_names[form];
}

void tuning_init(void)
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
static const struct rewritten *rewritten_of(struct tuned_kernel *tuned,
					    const struct launch_config *config)
{
	struct function *function = atomic_load_explicit(&tuned->function, memory_order_relaxed);
	const struct rewritten *rewritten =
		atomic_load_explicit(&function->rewritten, memory_order_acquire);

	return rewritten == config->rewritten ? rewritten : NULL;
}

/* Takes one of those left. */
static bool take_one(_Atomic int32_t *left)
{
	return atomic_load_explicit(left, memory_order_relaxed) > 0 &&
	       atomic_fetch_sub_explicit(left, 1, memory_order_relaxed) > 0;
}

/* About every third one, in no order that a program's launches could have, too, or the few that
 * must be while somebody waits; and all that were not granted. */
static bool runs_natively(struct tuned_kernel *tuned, bool waited)
{
	uint32_t decision = atomic_fetch_add_explicit(&tuned->turns, 1, memory_order_relaxed);

	return (waited ? take_one(&tuned->natives) : (decision * 2654435761u >> 16) % 3 == 0) ||
	       !take_one(&tuned->grants);
}

/* Those above can wait for the end of one that is so short. */
static bool is_bearable(const struct client *client, uint64_t ns)
{
	return !settings.latency_told &&
	       ns <= atomic_load_explicit(&client->max_blocking_time, memory_order_relaxed);
}

uint64_t tuning_native_time(const struct tuned_kernel *tuned, uint64_t predicted)
{
	if (!tuned)
		return predicted;
	double quickest = atomic_load_explicit(&tuned->quickest, memory_order_relaxed);
	uint64_t native = atomic_load_explicit(&tuned->native, memory_order_relaxed);
	if (quickest >= 1 || predicted >= native)
		return predicted;
	uint64_t most = (uint64_t)((double)predicted / quickest);
	return most < native ? most : native;
}

struct launch_decision tuning_decide(struct tuned_kernel *tuned, const struct client *client,
				     uint64_t key, uint64_t natively, uint64_t interval)
{
	struct launch_decision decision = {0};

	if (!tuned || atomic_load_explicit(&tuned->key, memory_order_acquire) != key ||
	    atomic_load_explicit(&tuned->client, memory_order_relaxed) != client)
		return decision;
	bool trying = atomic_load_explicit(&tuned->trying, memory_order_relaxed);
	enum waited waited =
		trying ? client_waiting(client, natively) : tuning_waiting(tuned, natively);
	decision.tuned = tuned;
	decision.candidate = atomic_load_explicit(&tuned->in_use[waited], memory_order_acquire);
	decision.forms =
		decision.candidate ||
		atomic_load_explicit(&tuned->state, memory_order_relaxed) != TUNING_SETTLED;
	if (trying) {
		decision.sample = true;
		if (runs_natively(tuned, waited != WAITED_NOT))
			decision.candidate = 0;
	} else if ((natively < interval || is_bearable(client, natively)) &&
		   !is_forced(&settings)) {
		decision.candidate = 0;
	}
	if (!decision.candidate)
		return decision;
	/* Leaving costs an equal more than the end of a short kernel, for which it may wait. */
	decision.yields =
		waited != WAITED_NOT || natively >= WAITED_LONG_NS || is_forced(&settings);
	const struct launch_config *config = &tuned->candidates[decision.candidate].config;
	decision.rewritten = rewritten_of(tuned, config);
	if (decision.rewritten) {
		decision.config = config;
		decision.chain = atomic_load_explicit(&tuned->chain, memory_order_relaxed);
	}
	return decision;
}

void tuning_refused(struct tuned_kernel *tuned)
{
	atomic_store(&tuned->refused, 1);
	atomic_store(&tuned->trying, 0);
	tuning_use(tuned, 0);
}

void tuning_not_launched(const struct launch_decision *decision)
{
	if (atomic_load_explicit(&decision->tuned->trying, memory_order_relaxed))
		atomic_fetch_add_explicit(&decision->tuned->grants, 1, memory_order_relaxed);
}

/* Worker. */

static uint32_t chain_max(const struct tuned_kernel *tuned)
{
	uint64_t most = tuned->native / EVICTION_EVERY + 1;

	return most < CHAIN_MAX ? (uint32_t)most : CHAIN_MAX;
}

/* One for a short kernel, more for a long one, and twice what was needed of late. */
static void set_chain(struct tuned_kernel *tuned)
{
	uint64_t wanted = (tuned->native < 1000000   ? 1
			   : tuned->native < 3000000 ? 2
						     : 3) +
			  2 * tuned->evicted / 16;
	uint32_t most = chain_max(tuned);

	atomic_store(&tuned->chain, tuned->unsure || wanted > most ? most : (uint32_t)wanted);
}

/* Of the first launches in a form, of which nothing is known. */
static void expect_evictions(struct tuned_kernel *tuned)
{
	uint64_t likely = trial_is_waited(tuned) ? 16 * (tuned->native / EVICTION_WAITED + 1) : 0;

	if (tuned->evicted < likely)
		tuned->evicted = likely;
	set_chain(tuned);
}

void tuning_evicted(struct tuned_kernel *tuned, uint32_t evictions, uint32_t chain)
{
	uint64_t now = 16ull * (evictions < CHAIN_MAX ? evictions : CHAIN_MAX);

	if (!atomic_load(&tuned->key))
		return;
	if (evictions >= chain) { /* who knows how many more there would have been */
		tuned->unsure = UNSURE;
		now *= 2;
	} else if (tuned->unsure) {
		tuned->unsure--;
	}
	if (now > tuned->evicted)
		tuned->evicted = now;
	else
		tuned->evicted -= (tuned->evicted + 15) / 16;
	set_chain(tuned);
}

static struct tuned_kernel *take_record(void)
{
	for (size_t i = 0; i < n_choices; i++) {
		if (!atomic_load(&choices[i].key))
			return &choices[i];
	}
	if (n_choices < TUNED_KERNELS_MAX)
		return &choices[n_choices++];
	log_limited(LOG_INFO, 3600, "more than %d long kernels: the others stay native",
		    TUNED_KERNELS_MAX);
	return NULL;
}

static bool is_long(const struct client *client, uint64_t ns)
{
	return is_forced(&settings) ? settings.forced != WEIR_NATIVE
				    : ns > settings.latency && !is_bearable(client, ns);
}

/* Launched before its tuned was made, perhaps. */
static struct tuned_kernel *tuned_of(const struct sampled *of)
{
	struct tuned_kernel *tuned = of->tuned ? of->tuned : atomic_load(&of->kernel->tuned);

	return tuned && atomic_load(&tuned->key) == of->key ? tuned : NULL;
}

static void consider(struct client *client, const struct sampled *of, uint64_t ns)
{
	struct tuned_kernel *tuned;

	if (!of->formable || !is_long(client, ns) || geometry_blocks(&of->geometry) > INT32_MAX)
		return;
	tuned = take_record();
	if (!tuned)
		return;
	tuned->state = TUNING_WANTED;
	tuned->client = client;
	tuned->geometry = of->geometry;
	tuned->unloads = of->unloads;
	tuned->native = ns ? ns : 1;
	tuned->made_for = 0;
	tuned->evicted = tuned->unsure = 0;
	tuned->strange = 0;
	tuned->seen_at = client_now();
	tuned->n = 1;
	tuned->candidates[0] = (struct candidate){0};
	tuned->function = NULL;
	tuned->trying = tuned->turns = tuned->refused = tuned->brief = 0;
	tuned->quickest = 1;
	tuning_use(tuned, 0);
	atomic_store(&tuned->key, of->key);
	atomic_store(&is_open[client->index], 1);
	if (atomic_load(&of->kernel->key) == of->key)
		atomic_store(&of->kernel->tuned, tuned);
}

/* Of what others may have made longer, no more than is known of the kernel: else one that is short
 * enough as it is would get a form among them. */
static uint64_t believed(const struct sampled *of, uint64_t ns, bool crowded)
{
	uint64_t mean = kernel_mean(of->kernel);

	return crowded && mean && mean < ns ? mean : ns;
}

void tuning_runs(struct client *client, const struct sample *sample, uint64_t ns, bool crowded)
{
	struct tuned_kernel *tuned = tuned_of(&sample->of);

	if (!tuned)
		consider(client, &sample->of, believed(&sample->of, ns, crowded));
	else if (tuned->state == TUNING_WANTED && ns > tuned->native)
		tuned->native = ns;
	if (tuned)
		tuned->seen_at = client_now();
}

/* Of a launch in a form that took @ns. */
static uint64_t would_take_natively(const struct tuned_kernel *tuned, uint32_t candidate,
				    uint64_t ns)
{
	double ratio = candidate ? tuned->candidates[candidate].ratio : 1;

	return ratio > 0 ? (uint64_t)((double)ns / ratio) : ns;
}

/* Some samples of quite another time, of the native kernel or of what was chosen: other candidates
 * may suit it better now. */
static void check_time(struct tuned_kernel *tuned, uint32_t candidate, uint64_t ns, bool crowded)
{
	bool chosen = tuned->state == TUNING_SETTLED && tuning_uses(tuned, candidate);

	if (tuned->state == TUNING_WANTED || is_forced(&settings) || (candidate && !chosen))
		return;
	uint64_t now = client_now();
	ns = would_take_natively(tuned, candidate, ns);
	if (ns / 2 <= tuned->made_for && ns >= tuned->made_for / 2)
		tuned->strange = 0;
	else if (tuned->strange++ == 0)
		tuned->strange_at = now;
	else if (tuned->strange >= (crowded ? STRANGE_CROWDED : STRANGE) &&
		 now - tuned->strange_at >= STRANGE_FOR && tuned->n < CANDIDATES_MAX &&
		 tuned->made_for && !atomic_load(&tuned->refused)) {
		tuned->native = ns ? ns : 1;
		tuned->state = TUNING_WANTED;
		atomic_store(&is_open[atomic_load(&tuned->client)->index], 1);
	}
}

/* Of others' making it is longer, never shorter: of many the least is near to the truth. */
static void learn_dirty(struct candidate *candidate, const struct sample *sample, uint64_t ns)
{
	candidate->dirty++;
	if (!sample_evicted(sample) && (!candidate->least || ns < candidate->least))
		candidate->least = ns;
}

void tuning_learn(struct client *client, const struct sample *sample, uint64_t ns, bool crowded)
{
	const struct sampled *of = &sample->of;
	struct tuned_kernel *tuned = tuned_of(of);

	if (!tuned) {
		consider(client, of, believed(of, ns, crowded));
		tuned = tuned_of(of);
	}
	if (!tuned || of->candidate >= tuned->n)
		return;
	tuned->seen_at = client_now();
	struct candidate *candidate = &tuned->candidates[of->candidate];
	bool clean = !sample_evicted(sample) && !sample->disturbed;
	if (clean)
		candidate->times[candidate->clean++ % TRIAL_TIMES] = ns;
	else
		learn_dirty(candidate, sample, ns);
	if (of->candidate == 0 && trial_time(candidate))
		tuned->native = trial_time(candidate);
	if (clean)
		check_time(tuned, of->candidate, ns, crowded);
	if (tuned->state == TUNING_COMPARING)
		trial_advance(tuned);
}

static void try_forms(struct tuned_kernel *tuned, const struct rewritten *rewritten)
{
	tuned->first = tuned->n;
	tuned->made_for = tuned->native;
	tuned->strange = 0;
	tuned->untried = 0;
	launch_configs_add(tuned, rewritten, &settings,
			   client_waiting(atomic_load(&tuned->client), tuned->native));
	expect_evictions(tuned);
	if (tuned->n == tuned->first) {
		if (is_forced(&settings))
			log_info("kernel %s cannot be %s here: it runs as it is", trial_name(tuned),
				 form_names[settings.forced]);
		trial_settle(tuned, 0, "no form of it can be launched so");
	} else if (is_forced(&settings)) {
		trial_settle(tuned, 1, "forced");
	} else {
		trial_begin(tuned, (uint32_t)tuned->first);
	}
}

/* A client for whom others make room is not disturbed by forms of kernels that end as soon as its
 * next gate comes; nor is anybody while those above can wait for them. */
static bool is_of_use(const struct tuned_kernel *tuned, const struct client *client)
{
	const struct level_binding *binding = atomic_load(&client->binding);

	if (is_forced(&settings))
		return true;
	return !is_bearable(client, tuned->native) &&
	       ((binding && !binding->level) || trial_is_waited(tuned) ||
		tuned->native >= GATE_INTERVAL_ALONE);
}

/* What was good enough for equals may not be for others. */
static bool is_unfinished(const struct tuned_kernel *tuned)
{
	return tuned->state == TUNING_SETTLED && tuned->untried;
}

/* Nothing can be done yet for one that is at the agent. */
static bool is_due(const struct tuned_kernel *tuned, const struct client *client)
{
	if (!atomic_load(&tuned->key) || tuned->client != client)
		return false;
	if (is_unfinished(tuned))
		return client_waiting(client, tuned->native) != WAITED_LONG;
	if (tuned->state != TUNING_WANTED || !is_of_use(tuned, client))
		return false;
	const struct function *function = atomic_load(&tuned->function);
	if (!function)
		return true;
	int state = atomic_load(&function->state);
	return state != FUNCTION_WANTED && state != FUNCTION_REQUESTED;
}

bool tuning_pending(const struct client *client)
{
	bool more = false;

	for (size_t i = 0; atomic_load(&is_open[client->index]) && i < n_choices; i++) {
		const struct tuned_kernel *tuned = &choices[i];
		if (is_due(tuned, client))
			return true;
		more |= atomic_load(&tuned->key) && tuned->client == client &&
			(tuned->state != TUNING_SETTLED || tuned->untried);
	}
	/* This thread alone makes choices, so none came meanwhile. */
	atomic_store(&is_open[client->index], more);
	return false;
}

static bool is_comparing(const struct tuned_kernel *tuned, const struct client *client,
			 uint64_t now)
{
	bool open = tuned->state == TUNING_COMPARING ||
		    (tuned->state == TUNING_WANTED && is_of_use(tuned, client));

	return atomic_load(&tuned->key) && tuned->client == client && open &&
	       now - tuned->seen_at < LAUNCHED_FOR;
}

uint64_t tuning_count(const struct client *client)
{
	uint64_t now = client_now(), n = 0;

	for (size_t i = 0; atomic_load(&is_open[client->index]) && i < n_choices; i++)
		n += is_comparing(&choices[i], client, now);
	return n;
}

static void ask(struct tuned_kernel *tuned)
{
	/* What it was launched by may be no handle any more. */
	if (tuned->unloads != function_unloads()) {
		atomic_store(&tuned->key, 0);
		return;
	}
	struct function *function =
		function_find(tuned->client, (CUfunction)tuned->geometry.function);

	atomic_store(&tuned->function, function);
	if (function)
		function_want(function);
	else
		trial_settle(tuned, 0, "too many kernels");
}

static void decide(struct tuned_kernel *tuned)
{
	struct function *function = atomic_load(&tuned->function);
	const struct rewritten *rewritten = atomic_load(&function->rewritten);

	if (atomic_load(&function->state) == FUNCTION_READY && rewritten)
		try_forms(tuned, rewritten);
	else
		trial_settle(tuned, 0, "it is not rewritten");
}

void tuning_work(struct client *client)
{
	for (size_t i = 0; i < n_choices; i++) {
		struct tuned_kernel *tuned = &choices[i];
		if (is_due(tuned, client) && is_unfinished(tuned))
			trial_resume(tuned);
		else if (is_due(tuned, client) && !atomic_load(&tuned->function))
			ask(tuned);
		else if (is_due(tuned, client))
			decide(tuned);
	}
}

void tuning_code_gone(const struct function *function)
{
	for (size_t i = 0; i < n_choices; i++) {
		if (atomic_load(&choices[i].function) == function)
			atomic_store(&choices[i].key, 0);
	}
}

const struct tuned_kernel *tuning_at(size_t index)
{
	return index < n_choices ? &choices[index] : NULL;
}

void tuning_forget(struct client *client)
{
	for (size_t i = 0; i < n_choices; i++) {
		if (choices[i].client == client)
			atomic_store(&choices[i].key, 0);
	}
}
