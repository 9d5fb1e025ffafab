#include "scheduler/contention.h"

#include "scheduler/compute-limit.h"
#include "scheduler/min-rates.h"
#include "scheduler/slice-shares.h"
#include "scheduler/tenants.h"

#include "weir/base.h"

/* A tight objective preempts other tenants' kernels, never the client's own. */
void contention_find_urgent(struct gpu *gpu)
{
	const struct policy *policy = gpu->queues.policy;
	const struct client *client;

	for (uint8_t level = 0; level < WEIR_LEVELS; level++) {
		gpu->contention[level].urgent = policy->urgent;
		gpu->contention[level].fast_poll = policy->preempts != NULL;
		gpu->contention[level].tight_slo = NULL;
	}
	for (client = gpu->clients; client && !policy->never_holds; client = client->gpu_next) {
		const struct tenant *tenant = client->tenant;
		const struct tenant *other = gpu->contention[client->level].tight_slo;
		if (!objective_is_tight(tenant->slo))
			continue;
		gpu->contention[client->level].urgent |= other && other != tenant;
		gpu->contention[client->level].tight_slo = tenant;
		gpu->contention[client->level].fast_poll = true;
	}
}

static bool has_company(const struct client *client, const struct run_queue *queue)
{
	return queue->n_active > client->entry.active;
}

/* The client runs at the same time as others, and the policy charges it for what it reports. */
static bool is_charged_among(const struct client *client, const struct run_queue *queue)
{
	return queue->policy->shares && queue->concurrent && has_company(client, queue);
}

/* The same, and it has done so for long enough to have run for its part of the GPU. */
static bool runs_among(const struct client *client, const struct run_queue *queue, uint64_t now)
{
	return is_charged_among(client, queue) && client->entry.active &&
	       now - client->entry.busy_since >= CONTENTION_AMONG_NS;
}

/* Same-level clients have work. Where clients take no turns only those expect to be held that have
 * long launches, or have run for their part. Nobody is held while the hardware's slices share the
 * GPU under a policy by which no client takes over. */
static bool expects_hold(const struct client *client, const struct run_queue *queue, uint64_t now)
{
	bool in_turns = !queue->concurrent && !queue->sliced;
	bool is_long = now < client->long_until && (!queue->sliced || queue->policy->preempts);

	return has_company(client, queue) &&
	       (in_turns || client->entry.held || is_long || runs_among(client, queue, now));
}

/* Clients that share the GPU by weight can wait until a short launch of another one ends, because
 * forms that leave cost more than that. Clients with an objective cannot. */
static bool is_in_the_way(const struct client *client, const struct run_queue *queue, uint64_t now)
{
	return !queue->policy->shares || now < client->long_until ||
	       client->gpu->contention[client->level].tight_slo;
}

/* Whether some same-level client must not wait until the kernels of @client end. */
static bool is_urgent(const struct client *client, bool in_the_way)
{
	const struct tenant *tight = client->gpu->contention[client->level].tight_slo;

	return (client->gpu->contention[client->level].urgent && in_the_way) ||
	       (tight && tight != client->tenant);
}

bool contention_polls_fast(const struct gpu *gpu, uint8_t level)
{
	unsigned n = gpu->n_level[level];

	return gpu->contention[level].fast_poll && n > 1 && n <= CONTENTION_FAST_POLL_MAX;
}

/* The client has work, and none of it ends: clients ahead leave it nothing, or it has one very long
 * launch. */
static bool starves(const struct gpu *gpu, const struct client *client, uint64_t now)
{
	uint64_t aging = gpu->queues.settings.aging, arrived = client->entry.arrived;
	uint64_t since = larger(client->charge.reported_at, arrived);

	return client->entry.active && now > since && now - since >= aging;
}

static bool is_ordered(const struct client *client)
{
	return atomic_load(&client->pages.status->flags) & WEIR_STATUS_ORDERED;
}

/* On which levels short launches go ahead of long ones: where clients are concurrent, all report
 * that they can order launches, and none starves. Not under a
 * policy that bounds workers, because there the bounds give launches their priorities. */
static void find_ahead(const struct gpu *gpu, uint64_t now, bool ahead[WEIR_LEVELS])
{
	for (uint8_t level = 0; level < WEIR_LEVELS; level++) {
		const struct run_queue *queue = &gpu->queues.levels[level];
		bool forced = queue->current && queue->forced;
		ahead[level] = queue->concurrent && !queue->policy->plan && !forced &&
			       gpu->n_level[level] > 1;
	}
	for (const struct client *client = gpu->clients; client; client = client->gpu_next)
		ahead[client->level] &= is_ordered(client) && !starves(gpu, client, now);
}

/* A client that expects a hold puts gates densely (CONTENDED). If others must not wait until its
 * kernels end, it launches them in forms that leave (URGENT). Kernels that run beside others, or in
 * slices, seem to take longer than they do (SLICED). */
static void tell_expected(struct gpu *gpu, uint64_t now)
{
	bool ahead[WEIR_LEVELS];

	find_ahead(gpu, now, ahead);
	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		const struct run_queue *queue = &gpu->queues.levels[client->level];
		bool contended = expects_hold(client, queue, now);
		bool in_the_way = is_in_the_way(client, queue, now);
		client_set_flag(client, WEIR_CONTROL_TELL,
				contention_polls_fast(gpu, client->level) ||
					compute_limit_listens(client) || min_rates_listen(client));
		client_set_flag(client, WEIR_CONTROL_CONTENDED, contended);
		client_set_flag(client, WEIR_CONTROL_URGENT,
				contended && is_urgent(client, in_the_way));
		client_set_flag(client, WEIR_CONTROL_SLICED,
				gpu_slices(gpu, client->level) || queue->sliced ||
					client->tenant->compute_limit || client->tenant->min_rate ||
					is_charged_among(client, queue));
		client_set_flag(client, WEIR_CONTROL_AHEAD, ahead[client->level]);
	}
}

static bool runs_beside(const struct client *client)
{
	const struct weir_status_page *status = client->pages.status;

	return atomic_load(&client->pages.control->above) &&
	       !atomic_load(&client->pages.control->hold) && atomic_load(&status->outstanding) &&
	       client_is_concurrent(client);
}

/* How many clients with higher-level clients above them run at the same time. */
static void tell_beside(struct gpu *gpu)
{
	uint32_t n = 0;

	for (struct client *client = gpu->clients; client; client = client->gpu_next)
		n += runs_beside(client);
	/* Clients poll their page: an unchanged word stays in their cache. */
	for (struct client *client = gpu->clients; client; client = client->gpu_next)
		if (atomic_load(&client->pages.control->beside) != n)
			atomic_store(&client->pages.control->beside, n);
}

void contention_tell(struct gpu *gpu, uint64_t now)
{
	tell_expected(gpu, now);
	tell_beside(gpu);
}
