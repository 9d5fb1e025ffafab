/* The trial of a tuned's candidates: each is compared with the native kernel, and the best stay.
 * The rules are in tuning.h. */
#pragma once

#include "preempt/tuning.h"

/* "?": the driver does not say. */
const char *trial_name(const struct tuned_kernel *tuned);

/* Who waits for this kernel, or did so of late. */
static inline enum waited trial_waited(const struct tuned_kernel *tuned)
{
	return client_waiting(atomic_load(&tuned->client), tuned->native);
}

/* Whether anybody does. */
static inline bool trial_is_waited(const struct tuned_kernel *tuned)
{
	return trial_waited(tuned) != WAITED_NOT;
}

/* ns: the median of clean samples, or the least of disturbed ones; 0: there are none. */
uint64_t trial_time(const struct candidate *candidate);

/* Worker: compares from this candidate on. */
void trial_begin(struct tuned_kernel *tuned, uint32_t candidate);

/* Worker: goes on with those that were not needed for equals. */
void trial_resume(struct tuned_kernel *tuned);

/* Worker: a sample of one that is tried came. */
void trial_advance(struct tuned_kernel *tuned);

/* Worker: without a trial, or at its end: all launches run in this one. */
void trial_settle(struct tuned_kernel *tuned, uint32_t candidate, const char *why);
