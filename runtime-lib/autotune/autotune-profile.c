/* Profiles: what another process found out, instead of a comparison; and what this one did. */
#include "autotune/autotune-candidates.h"
#include "autotune/autotune.h"
#include "autotune/launch-config.h"

#include "weir/base.h"
#include "weir/log.h"

#include <string.h>

#define MILLION 1e6

static_assert((int)WEIR_PROFILE_CHOICES == (int)WAITING_COUNT, "a choice by who waits");

/* The candidate of a choice, which is added unless an earlier choice is the same. False: it cannot
 * be launched so. */
static bool take_choice(struct autotuner *tuner, const struct kernel_facts *facts,
			const struct weir_profile *profile, size_t i, uint32_t in_use[])
{
	const struct weir_profile_choice *choice = &profile->choices[i];
	struct launch_config config;

	in_use[i] = 0;
	if (choice->form == WEIR_NATIVE)
		return true;
	for (size_t k = 0; k < i; k++) {
		if (memcmp(choice, &profile->choices[k], sizeof(*choice)) == 0) {
			in_use[i] = in_use[k];
			return true;
		}
	}
	if (!launch_config_restore(tuner, facts, choice, &config) || tuner->n == CANDIDATES_MAX)
		return false;
	in_use[i] = (uint32_t)tuner->n;
	launch_config_add(tuner, &config);
	tuner->candidates[in_use[i]].ratio = choice->ratio / MILLION;
	return true;
}

/* A first launch may take several times as long as all that follow. So the time measured here says
 * nothing yet: check_time() finds out whether the profile is wrong. */
bool autotune_try_profile(struct autotuner *tuner, const struct kernel_facts *facts,
			  const struct weir_profile *profile, uint32_t in_use[WAITING_COUNT])
{
	uint64_t measured = tuner->native;
	size_t n = tuner->n;

	if (autotune_forces(tuner->settings) || tuner->tuned_for)
		return false;
	tuner->native = profile->native;
	launch_configs_prepare(tuner, facts);
	for (size_t i = 0; i < WAITING_COUNT; i++) {
		if (!take_choice(tuner, facts, profile, i, in_use)) {
			tuner->native = measured;
			tuner->n = n;
			return false;
		}
	}
	tuner->first = n;
	return true;
}

void autotune_settle_profile(struct autotuner *tuner, const struct autotune_situation *at,
			     const uint32_t in_use[WAITING_COUNT])
{
	tuner->tuned_for = tuner->native;
	tuner->outliers = 0;
	tuner->postponed = 0;
	tuner->profiled = true;
	autotune_expect_evictions(tuner, at);
	candidate_settle_known(tuner, in_use, "by its profile");
}

bool autotune_fits_profile(const struct autotuner *tuner, uint32_t candidate, uint64_t ns)
{
	double ratio = candidate ? tuner->candidates[candidate].ratio : 1;

	ns = (uint64_t)((double)ns / ratio);
	return ns / 2 <= tuner->tuned_for && ns >= tuner->tuned_for / 2;
}

static bool make_choice(const struct candidate *candidate, struct weir_profile_choice *out)
{
	double ratio = candidate->ratio * MILLION;

	launch_config_describe(&candidate->config, out);
	out->ratio = ratio >= 1 && ratio < UINT32_MAX ? (uint32_t)ratio : 0;
	return out->ratio != 0;
}

bool autotune_make_profile(const struct autotuner *tuner, struct weir_profile *out)
{
	bool good = tuner->state == AUTOTUNE_SETTLED && tuner->measured && !tuner->postponed &&
		    !atomic_load(&tuner->refused);

	*out = (struct weir_profile){.native = tuner->native,
				     .samples = tuner->candidates[0].clean};
	for (size_t i = 0; good && i < WAITING_COUNT; i++) {
		uint32_t candidate = atomic_load(&tuner->in_use[i]);
		good = !candidate || make_choice(&tuner->candidates[candidate], &out->choices[i]);
	}
	return good;
}
