#include "burst.h"

#define KEPT 16u /* of about so many long ones the mean */

uint64_t burst_learn(uint64_t known, uint64_t length)
{
	return known && length > known ? known + (length - known) / KEPT : length;
}

void burst_begin(struct burst *burst, uint64_t now)
{
	uint64_t none = 0;

	atomic_compare_exchange_strong(&burst->since, &none, now);
}

void burst_goes_on(struct burst *burst, uint64_t now)
{
	atomic_store_explicit(&burst->seen, now, memory_order_relaxed);
}

/* Work may have come once more while the next was expected: then it was seen going on later. */
void burst_end(struct burst *burst, uint64_t idle)
{
	uint64_t since = atomic_exchange(&burst->since, 0), seen = atomic_load(&burst->seen);
	uint64_t until = seen > idle ? seen : idle;

	if (since && until > since)
		atomic_store(&burst->known, burst_learn(atomic_load(&burst->known), until - since));
}

uint64_t burst_told(const struct burst *burst)
{
	uint64_t since = atomic_load(&burst->since), seen = atomic_load(&burst->seen);
	uint64_t known = atomic_load(&burst->known);

	return since && seen > since && seen - since > known ? burst_learn(known, seen - since)
							     : known;
}
