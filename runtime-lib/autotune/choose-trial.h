/* The trial of a choice's candidates: each is compared with the native kernel, and the best stay.
 * The rules are in choose.h. */
#pragma once

#include "autotune/choose.h"

/* "?": the driver does not say. */
const char *trial_name(const struct choice *choice);

/* Who waits for this kernel, or did so of late. */
static inline enum waited trial_waited(const struct choice *choice)
{
	return client_waiting(atomic_load(&choice->client), choice->native);
}

/* Whether anybody does. */
static inline bool trial_is_waited(const struct choice *choice)
{
	return trial_waited(choice) != WAITED_NOT;
}

/* ns: the median of clean samples, or the least of disturbed ones; 0: there are none. */
uint64_t trial_time(const struct candidate *candidate);

/* Worker: compares from this candidate on. */
void trial_begin(struct choice *choice, uint32_t candidate);

/* Worker: goes on with those that were not needed for equals. */
void trial_resume(struct choice *choice);

/* Worker: a sample of one that is tried came. */
void trial_advance(struct choice *choice);

/* Worker: without a trial, or at its end: all launches run in this one. */
void trial_settle(struct choice *choice, uint32_t candidate, const char *why);
