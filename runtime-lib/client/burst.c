#include "client/burst.h"

#include <stdbool.h>

/* 0 is none. */
static uint64_t shorter(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

static void learn(struct burst *burst, uint64_t length)
{
	uint64_t latest = shorter(atomic_load(&burst->latest), length);
	bool full = atomic_fetch_add(&burst->n, 1) + 1 >= BURST_KEPT;

	if (full) {
		atomic_store(&burst->former, latest);
		atomic_store(&burst->n, 0);
	}
	atomic_store(&burst->latest, full ? 0 : latest);
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
		learn(burst, until - since);
}

uint64_t burst_lasts(const struct burst *burst, uint64_t now)
{
	uint64_t since = atomic_load(&burst->since);

	return since && now > since ? now - since : 0;
}

uint64_t burst_told(const struct burst *burst)
{
	uint64_t known = shorter(atomic_load(&burst->former), atomic_load(&burst->latest));
	uint64_t so_far = burst_lasts(burst, atomic_load(&burst->seen));

	return !known || so_far > BURST_LONG ? so_far : known;
}
