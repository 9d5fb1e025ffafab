/* Whether the SMs that a client needs are enough for it (weir.dev/yield: measured). Kernels beside
 * it may keep the GPU's memory busy. Then its own kernels take longer than if it had waited until
 * all others have left. So the agent compares from time to time: for a few windows by turns it asks
 * lower-level clients for the whole GPU, and for the needed SMs alone. The client reports how long
 * its launches took in both, and what was predicted for them. If they take YIELD_TRIAL_SLOWER times
 * as long with the needed SMs, the client gets the whole GPU, until a later comparison finds that
 * they are enough. Pure.
 *
 * A client can report what it likes: it may ask for the whole GPU anyway. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "weir/protocol.h"

#define YIELD_TRIAL_SLOWER  1.10 /* from this factor on the client gets the whole GPU; */
#define YIELD_TRIAL_ENOUGH  1.03 /* up to this one the needed SMs again */
#define YIELD_TRIAL_SAMPLES 4u   /* of a window */
#define YIELD_TRIAL_IDLED \
	4u /* looks in a row that saw the client's work end, before a comparison */
#define YIELD_TRIAL_WINDOWS 8u /* of a comparison, half of them of each kind */
/* ns: a window with fewer samples ends the comparison. */
#define YIELD_TRIAL_PATIENCE 20000000000ull
/* ns between two comparisons: twice as long after one that found the whole GPU to be better, or
 * nothing; half as long after any other. */
#define YIELD_TRIAL_REST_MIN 30000000000ull
#define YIELD_TRIAL_REST_MAX 480000000000ull
#define YIELD_TRIAL_FIRST \
	1000000000ull /* ns from the client's first look to its first comparison */

/* Counters of a client: struct weir_status_page. */
struct yield_told {
	uint64_t samples[WEIR_YIELD_KINDS], measured[WEIR_YIELD_KINDS], predicted[WEIR_YIELD_KINDS];
	uint64_t demand_time;
};

struct yield_look {
	uint64_t now;
	struct yield_told told;
	bool is_beside; /* a lower-level client has work now */
	/* Another client of the GPU compares: now and then lower-level clients leave all to it. */
	bool others_compare;
};

/* Zero: nothing is known. */
struct yield_trial {
	bool needs_all; /* the needed SMs were not enough */
	double slower;  /* the latest comparison: time with the needed SMs by that with all; 0: none
			 */
	unsigned window; /* of the comparison that goes on, from 1; 0: none does */
	uint64_t window_until, window_samples;
	uint64_t next, rest; /* ns: the next comparison; between two */
	unsigned idled;      /* looks */
	struct yield_look last;
	double measured[WEIR_YIELD_KINDS], predicted[WEIR_YIELD_KINDS];
};

/* A look at the client, which wants @wanted (policy/yield.h). True: `needs_all` has changed. */
bool yield_trial_look(struct yield_trial *trial, uint32_t wanted, const struct yield_look *look);
/* What lower-level clients are to leave to it now, in the same form as @wanted. */
uint32_t yield_trial_now(const struct yield_trial *trial, uint32_t wanted);
