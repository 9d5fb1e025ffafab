#include "autotune/autotune.h"

#include "autotune/autotune-candidates.h"
#include "autotune/launch-config.h"

#include "weir/log.h"

/* Higher-level clients can wait for the end of a kernel this short. */
static bool is_bearable(const struct autotune_settings *settings,
			const struct autotune_situation *at, uint64_t ns)
{
	return !settings->latency_given && ns <= at->max_blocking_time;
}

bool autotune_is_long(const struct autotune_settings *settings, const struct autotune_situation *at,
		      uint64_t ns)
{
	return autotune_forces(settings) ? settings->forced != WEIR_NATIVE
					 : ns > settings->latency && !is_bearable(settings, at, ns);
}

void autotune_init(struct autotuner *tuner, const struct autotune_settings *settings,
		   const unsigned grid[3], uint64_t ns, uint64_t now)
{
	tuner->settings = settings;
	tuner->name = "?";
	for (size_t i = 0; i < 3; i++)
		tuner->grid[i] = grid[i];
	tuner->state = AUTOTUNE_WANTED;
	tuner->native = larger(ns, 1);
	tuner->tuned_for = 0;
	tuner->evictions = tuner->chain_unsure = 0;
	tuner->chain = 0;
	tuner->outliers = tuner->postponed = 0;
	tuner->measured = tuner->profiled = false;
	tuner->guessed = tuner->goes_on = false;
	tuner->seen_at = now;
	tuner->n = 1;
	tuner->candidates[0] = (struct candidate){0};
	tuner->comparing = tuner->compared = tuner->refused = 0;
	tuner->short_blocks = tuner->gives_places = 0;
	tuner->assumed = 0;
	tuner->best_ratio = 1;
	candidate_use(tuner, 0);
}

void autotune_init_unknown(struct autotuner *tuner, const struct autotune_settings *settings,
			   const unsigned grid[3], uint64_t now)
{
	autotune_init(tuner, settings, grid, UNKNOWN_NS, now);
	tuner->assumed = 1;
}

/* Launch path. */

static bool take_one(_Atomic int32_t *grants)
{
	return load_relaxed(grants) > 0 &&
	       atomic_fetch_sub_explicit(grants, 1, memory_order_relaxed) > 0;
}

/* While comparing. The multiplication (Knuth's hash) decorrelates native launches from any period
 * in the program. */
static bool runs_natively(struct autotuner *tuner, bool waited)
{
	uint32_t launch = add_relaxed(&tuner->compared, 1);

	return (waited ? take_one(&tuner->native_grants)
		       : (launch * 2654435761u >> 16) % NATIVE_ONE_IN == 0) ||
	       !take_one(&tuner->form_grants);
}

/* Clients whose launches overtake this one's short blocks do not wait for the kernel. */
static enum waiting waiting_settled(const struct autotuner *tuner,
				    const struct autotune_situation *at,
				    const struct autotune_launch *launch)
{
	bool overtaken = launch->overtaken && launch->native >= LONG_KERNEL_NS &&
			 load_relaxed(&tuner->short_blocks);

	return overtaken ? WAITING_NOBODY : waiting_for(at->waiting, launch->native);
}

/* A profile may say that the kernel is native while nobody waits. But this launch may have more to
 * do than those that the profile was made of, so it must be able to leave: it takes the form for
 * others that wait. If there is none, the samples that any new kernel gets show its time. */
static struct launch_decision decide_assumed(struct autotuner *tuner)
{
	uint32_t usual = load_acquire(&tuner->in_use[WAITING_NOBODY]);
	uint32_t candidate = usual ? usual : load_acquire(&tuner->in_use[WAITING_URGENT]);

	return (struct launch_decision){.candidate = candidate,
					.config = candidate ? &tuner->candidates[candidate].config
							    : NULL,
					.chain = load_relaxed(&tuner->chain),
					.yields = true,
					.sample = candidate != 0,
					.apart = true,
					.forms = true};
}

/* Several launches are queued before the first of them tells how often it was evicted. Behind its
 * last continuation each of them would be in the way until it ends. That holds for those that are
 * queued when somebody above comes, too. */
static uint32_t chain_of(const struct autotuner *tuner, bool likely, uint64_t native)
{
	uint64_t least = likely ? native / CHAIN_WAITED_NS + 1 : 0;

	return (uint32_t)larger(load_relaxed(&tuner->chain), smaller(least, CHAIN_MAX));
}

const struct launch_config *autotune_bounded(const struct autotuner *tuner,
					     const struct launch_config *other)
{
	uint32_t candidate = atomic_load(&tuner->in_use[WAITING_URGENT]);
	const struct launch_config *config = &tuner->candidates[candidate].config;

	return candidate && config->form != WEIR_SLICED ? config : other;
}

/* With fewer workers than fit it takes longer, and a native launch would take the SMs of those for
 * whom it is bounded. So nothing is compared. */
static bool is_bounded(const struct autotuner *tuner, const struct autotune_launch *launch)
{
	uint32_t candidate = load_acquire(&tuner->in_use[WAITING_URGENT]);

	return launch->workers && candidate &&
	       launch->workers < tuner->candidates[candidate].config.workers;
}

struct launch_decision autotune_decide(struct autotuner *tuner, const struct autotune_situation *at,
				       const struct autotune_launch *launch)
{
	struct launch_decision decision = {0};
	const struct autotune_settings *settings = tuner->settings;
	enum waiting settled = waiting_settled(tuner, at, launch), waiting = settled;
	uint64_t too_short = settled == WAITING_NOBODY ? launch->short_alone : launch->short_waited;

	if (load_relaxed(&tuner->assumed))
		return decide_assumed(tuner);
	decision.sample = load_relaxed(&tuner->comparing) && !is_bounded(tuner, launch);
	if (decision.sample)
		waiting = waiting_for(at->waiting, launch->native);
	decision.candidate = load_acquire(&tuner->in_use[waiting]);
	decision.forms = decision.candidate || load_relaxed(&tuner->state) != AUTOTUNE_SETTLED;
	if (decision.sample) {
		if (runs_natively(tuner, waiting != WAITING_NOBODY))
			decision.candidate = 0;
	} else if (launch->places && load_relaxed(&tuner->gives_places) &&
		   !autotune_forces(settings)) {
		decision.candidate = 0;
		decision.places = true;
	} else if ((launch->native < too_short || is_bearable(settings, at, launch->native)) &&
		   !autotune_forces(settings)) {
		decision.candidate = 0;
	}
	if (!decision.candidate)
		return decision;
	/* Leaving costs a same-level client more than waiting for the end of a short kernel. */
	decision.yields = waiting != WAITING_NOBODY || launch->native >= LONG_KERNEL_NS ||
			  autotune_forces(settings);
	decision.config = &tuner->candidates[decision.candidate].config;
	decision.chain =
		chain_of(tuner, launch->above || waiting == WAITING_URGENT, launch->native);
	return decision;
}

void autotune_refused(struct autotuner *tuner)
{
	atomic_store(&tuner->refused, 1);
	atomic_store(&tuner->comparing, 0);
	candidate_use(tuner, 0);
}

/* Worker: the chain of continuations. */

static void set_chain(struct autotuner *tuner)
{
	uint64_t spare = tuner->native < CHAIN_SHORT_NS    ? 1
			 : tuner->native < CHAIN_MEDIUM_NS ? 2
							   : 3;
	uint64_t wanted = spare + 2 * tuner->evictions / 16;
	bool unknown = load_relaxed(&tuner->assumed) && tuner->native >= UNKNOWN_NS;
	uint64_t most = smaller(tuner->native / EVICTION_EVERY_NS + 1,
				unknown ? tuner->settings->chain_unknown : CHAIN_MAX);

	atomic_store(&tuner->chain,
		     (uint32_t)(tuner->chain_unsure || unknown ? most : smaller(wanted, most)));
}

/* Sets how many evictions the first launches in a form are expected to have. If the kernel's time
 * is not known, others are expected to wait even if nobody does at this moment. */
void autotune_expect_evictions(struct autotuner *tuner, const struct autotune_situation *at)
{
	bool likely_evicted = load_relaxed(&tuner->assumed) || candidate_is_waited(tuner, at);
	uint64_t likely = likely_evicted ? 16 * (tuner->native / EVICTION_WAITED_NS + 1) : 0;

	tuner->evictions = larger(tuner->evictions, likely);
	set_chain(tuner);
}

void autotune_evicted(struct autotuner *tuner, uint32_t evictions, uint32_t chain)
{
	uint64_t now = 16 * smaller(evictions, CHAIN_MAX);

	if (evictions >= chain) { /* a longer chain might have been evicted more often */
		tuner->chain_unsure = CHAIN_UNSURE;
		now *= 2;
	} else if (tuner->chain_unsure) {
		tuner->chain_unsure--;
	}
	if (now > tuner->evictions)
		tuner->evictions = now;
	else
		tuner->evictions -= (tuner->evictions + 15) / 16;
	set_chain(tuner);
}

/* Worker: samples. */

void autotune_runs(struct autotuner *tuner, uint64_t ns, uint64_t now)
{
	if (tuner->state == AUTOTUNE_WANTED && ns > tuner->native)
		tuner->native = ns;
	tuner->seen_at = now;
}

/* A kernel whose time has changed for good is tuned again: other candidates may suit it now. Only
 * samples of the native kernel and of a candidate in use count. */
static void check_time(struct autotuner *tuner, const struct autotune_situation *at,
		       const struct autotune_sample *sample)
{
	bool used = tuner->state == AUTOTUNE_SETTLED && autotune_uses(tuner, sample->candidate);
	double ratio = sample->candidate ? tuner->candidates[sample->candidate].ratio : 1;
	uint64_t ns = ratio > 0 ? (uint64_t)((double)sample->ns / ratio) : sample->ns;

	if (tuner->state == AUTOTUNE_WANTED || autotune_forces(tuner->settings) ||
	    (sample->candidate && !used))
		return;
	if (ns / 2 <= tuner->tuned_for && ns >= tuner->tuned_for / 2) {
		tuner->outliers = 0;
	} else if (!autotune_uses_forms(tuner) && !autotune_is_long(tuner->settings, at, ns)) {
		tuner->tuned_for = larger(ns, 1);
	} else if (tuner->outliers++ == 0) {
		tuner->outlier_since = at->now;
	} else if (tuner->outliers >= (sample->crowded ? OUTLIERS_CROWDED : OUTLIERS) &&
		   at->now - tuner->outlier_since >= OUTLIERS_FOR_NS && tuner->n < CANDIDATES_MAX &&
		   tuner->tuned_for && !atomic_load(&tuner->refused)) {
		tuner->native = larger(ns, 1);
		tuner->state = AUTOTUNE_WANTED;
	}
}

/* A kernel that is short needs no forms, and others get forms for their time. */
static void want_forms(struct autotuner *tuner, const struct autotune_situation *at)
{
	if (autotune_is_long(tuner->settings, at, tuner->native)) {
		tuner->state = AUTOTUNE_WANTED;
		return;
	}
	tuner->tuned_for = tuner->native;
	candidate_settle(tuner, 0, "it is short");
	tuner->measured = true; /* its next process begins natively */
	tuner->profiled = false;
}

/* The first native launch of a kernel whose candidates were made for the time that it took in a
 * form. If the native time is far shorter, they are made again: slices would be far too short. */
static void know_native(struct autotuner *tuner, const struct autotune_situation *at)
{
	tuner->guessed = false;
	if (tuner->state != AUTOTUNE_COMPARING || tuner->native >= tuner->tuned_for / 2 ||
	    tuner->n >= CANDIDATES_MAX)
		return;
	tuner->goes_on = true;
	/* While nobody waits the new ones may not be wanted, and the old ones are slow. */
	atomic_store(&tuner->comparing, 0);
	atomic_store(&tuner->in_use[WAITING_NOBODY], 0);
	want_forms(tuner, at);
}

/* A measured launch of a kernel that nobody knew, without its continuations. */
static void know(struct autotuner *tuner, const struct autotune_situation *at,
		 const struct autotune_sample *sample)
{
	struct candidate *candidate = &tuner->candidates[sample->candidate];

	candidate_add(candidate, sample);
	if (!candidate->clean && candidate->spoiled < UNKNOWN_SAMPLES)
		return;
	uint64_t ns = candidate_time(candidate);
	atomic_store(&tuner->assumed, 0);
	/* Evictions were expected because its time was not known. Each costs two continuations. */
	if (!candidate_is_waited(tuner, at))
		tuner->evictions = 0;
	bool fits = tuner->profiled && autotune_fits_profile(tuner, sample->candidate, ns);
	if (!fits)
		tuner->native = larger(ns ? ns : sample->ns, 1);
	set_chain(tuner);
	if (fits)
		return;
	tuner->guessed = sample->candidate != 0;
	want_forms(tuner, at);
}

void autotune_sample(struct autotuner *tuner, const struct autotune_situation *at,
		     const struct autotune_sample *sample)
{
	if (sample->candidate >= tuner->n)
		return;
	tuner->seen_at = at->now;
	if (atomic_load(&tuner->assumed)) {
		know(tuner, at, sample);
		return;
	}
	candidate_add(&tuner->candidates[sample->candidate], sample);
	if (sample->candidate == 0 && candidate_time(&tuner->candidates[0])) {
		tuner->native = candidate_time(&tuner->candidates[0]);
		if (tuner->guessed)
			know_native(tuner, at);
	}
	if (!sample->evicted && !sample->disturbed)
		check_time(tuner, at, sample);
	if (tuner->state == AUTOTUNE_COMPARING)
		candidates_advance(tuner, at);
}

/* Worker: forms. */

/* A client above others tries no form of a kernel that ends about when a gate would stop it, unless
 * somebody waits. */
static bool is_of_use(const struct autotuner *tuner, const struct autotune_situation *at)
{
	if (autotune_forces(tuner->settings))
		return true;
	return !is_bearable(tuner->settings, at, tuner->native) &&
	       (at->lowest_level || candidate_is_waited(tuner, at) ||
		tuner->native >= GATES_APART_NS);
}

enum autotune_need autotune_need(const struct autotuner *tuner, const struct autotune_situation *at)
{
	if (tuner->state == AUTOTUNE_SETTLED && tuner->postponed)
		return waiting_for(at->waiting, tuner->native) != WAITING_SAME_LEVEL
			       ? AUTOTUNE_NEEDS_RESUME
			       : AUTOTUNE_NEEDS_NOTHING;
	return tuner->state == AUTOTUNE_WANTED && is_of_use(tuner, at) ? AUTOTUNE_NEEDS_FORMS
								       : AUTOTUNE_NEEDS_NOTHING;
}

void autotune_forms(struct autotuner *tuner, const struct autotune_situation *at,
		    const struct kernel_facts *facts)
{
	const struct autotune_settings *settings = tuner->settings;

	tuner->first = tuner->n;
	tuner->tuned_for = tuner->native;
	tuner->outliers = 0;
	tuner->postponed = 0;
	launch_configs_add(tuner, facts, waiting_for(at->waiting, tuner->native));
	autotune_expect_evictions(tuner, at);
	if (tuner->n == tuner->first) {
		if (autotune_forces(settings))
			log_info("kernel %s cannot be %s here: it runs as it is", tuner->name,
				 form_name(settings->forced));
		candidate_settle(tuner, 0, "no form of it can be launched so");
	} else if (autotune_forces(settings)) {
		candidate_settle(tuner, 1, "forced");
	} else if (atomic_load(&tuner->assumed)) {
		candidate_settle(tuner, (uint32_t)tuner->first, "nobody has launched it yet");
	} else {
		candidate_compare(tuner, at, (uint32_t)tuner->first);
	}
}

void autotune_no_forms(struct autotuner *tuner, const char *why)
{
	candidate_settle(tuner, 0, why);
}

void autotune_resume(struct autotuner *tuner, const struct autotune_situation *at)
{
	candidate_compare_again(tuner, at, tuner->postponed);
}

bool autotune_is_active(const struct autotuner *tuner, const struct autotune_situation *at)
{
	bool open = tuner->state == AUTOTUNE_COMPARING ||
		    (tuner->state == AUTOTUNE_WANTED && is_of_use(tuner, at));

	return open && at->now - tuner->seen_at < LAUNCHED_FOR_NS;
}
