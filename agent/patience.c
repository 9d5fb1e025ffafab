#include "patience.h"

#include "client.h"

#include "weir/base.h"

#define ANY UINT64_MAX /* ns: it does not matter */

/* ns that @client can wait: a part of the time that its work takes, as it says, but not for more
 * than half of its objective; 0: not known. */
static uint64_t can_wait(const struct client *client)
{
	const struct weir_status_page *status = client->pages.status;
	uint64_t part = atomic_load(&status->burst) / PATIENCE_PART, slo = client->policy.slo / 2;

	if (!atomic_load(&status->launches))
		return ANY;
	return slo && slo < part ? slo : part;
}

/* Level by level, what all clients of it can wait. */
static void find_least(const struct gpu *gpu, uint64_t least[WEIR_LEVELS])
{
	const struct client *client;

	for (uint8_t level = 0; level < WEIR_LEVELS; level++)
		least[level] = ANY;
	for (client = gpu->clients; client; client = client->gpu_next) {
		uint64_t ns = can_wait(client);
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
static unsigned n_beside(const struct gpu *gpu)
{
	const struct client *client;
	unsigned n = 0;

	for (client = gpu->clients; client; client = client->gpu_next)
		n += client_is_concurrent(client) && is_below(gpu, client->level);
	return n ? n : 1;
}

/* What all levels above each can wait; one that may still come back after a restart may be on any
 * of them. */
static void find_told(const struct gpu *gpu, uint32_t told[WEIR_LEVELS])
{
	uint64_t least[WEIR_LEVELS], most = gpu->reserved ? 0 : ANY;
	unsigned n = n_beside(gpu);

	find_least(gpu, least);
	for (int level = WEIR_LEVELS - 1; level >= 0; level--) {
		uint64_t each = most == ANY ? 0 : most / n;
		told[level] = each < PATIENCE_MAX ? (uint32_t)each : PATIENCE_MAX;
		most = least[level] < most ? least[level] : most;
	}
}

/* A change of an eighth is none. */
static void tell(struct client *client, uint32_t ns)
{
	_Atomic uint32_t *told = &client->pages.control->patience;
	uint32_t before = atomic_load(told);

	if ((ns > before ? ns - before : before - ns) > before / 8)
		atomic_store(told, ns);
}

void patience_tell(struct gpu *gpu)
{
	uint32_t told[WEIR_LEVELS];
	struct client *client;

	find_told(gpu, told);
	for (client = gpu->clients; client; client = client->gpu_next)
		tell(client, told[client->level]);
}

static void due(struct loop_timer *timer)
{
	patience_tell(container_of(timer, struct gpu, patience));
}

static bool has_levels(const struct gpu *gpu)
{
	unsigned n = 0;

	for (uint8_t level = 0; level < WEIR_LEVELS; level++)
		n += gpu->n_level[level] != 0;
	return n > 1;
}

void patience_follow(struct gpu *gpu)
{
	patience_tell(gpu);
	if (has_levels(gpu))
		loop_timer_set(&gpu->patience, PATIENCE_LOOK_NS, PATIENCE_LOOK_NS);
	else
		loop_timer_clear(&gpu->patience);
}

int patience_init(struct gpu *gpu, struct loop *loop)
{
	return loop_timer_init(&gpu->patience, loop, due);
}

void patience_deinit(struct gpu *gpu)
{
	loop_timer_deinit(&gpu->patience);
}
