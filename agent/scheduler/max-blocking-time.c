#include "scheduler/max-blocking-time.h"

#include "scheduler/client.h"

#include "weir/base.h"

#define ANY UINT64_MAX /* ns: it does not matter */

/* Notes whether it has had work since the last look. */
static void look_at(struct client *client, uint64_t now)
{
	const struct weir_status_page *status = client->pages.status;
	uint64_t launches = atomic_load(&status->launches);

	if (launches != client->worked.launches || (launches && atomic_load(&status->outstanding)))
		client->worked.at = now;
	client->worked.launches = launches;
}

static bool is_at_work(const struct client *client, uint64_t now)
{
	return client->worked.at && now < client->worked.at + MAX_BLOCKING_TIME_IDLE_NS;
}

/* ns that @client can wait: a part of the time that its work takes, as it says, but not for more
 * than half of its objective; 0: not known. */
static uint64_t can_wait(const struct client *client, uint64_t now)
{
	const struct weir_status_page *status = client->pages.status;
	uint64_t part = atomic_load(&status->busy_period) / MAX_BLOCKING_TIME_PART,
		 slo = client->entry.slo / 2;

	if (!is_at_work(client, now))
		return ANY;
	return slo && slo < part ? slo : part;
}

/* Level by level, what all clients of it can wait. */
static void find_least(const struct gpu *gpu, uint64_t now, uint64_t least[WEIR_LEVELS])
{
	const struct client *client;

	for (uint8_t level = 0; level < WEIR_LEVELS; level++)
		least[level] = ANY;
	for (client = gpu->clients; client; client = client->gpu_next) {
		uint64_t ns = can_wait(client, now);
		if (ns < least[client->level])
			least[client->level] = ns;
	}
}

static bool is_below(const struct gpu *gpu, uint8_t level)
{
	unsigned above = 0;

	while (++level < WEIR_LEVELS)
		above += gpu->n_level[level];
	return above != 0;
}

/* Those above wait for kernels of all of those that run at the same time. */
static unsigned n_beside(const struct gpu *gpu, uint64_t now)
{
	const struct client *client;
	unsigned n = 0;

	for (client = gpu->clients; client; client = client->gpu_next)
		n += client_is_concurrent(client) && is_below(gpu, client->level) &&
		     is_at_work(client, now);
	return n ? n : 1;
}

/* What all levels above each can wait; one that may still come back after a restart may be on any
 * of them. */
static void find_told(const struct gpu *gpu, uint64_t now, uint32_t told[WEIR_LEVELS])
{
	uint64_t least[WEIR_LEVELS], most = gpu->reserved ? 0 : ANY;
	unsigned n = n_beside(gpu, now);

	find_least(gpu, now, least);
	for (int level = WEIR_LEVELS - 1; level >= 0; level--) {
		uint64_t each = most == ANY ? 0 : most / n;
		told[level] = each < MAX_BLOCKING_TIME_MAX ? (uint32_t)each : MAX_BLOCKING_TIME_MAX;
		most = least[level] < most ? least[level] : most;
	}
}

void max_blocking_time_tell(struct gpu *gpu, uint64_t now)
{
	uint32_t told[WEIR_LEVELS];
	struct client *client;

	for (client = gpu->clients; client; client = client->gpu_next)
		look_at(client, now);
	find_told(gpu, now, told);
	for (client = gpu->clients; client; client = client->gpu_next)
		if (atomic_load(&client->pages.control->max_blocking_time) != told[client->level])
			atomic_store(&client->pages.control->max_blocking_time,
				     told[client->level]);
}

static void due(struct loop_timer *timer)
{
	max_blocking_time_tell(container_of(timer, struct gpu, patience), loop_now());
}

static bool has_levels(const struct gpu *gpu)
{
	unsigned n = 0;

	for (uint8_t level = 0; level < WEIR_LEVELS; level++)
		n += gpu->n_level[level] != 0;
	return n > 1;
}

void max_blocking_time_follow(struct gpu *gpu)
{
	max_blocking_time_tell(gpu, loop_now());
	if (has_levels(gpu))
		loop_timer_set(&gpu->patience, MAX_BLOCKING_TIME_LOOK_NS,
			       MAX_BLOCKING_TIME_LOOK_NS);
	else
		loop_timer_clear(&gpu->patience);
}

int max_blocking_time_init(struct gpu *gpu, struct loop *loop)
{
	return loop_timer_init(&gpu->patience, loop, due);
}

void max_blocking_time_deinit(struct gpu *gpu)
{
	loop_timer_deinit(&gpu->patience);
}
