/* Comparing candidates: each launch configuration with the native kernel, and with each other.
 *
 * One candidate at a time runs alternately with the native kernel, so both do the same work. A
 * candidate ends its comparison by enough clean samples, or at once if it is hopelessly slow. Then
 * the next one follows, or the best is confirmed with more samples and settled. */
#pragma once

#include "autotune/autotuner.h"

/* Somebody waits for this kernel. */
static inline bool candidate_is_waited(const struct autotuner *tuner,
				       const struct autotune_situation *at)
{
	return waiting_for(at->waiting, tuner->native) != WAITING_NOBODY;
}

/* All launches run in this candidate, whoever waits. */
static inline void candidate_use(struct autotuner *tuner, uint32_t candidate)
{
	for (size_t i = 0; i < WAITING_COUNT; i++)
		atomic_store(&tuner->in_use[i], candidate);
}

void candidate_add(struct candidate *candidate, const struct autotune_sample *sample);
/* ns: median of clean samples, else the least of spoiled ones; 0: there are none. */
uint64_t candidate_time(const struct candidate *candidate);

/* Compares from this candidate on. */
void candidate_compare(struct autotuner *tuner, const struct autotune_situation *at,
		       uint32_t candidate);
/* The same without its old samples. */
void candidate_compare_again(struct autotuner *tuner, const struct autotune_situation *at,
			     uint32_t candidate);
/* While comparing: a sample came. */
void candidates_advance(struct autotuner *tuner, const struct autotune_situation *at);
/* autotune-profile.c: the candidate's time of @ns is as its profile says. */
bool autotune_fits_profile(const struct autotuner *tuner, uint32_t candidate, uint64_t ns);
/* autotune.c: the chain of the first launches in a form. */
void autotune_expect_evictions(struct autotuner *tuner, const struct autotune_situation *at);
/* Ends the comparison with this candidate in use. */
void candidate_settle(struct autotuner *tuner, uint32_t candidate, const char *why);
/* The same with candidates by who waits, whose ratios are known from elsewhere. */
void candidate_settle_known(struct autotuner *tuner, const uint32_t candidates[WAITING_COUNT],
			    const char *why);
