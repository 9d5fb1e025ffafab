/* Busy periods: the time from when work comes to an idle client until all of it is done. Kernels of
 * lower levels may delay it by a small part of that (weir/protocol.h), so the shortest of the
 * latest periods counts. Speculative demand for work that never comes begins none. */
#pragma once

#include "weir/base.h"

#define BUSY_PERIODS     16u      /* the shortest of the latest 16 to 32 */
#define BUSY_PERIOD_LONG NS_PER_S /* a longer period makes earlier ones meaningless */

/* Any thread. */
struct busy_period {
	_Atomic uint64_t since; /* ns, when it began; 0: there is none */
	_Atomic uint64_t seen;  /* ns, when work was last seen outstanding */
	_Atomic uint64_t former,
		latest;     /* ns, the shortest of the former and the current lot; 0: none */
	_Atomic unsigned n; /* periods in the current lot */
};

/* Work came at @now; a period may be going on already. */
void busy_period_begin(struct busy_period *busy, uint64_t now);
/* Worker: work is outstanding at @now. */
void busy_period_goes_on(struct busy_period *busy, uint64_t now);
/* It is over; @idle: when the work was first seen finished. Returns how many ns it took; 0: not
 * known. */
uint64_t busy_period_end(struct busy_period *busy, uint64_t idle);

/* ns that the period has lasted at @now; 0: there is none. */
uint64_t busy_period_lasts(const struct busy_period *busy, uint64_t now);

/* ns, for the status page; 0: not known. The current period counts if it is the first or long: for
 * a client that is never idle nothing else would be known. */
uint64_t busy_period_known(const struct busy_period *busy);
