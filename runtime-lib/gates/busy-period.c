#include "gates/busy-period.h"

/* The shorter of two times; 0 is none. */
static uint64_t shorter(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

static void learn(struct busy_period *busy, uint64_t length)
{
	uint64_t latest = shorter(atomic_load(&busy->latest), length);
	bool full = atomic_fetch_add(&busy->n, 1) + 1 >= BUSY_PERIODS;

	if (full) {
		atomic_store(&busy->former, latest);
		atomic_store(&busy->n, 0);
	}
	atomic_store(&busy->latest, full ? 0 : latest);
}

void busy_period_begin(struct busy_period *busy, uint64_t now)
{
	uint64_t none = 0;

	atomic_compare_exchange_strong(&busy->since, &none, now);
}

void busy_period_goes_on(struct busy_period *busy, uint64_t now)
{
	store_relaxed(&busy->seen, now);
}

/* If more work came while demand lingered, it was seen after @idle. */
uint64_t busy_period_end(struct busy_period *busy, uint64_t idle)
{
	uint64_t since = atomic_exchange(&busy->since, 0), seen = atomic_load(&busy->seen);
	uint64_t until = larger(seen, idle);

	if (!since || until <= since)
		return 0;
	learn(busy, until - since);
	return until - since;
}

uint64_t busy_period_lasts(const struct busy_period *busy, uint64_t now)
{
	uint64_t since = atomic_load(&busy->since);

	return since && now > since ? now - since : 0;
}

uint64_t busy_period_known(const struct busy_period *busy)
{
	uint64_t known = shorter(atomic_load(&busy->former), atomic_load(&busy->latest));
	uint64_t so_far = busy_period_lasts(busy, atomic_load(&busy->seen));

	return !known || so_far > BUSY_PERIOD_LONG ? so_far : known;
}
