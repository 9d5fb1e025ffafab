#include "scheduler/contention.h"

#include "scheduler/tenants.h"

void contention_set_flag(struct client *client, uint32_t flag, bool set)
{
	struct weir_control_page *control = client->pages.control;
	uint32_t flags = atomic_load(&control->flags);
	uint32_t wanted = set ? flags | flag : flags & ~flag;

	if (wanted == flags)
		return;
	atomic_store(&control->flags, wanted);
	atomic_fetch_add(&control->epoch, 1);
}

static bool is_hasty(const struct tenant *tenant)
{
	return tenant->slo && tenant->slo < CONTENTION_URGENT_NS;
}

/* Nobody is in a hurry for its own sake: if only one container is, its kernels may end. */
void contention_find_urgent(struct gpu *gpu, const struct policy *policy)
{
	const struct client *client;

	for (uint8_t level = 0; level < WEIR_LEVELS; level++) {
		gpu->urgent[level] = policy->urgent;
		gpu->keen[level] = policy->preempts != NULL;
		gpu->hasty[level] = NULL;
	}
	for (client = gpu->clients; client && !policy->never_holds; client = client->gpu_next) {
		const struct tenant *tenant = client->tenant, *other = gpu->hasty[client->level];
		if (!is_hasty(tenant))
			continue;
		gpu->urgent[client->level] |= other && other != tenant;
		gpu->hasty[client->level] = tenant;
		gpu->keen[client->level] = true;
	}
}

/* Whether some equal of @client is not to wait until its kernels end. */
static bool is_urgent(const struct client *client)
{
	const struct tenant *hasty = client->gpu->hasty[client->level];

	return client->gpu->urgent[client->level] || (hasty && hasty != client->tenant);
}

/* Equals have work. Of those that run abreast only who is in the way is held: that is who has long
 * launches. */
static bool expects_hold(const struct client *client, const struct run_queue *queue, uint64_t now)
{
	bool equals = queue->n_active > client->entry.active;

	return equals && (!queue->concurrent || client->entry.held || now < client->long_until);
}

bool contention_may_be_keen(const struct gpu *gpu, uint8_t level)
{
	unsigned n = gpu->n_level[level];

	return gpu->keen[level] && n > 1 && n <= CONTENTION_KEEN_MAX;
}

/* It has work, and none of it ends: those ahead leave it nothing, or it has one launch as long as
 * that. */
static bool starves(const struct gpu *gpu, const struct client *client, uint64_t now)
{
	uint64_t aging = gpu->queues.settings.aging, arrived = client->entry.arrived;
	uint64_t since =
		client->charge.reported_at > arrived ? client->charge.reported_at : arrived;

	return client->entry.active && now > since && now - since >= aging;
}

static bool is_ordered(const struct client *client)
{
	return atomic_load(&client->pages.status->flags) & WEIR_STATUS_ORDERED;
}

/* On which levels short launches are to go ahead of long ones: where clients run abreast, all say
 * that they can, and nobody waits for too long. */
static void find_ahead(const struct gpu *gpu, uint64_t now, bool ahead[WEIR_LEVELS])
{
	const struct client *client;

	for (uint8_t level = 0; level < WEIR_LEVELS; level++) {
		const struct run_queue *queue = &gpu->queues.levels[level];
		bool forced = queue->current && queue->forced;
		ahead[level] = queue->concurrent && !forced && gpu->n_level[level] > 1;
	}
	for (client = gpu->clients; client; client = client->gpu_next)
		ahead[client->level] &= is_ordered(client) && !starves(gpu, client, now);
}

/* Whether it is to expect a hold: then its gates are dense, and where nobody is to wait until
 * kernels end, they are in forms that leave. */
static void tell_expected(struct gpu *gpu, uint64_t now)
{
	bool ahead[WEIR_LEVELS];
	struct client *client;

	find_ahead(gpu, now, ahead);
	for (client = gpu->clients; client; client = client->gpu_next) {
		const struct run_queue *queue = &gpu->queues.levels[client->level];
		bool contended = expects_hold(client, queue, now);
		contention_set_flag(client, WEIR_CONTROL_TELL,
				    contention_may_be_keen(gpu, client->level));
		contention_set_flag(client, WEIR_CONTROL_CONTENDED, contended);
		contention_set_flag(client, WEIR_CONTROL_URGENT, contended && is_urgent(client));
		contention_set_flag(client, WEIR_CONTROL_AHEAD, ahead[client->level]);
	}
}

static bool runs_beside(const struct client *client)
{
	const struct weir_status_page *status = client->pages.status;

	return atomic_load(&client->pages.control->above) &&
	       !atomic_load(&client->pages.control->hold) && atomic_load(&status->outstanding) &&
	       client_is_concurrent(client);
}

/* How many of those below others run at the same time. */
static void tell_beside(struct gpu *gpu)
{
	struct client *client;
	uint32_t n = 0;

	for (client = gpu->clients; client; client = client->gpu_next)
		n += runs_beside(client);
	/* A client that reads its page again and again keeps it in its cache. */
	for (client = gpu->clients; client; client = client->gpu_next)
		if (atomic_load(&client->pages.control->beside) != n)
			atomic_store(&client->pages.control->beside, n);
}

void contention_tell(struct gpu *gpu, uint64_t now)
{
	tell_expected(gpu, now);
	tell_beside(gpu);
}
