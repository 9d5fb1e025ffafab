/* Speculative demand: a copy to the GPU often precedes a launch. So demand can be shown while it
 * goes on, and lower levels have left when the kernel comes. Each client learns from its own copies
 * whether that pays: most of the latest copies must have been followed by a launch, and soon, since
 * the GPU is idle in between. */
#pragma once

#include "weir/base.h"

#define SPECULATION_LEAD_MAX (500 * NS_PER_US) /* from copy to launch; longer does not pay */
#define SPECULATION_SLACK    (50 * NS_PER_US)  /* a launch may come that much later than expected */

struct speculation {
	_Atomic uint64_t since;  /* ns, of the first copy since there was no demand; 0: none */
	_Atomic uint64_t shown;  /* ns, when speculative demand was shown last */
	_Atomic uint64_t until;  /* ns, when it ends */
	_Atomic uint64_t hinted; /* ns, when the program said that a launch comes; 0: it did not */
	_Atomic uint64_t lead;   /* ns from such a copy to the launch, running mean */
	_Atomic uint32_t trust;  /* 0 to 256: how many of them were followed by a launch soon */
};

/* Pure. A launch followed the copy after @lead ns; UINT64_MAX: none did in time. */
void speculation_learn(struct speculation *speculation, uint64_t lead);
bool speculation_pays(const struct speculation *speculation);
