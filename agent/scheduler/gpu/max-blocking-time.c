#include "scheduler/gpu/max-blocking-time.h"

#include "weir/base.h"

#define ANY UINT64_MAX /* ns: it does not matter */

void max_blocking_time_begin(struct max_blocking_look *look)
{
	*look = (struct max_blocking_look){0};
	for (unsigned level = 0; level < WEIR_LEVELS; level++)
		look->least[level] = ANY;
}

/* Whether it had work lately. */
static bool is_at_work(struct max_blocking_client *client, const struct weir_status_page *status,
		       uint64_t now)
{
	uint64_t launches = atomic_load(&status->launches);

	if (launches != client->launches || (launches && atomic_load(&status->outstanding)))
		client->worked_at = now;
	client->launches = launches;
	return client->worked_at && now < client->worked_at + MAX_BLOCKING_TIME_IDLE_NS;
}

void max_blocking_time_add(struct max_blocking_look *look, struct max_blocking_client *client,
			   const struct weir_status_page *status, uint8_t level, uint64_t slo,
			   uint64_t now)
{
	/* 0: an older library, which does not report it. */
	uint64_t ns = atomic_load(&status->busy_period) / MAX_BLOCKING_TIME_PART;

	look->clients[level]++;
	if (!is_at_work(client, status, now))
		return;
	if (slo)
		ns = smaller(ns, slo / 2);
	look->least[level] = smaller(look->least[level], ns);
	look->concurrent[level] += (atomic_load(&status->flags) & WEIR_STATUS_CONCURRENT) != 0;
}

/* A higher client waits for the kernels of all lower ones that run at the same time. */
static unsigned n_concurrent(const struct max_blocking_look *look)
{
	unsigned n = 0, higher = 0;

	for (int level = WEIR_LEVELS - 1; level >= 0; level--) {
		n += higher ? look->concurrent[level] : 0;
		higher += look->clients[level];
	}
	return n ? n : 1;
}

void max_blocking_time_find(const struct max_blocking_look *look, bool may_return,
			    uint32_t out[WEIR_LEVELS])
{
	uint64_t least = may_return ? 0 : ANY;
	unsigned n = n_concurrent(look);

	for (int level = WEIR_LEVELS - 1; level >= 0; level--) {
		uint64_t each = least == ANY ? 0 : least / n;
		out[level] = (uint32_t)smaller(each, MAX_BLOCKING_TIME_MAX);
		least = smaller(least, look->least[level]);
	}
}
