#include "gates/speculation.h"

#define TRUST_ONE 256u
#define TRUST_MIN (TRUST_ONE * 3 / 4)
#define KEPT      8u /* the mean is of about this many copies */

void speculation_learn(struct speculation *speculation, uint64_t lead)
{
	uint64_t mean = atomic_load(&speculation->lead);
	uint32_t trust = atomic_load(&speculation->trust);

	if (lead > SPECULATION_LEAD_MAX) {
		atomic_store(&speculation->trust, trust - (trust + KEPT - 1) / KEPT);
		return;
	}
	atomic_store(&speculation->trust, trust + (TRUST_ONE - trust + KEPT - 1) / KEPT);
	atomic_store(&speculation->lead, mean ? mean - mean / KEPT + lead / KEPT : lead);
}

bool speculation_pays(const struct speculation *speculation)
{
	return atomic_load(&speculation->trust) >= TRUST_MIN;
}
