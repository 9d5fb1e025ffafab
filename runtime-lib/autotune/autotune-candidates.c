#include "autotune/autotune-candidates.h"

#include "autotune/launch-config.h"

#include "weir/base.h"
#include "weir/log.h"

static const struct sampling {
	uint64_t below; /* ns of the native kernel */
	unsigned clean; /* samples that decide, by their median */
	unsigned most;  /* samples altogether, spoiled ones included */
} samplings[] = {SAMPLING};

static const struct sampling *sampling_of(const struct autotuner *tuner)
{
	const struct sampling *sampling = samplings;

	while (tuner->native >= sampling->below)
		sampling++;
	return sampling;
}

/* Samples. */

void candidate_add(struct candidate *candidate, const struct autotune_sample *sample)
{
	if (!sample->evicted && !sample->disturbed) {
		candidate->times[candidate->clean++ % SAMPLE_TIMES] = sample->ns;
		return;
	}
	candidate->spoiled++;
	/* Others make a sample longer, never shorter, so the least is nearest to the truth. */
	if (!sample->evicted &&
	    (!candidate->least_spoiled || sample->ns < candidate->least_spoiled))
		candidate->least_spoiled = sample->ns;
}

/* At most so many of the clean samples, and of the spoiled ones. */
static void keep(struct candidate *candidate, unsigned most)
{
	candidate->clean = smaller(candidate->clean, most);
	candidate->spoiled = smaller(candidate->spoiled, most);
	if (!candidate->spoiled)
		candidate->least_spoiled = 0;
}

static void forget(struct candidate *candidate)
{
	keep(candidate, 0);
}

static unsigned seen(const struct candidate *candidate)
{
	return candidate->clean + candidate->spoiled;
}

static uint64_t median(const struct candidate *candidate)
{
	unsigned n = smaller(candidate->clean, SAMPLE_TIMES);
	uint64_t sorted[SAMPLE_TIMES] = {0};

	for (unsigned i = 0; i < n; i++) {
		unsigned k = i;
		for (; k && sorted[k - 1] > candidate->times[i]; k--)
			sorted[k] = sorted[k - 1];
		sorted[k] = candidate->times[i];
	}
	return n ? sorted[(n - 1) / 2] : 0;
}

uint64_t candidate_time(const struct candidate *candidate)
{
	return candidate->clean ? median(candidate) : candidate->least_spoiled;
}

/* 1.0 also for a candidate that was evicted in every sample: nothing speaks against it. */
static double ratio_of(const struct autotuner *tuner, const struct candidate *candidate)
{
	uint64_t time = candidate_time(candidate);

	return time ? (double)time / (double)tuner->native : 1.0;
}

/* One spoiled sample proves nothing. */
static bool is_hopeless(const struct autotuner *tuner, const struct candidate *candidate)
{
	return (candidate->clean || candidate->spoiled >= FIRST_WAITED) &&
	       ratio_of(tuner, candidate) > OVERHEAD_HOPELESS;
}

/* The log. */

static const char *const build_names[BUILDS_MAX] = {"", " narrow", " wide"};

static void describe(const struct autotuner *tuner, uint32_t candidate, const char *why)
{
	const struct candidate *chosen = &tuner->candidates[candidate];
	const struct launch_config *config = &chosen->config;

	log_debug("kernel %s, %llu blocks, %llu us: %s%s, chunk %llu%s%s%s, %llu us (%s)",
		  tuner->name, (unsigned long long)launch_blocks(tuner),
		  (unsigned long long)tuner->native / 1000, form_name(config->form),
		  candidate ? "" : " as it is",
		  (unsigned long long)(candidate ? launch_config_chunk(tuner, config) : 0),
		  config->hidden.ahead ? " ahead" : "", build_names[config->build],
		  config->hidden.across > 1 ? " apart" : "",
		  (unsigned long long)candidate_time(chosen) / 1000, why);
}

static void describe_all(const struct autotuner *tuner, const char *why)
{
	const char *reasons[WAITING_COUNT] = {why, "while same-level clients wait",
					      "while somebody waits"};
	uint32_t usual = atomic_load(&tuner->in_use[WAITING_NOBODY]);

	for (size_t i = 0; log_enabled(LOG_DEBUG) && i < WAITING_COUNT; i++) {
		uint32_t candidate = atomic_load(&tuner->in_use[i]);
		if (i == WAITING_NOBODY || candidate != usual)
			describe(tuner, candidate, reasons[i]);
	}
}

/* The cost of a launch, relative to a native one. */
static double launch_cost(const struct autotuner *tuner, const struct candidate *candidate)
{
	(void)tuner;
	return candidate->ratio;
}

/* The cost of a quantum among same-level clients, relative to native launches. The form makes all
 * of it longer, and at its end the GPU waits for the last block. Slices have no such end: the next
 * client begins where a slice ends. */
static double quantum_cost(const struct autotuner *tuner, const struct candidate *candidate)
{
	double end = (double)launch_config_leave_time(tuner, &candidate->config) / LONG_KERNEL_NS;

	return candidate->ratio + (candidate->config.form == WEIR_SLICED ? 0 : end);
}

typedef double cost_fn(const struct autotuner *tuner, const struct candidate *candidate);

/* Its overhead is at most @most, and it leaves within @ns. */
static bool qualifies(const struct autotuner *tuner, const struct candidate *candidate, double most,
		      uint64_t ns)
{
	return candidate->ratio <= most &&
	       launch_config_leave_time(tuner, &candidate->config) <= ns;
}

/* The candidate of this round that costs least; 0: none is good enough. */
static uint32_t cheapest(const struct autotuner *tuner, cost_fn *cost, double most, uint64_t ns)
{
	const struct candidate *candidates = tuner->candidates;
	uint32_t best = 0;

	for (size_t i = tuner->first; i < tuner->n; i++) {
		if (qualifies(tuner, &candidates[i], most, ns) &&
		    (!best || cost(tuner, &candidates[i]) < cost(tuner, &candidates[best])))
			best = (uint32_t)i;
	}
	return best;
}

/* The candidate to use while nobody waits; 0: native. */
static uint32_t winner(const struct autotuner *tuner)
{
	uint32_t best = cheapest(tuner, launch_cost, OVERHEAD_MAX, UINT64_MAX);

	return candidate_time(&tuner->candidates[best]) ? best : 0;
}

static bool leaves_as_soon(const struct launch_config *config, const struct launch_config *other)
{
	return config->form == other->form && config->hidden.chunk + config->hidden.ahead <=
						      other->hidden.chunk + other->hidden.ahead;
}

/* Candidates are tried in the order in which they leave. So take the first with an acceptable
 * overhead, or a faster one that leaves as soon. */
static uint32_t soonest(const struct autotuner *tuner, uint64_t ns)
{
	const struct candidate *candidates = tuner->candidates;
	uint32_t best = 0;

	for (size_t i = tuner->first; i < tuner->n; i++) {
		if (qualifies(tuner, &candidates[i], OVERHEAD_SOON, ns) &&
		    (!best || (leaves_as_soon(&candidates[i].config, &candidates[best].config) &&
			       candidates[i].ratio < candidates[best].ratio)))
			best = (uint32_t)i;
	}
	return best;
}

/* Of those that leave later than the latency the one that leaves first; 0: none is good enough. A
 * little overhead more of one client is less than what each request of those above would wait. */
static uint32_t first_to_leave(const struct autotuner *tuner, double most)
{
	uint64_t least = UINT64_MAX;
	uint32_t best = 0;

	for (size_t i = tuner->first; i < tuner->n; i++) {
		const struct candidate *candidate = &tuner->candidates[i];
		uint64_t ns = launch_config_leave_time(tuner, &candidate->config);
		if (candidate->ratio <= most && ns < least) {
			best = (uint32_t)i;
			least = ns;
		}
	}
	return best;
}

/* While somebody waits: one that leaves later than the latency only if there is no other. */
static uint32_t winner_waited(const struct autotuner *tuner)
{
	uint64_t latency = tuner->settings->latency;
	uint32_t best = soonest(tuner, latency);

	if (!best)
		best = cheapest(tuner, launch_cost, OVERHEAD_WAITED, latency);
	if (!best)
		best = soonest(tuner, UINT64_MAX);
	return best ? best : first_to_leave(tuner, OVERHEAD_WAITED);
}

static uint32_t winner_same_level(const struct autotuner *tuner)
{
	uint32_t soon = cheapest(tuner, quantum_cost, OVERHEAD_WAITED, LEAVE_QUANTUM_NS);

	return soon ? soon : cheapest(tuner, quantum_cost, OVERHEAD_WAITED, UINT64_MAX);
}

/* The candidates that are left could not be much better for those who wait. @other_form: they are
 * of another form than those that were tried. */
static bool is_enough(const struct autotuner *tuner, enum waiting waiting, bool other_form)
{
	uint32_t best;

	switch (waiting) {
	case WAITING_SAME_LEVEL:
		best = cheapest(tuner, quantum_cost, OVERHEAD_WAITED, LEAVE_QUANTUM_NS);
		return best && quantum_cost(tuner, &tuner->candidates[best]) <= OVERHEAD_QUANTUM;
	case WAITING_URGENT:
		return other_form ? winner(tuner) || winner_waited(tuner)
				  : soonest(tuner, UINT64_MAX) != 0;
	default:
		return other_form && winner(tuner);
	}
}

/* The end of a comparison. */

static double best_ratio(const struct autotuner *tuner)
{
	double least = 1;

	for (size_t i = 0; i < WAITING_COUNT; i++) {
		uint32_t candidate = atomic_load(&tuner->in_use[i]);
		double ratio = candidate ? tuner->candidates[candidate].ratio : 1;
		if (ratio > 0 && ratio < least)
			least = ratio;
	}
	return least;
}

static void settle(struct autotuner *tuner, const char *why)
{
	describe_all(tuner, why);
	atomic_store(&tuner->best_ratio, best_ratio(tuner));
	tuner->state = AUTOTUNE_SETTLED;
	tuner->goes_on = false;
	atomic_store(&tuner->comparing, 0);
}

void candidate_settle(struct autotuner *tuner, uint32_t candidate, const char *why)
{
	candidate_use(tuner, candidate);
	tuner->measured = false;
	settle(tuner, why);
}

void candidate_settle_known(struct autotuner *tuner, const uint32_t candidates[WAITING_COUNT],
			    const char *why)
{
	for (size_t i = 0; i < WAITING_COUNT; i++)
		atomic_store(&tuner->in_use[i], candidates[i]);
	tuner->measured = false;
	settle(tuner, why);
}

static void settle_measured(struct autotuner *tuner)
{
	atomic_store(&tuner->in_use[WAITING_NOBODY], winner(tuner));
	atomic_store(&tuner->in_use[WAITING_SAME_LEVEL], winner_same_level(tuner));
	atomic_store(&tuner->in_use[WAITING_URGENT], winner_waited(tuner));
	tuner->measured = true;
	tuner->profiled = false;
	settle(tuner, winner(tuner) ? "measured" : "every form is more than 2 % slower");
}

/* The course of a comparison. */

/* Higher-level clients wait, and a native launch would make them wait for @ns or longer. */
static bool is_in_the_way(const struct autotuner *tuner, const struct autotune_situation *at,
			  uint64_t ns)
{
	return waiting_for(at->waiting, tuner->native) == WAITING_URGENT && tuner->native >= ns;
}

/* Launches in a form until a sample was read. */
static int32_t first_grants(const struct autotuner *tuner, const struct autotune_situation *at)
{
	if (is_in_the_way(tuner, at, NATIVE_NEVER_NS))
		return GRANTED_WAITED;
	return candidate_is_waited(tuner, at) ? FIRST_WAITED : 1;
}

void candidate_compare(struct autotuner *tuner, const struct autotune_situation *at,
		       uint32_t candidate)
{
	bool serve_all = (tuner->state == AUTOTUNE_COMPARING || tuner->goes_on) &&
			 is_in_the_way(tuner, at, 0);

	/* Both are measured at the same time: the kernel may have had less to do before. But
	 * native launches that higher-level clients wait for serve all candidates. */
	keep(&tuner->candidates[0], serve_all ? NATIVES_URGENT : 0);
	tuner->rechecked = tuner->goes_on = false;
	tuner->native_at = at->now;
	atomic_store(&tuner->native_grants, 0);
	atomic_store(&tuner->form_grants, first_grants(tuner, at));
	candidate_use(tuner, candidate);
	atomic_store(&tuner->comparing, 1);
	tuner->state = AUTOTUNE_COMPARING;
}

void candidate_compare_again(struct autotuner *tuner, const struct autotune_situation *at,
			     uint32_t candidate)
{
	forget(&tuner->candidates[candidate]);
	candidate_compare(tuner, at, candidate);
}

/* The least of many measured ratios is smaller than the true one. So the best candidate is measured
 * again, and if it fails, the next best. */
static void confirm(struct autotuner *tuner, const struct autotune_situation *at)
{
	uint32_t best = winner(tuner);

	if (!best || tuner->candidates[best].confirming || candidate_is_waited(tuner, at)) {
		settle_measured(tuner);
		return;
	}
	tuner->candidates[best].confirming = true;
	candidate_compare_again(tuner, at, best);
}

static void next_candidate(struct autotuner *tuner, const struct autotune_situation *at)
{
	uint32_t current = atomic_load(&tuner->in_use[WAITING_NOBODY]), next = current + 1;
	struct candidate *tried = &tuner->candidates[current];
	enum waiting waiting = waiting_for(at->waiting, tuner->native);

	tried->ratio = ratio_of(tuner, tried);
	log_debug("kernel %s: candidate %u takes %.3f of the native time", tuner->name, current,
		  tried->ratio);
	bool more = next < tuner->n && !tried->confirming;
	bool other = more && tuner->candidates[next].config.form != tried->config.form;
	bool enough = is_enough(tuner, waiting, other);
	tuner->postponed = more && enough && waiting == WAITING_SAME_LEVEL ? next : 0;
	if (tuner->postponed || (more && !enough)) /* before any launch is made so */
		launch_config_refine(tuner, next);
	if (more && !enough)
		candidate_compare(tuner, at, next);
	else
		confirm(tuner, at);
}

/* The kernel may have more to do than when its native time was measured. Native launches follow,
 * and the candidate is measured again if that was not its first launch. */
static void recheck(struct autotuner *tuner, struct candidate *tried)
{
	bool again = seen(tried) > 1;

	tuner->rechecked = true;
	forget(&tuner->candidates[0]);
	if (again)
		forget(tried);
	atomic_store(&tuner->form_grants, again);
}

/* A confirmation takes more samples, unless somebody waits. */
static unsigned samples_wanted(const struct autotuner *tuner, const struct autotune_situation *at,
			       const struct candidate *tried, unsigned usual)
{
	return tried->confirming && !candidate_is_waited(tuner, at) ? CONFIRM_FACTOR * usual
								    : usual;
}

static uint64_t native_every(const struct autotuner *tuner, const struct autotune_situation *at)
{
	uint64_t native = tuner->native;

	if (waiting_for(at->waiting, native) == WAITING_SAME_LEVEL)
		return smaller(NATIVE_PARTS * native, NATIVE_EVERY_NS);
	return larger(NATIVE_URGENT_PARTS * native, NATIVE_URGENT_NS);
}

/* Each is what a higher-level client waits for. */
static unsigned natives_wanted(const struct autotuner *tuner, const struct autotune_situation *at,
			       unsigned wanted)
{
	if (is_in_the_way(tuner, at, NATIVE_COSTLY_NS))
		return 1;
	return is_in_the_way(tuner, at, 0) ? smaller(wanted, NATIVES_URGENT) : wanted;
}

/* The candidate is not hopeless: grants the next launches. */
static void go_on(struct autotuner *tuner, const struct autotune_situation *at,
		  const struct candidate *tried)
{
	unsigned wanted = samples_wanted(tuner, at, tried, sampling_of(tuner)->clean);

	if (!candidate_is_waited(tuner, at)) {
		atomic_store(&tuner->form_grants, (int32_t)wanted);
		return;
	}
	atomic_store(&tuner->form_grants, GRANTED_WAITED);
	if (!is_in_the_way(tuner, at, NATIVE_NEVER_NS) &&
	    seen(&tuner->candidates[0]) < natives_wanted(tuner, at, wanted) &&
	    at->now - tuner->native_at > native_every(tuner, at)) {
		tuner->native_at = at->now;
		atomic_store(&tuner->native_grants, 1);
	}
}

/* The samples suffice to judge the candidate. */
static bool is_compared(const struct autotuner *tuner, const struct autotune_situation *at,
			const struct candidate *tried)
{
	const struct candidate *native = &tuner->candidates[0];
	const struct sampling *sampling = sampling_of(tuner);
	unsigned enough = samples_wanted(tuner, at, tried, sampling->clean);
	unsigned most = samples_wanted(tuner, at, tried, sampling->most);

	return candidate_time(native) &&
	       (is_hopeless(tuner, tried) || (seen(native) >= natives_wanted(tuner, at, enough) &&
					      (tried->clean >= enough || seen(tried) >= most)));
}

/* Same-level clients wait now, and an earlier candidate is good enough for them. */
static bool can_be_postponed(const struct autotuner *tuner, const struct autotune_situation *at,
			     const struct candidate *tried)
{
	return !tried->confirming &&
	       waiting_for(at->waiting, tuner->native) == WAITING_SAME_LEVEL &&
	       is_enough(tuner, WAITING_SAME_LEVEL, false);
}

void candidates_advance(struct autotuner *tuner, const struct autotune_situation *at)
{
	unsigned natives = seen(&tuner->candidates[0]);
	uint32_t current = atomic_load(&tuner->in_use[WAITING_NOBODY]);
	struct candidate *tried = &tuner->candidates[current];

	if (atomic_load(&tuner->refused)) {
		candidate_settle(tuner, 0, "the driver takes no launch in a form");
	} else if (natives >= GIVE_UP_AFTER) {
		candidate_settle(tuner, 0, "no launch could be made in a form");
	} else if (can_be_postponed(tuner, at, tried)) {
		tuner->postponed = current;
		settle_measured(tuner);
	} else if (!seen(tried)) {
		if (natives % REGRANT_EVERY == REGRANT_EVERY - 1)
			atomic_store(&tuner->form_grants, 1);
	} else if (!tuner->rechecked && is_hopeless(tuner, tried) && !is_in_the_way(tuner, at, 0)) {
		recheck(tuner, tried);
	} else if (is_compared(tuner, at, tried)) {
		next_candidate(tuner, at);
	} else if (natives || (candidate_is_waited(tuner, at) && !tuner->rechecked)) {
		go_on(tuner, at, tried);
	}
}
