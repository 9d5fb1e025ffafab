#include "scheduler/compute-limit.h"

#include "scheduler/gpu/demand-words.h"
#include "scheduler/preemption.h"
#include "scheduler/tenants.h"

#include "weir/base.h"

/* NULL: it has none. */
static struct usage *limited(const struct client *client)
{
	struct usage *usage =
		client->tenant->compute_limit ? tenant_usage(client->tenant, client->gpu) : NULL;

	return usage && usage->limit.percent ? usage : NULL;
}

bool compute_limit_listens(const struct client *client)
{
	return client->gpu->limited && client->tenant->compute_limit;
}

void compute_limit_refresh(struct gpu *gpu, uint64_t now)
{
	bool before = gpu->limited;

	gpu->limited = false;
	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		uint32_t percent = client->tenant->compute_limit;
		struct usage *usage = client->tenant->usages || percent
					      ? tenant_usage(client->tenant, gpu)
					      : NULL;
		if (usage)
			limit_set(&usage->limit, percent, now);
		gpu->limited |= limited(client) != NULL;
		if (!limited(client) && client->over_limit) {
			client->over_limit = false;
			demand_words_pause(gpu, client, false);
		}
	}
	if (!before)
		gpu->limits_looked = now;
}

/* ns since the last look for which the client could run. */
static uint64_t could_run(struct client *client, uint64_t passed, uint64_t now)
{
	if (!preemption_works(client))
		return client->limit.closed ? 0 : passed;
	uint64_t ran = channels_ran(&client->channels, now), before = client->limit.ran;
	client->limit.ran = ran;
	return ran > before ? smaller(ran - before, passed) : 0;
}

static uint64_t reported(struct client *client)
{
	uint64_t now = atomic_load(&client->pages.status->executed);
	uint64_t before = client->limit.executed;

	client->limit.executed = now;
	return before && now > before ? now - before : 0;
}

static uint64_t slice_of(const struct client *client)
{
	uint64_t us = preemption_works(client) ? client->channels.slice : 0;

	return us ? us : CHANNELS_DEFAULT_SLICE;
}

/* How much of @ns @tenant ran at least, beside the others that ran: the part that its slices give
 * it. Gaps between its own kernels count, too. */
static uint64_t at_least(const struct gpu *gpu, const struct tenant *tenant, uint64_t ns)
{
	uint64_t own = 0, all = 0;

	for (const struct client *client = gpu->clients; client; client = client->gpu_next) {
		bool mine = client->tenant == tenant;
		if (mine ? !client->limit.works : !client->limit.runs)
			continue;
		own += mine ? slice_of(client) : 0;
		all += slice_of(client);
	}
	return own == all ? ns : ns * own / all;
}

/* Processes of a container that run at the same time use the GPU together. */
static struct limit_use use_of(const struct gpu *gpu, const struct tenant *tenant, bool over,
			       uint64_t now)
{
	uint64_t passed = now > gpu->limits_looked ? now - gpu->limits_looked : 0;
	struct limit_use use = {0};

	for (struct client *client = tenant->clients; client; client = client->tenant_next) {
		if (client->gpu != gpu)
			continue;
		uint64_t ran = could_run(client, passed, now), executed = reported(client);
		use.reported += executed;
		if (!client->limit.works && !client->limit.blocked)
			continue;
		use.most = larger(use.most, ran);
		if (client->limit.works && !client->limit.closed)
			use.least = larger(use.least, at_least(gpu, tenant, ran));
		use.waited = larger(use.waited, over ? passed - ran : 0);
	}
	return use;
}

/* Below a level with demand no client runs. */
static bool is_blocked(const struct gpu *gpu, uint8_t level)
{
	return level < WEIR_DEMAND_LEVELS && gpu->open &&
	       atomic_load(&gpu->region.pages[level].demand->word);
}

/* As it is from now on, until the next look. */
static void note(const struct gpu *gpu, struct client *client)
{
	bool outstanding = atomic_load(&client->pages.status->outstanding);

	client->limit.closed = atomic_load(&client->pages.control->hold);
	client->limit.blocked = outstanding && is_blocked(gpu, client->level);
	client->limit.works = outstanding && !client->limit.blocked;
	client->limit.runs =
		client->limit.works && !client->limit.closed && !client->channels.stopped;
}

static void apply(struct gpu *gpu, const struct tenant *tenant, bool over)
{
	for (struct client *client = tenant->clients; client; client = client->tenant_next) {
		if (client->gpu != gpu)
			continue;
		/* Each time: work that comes meanwhile shows demand. */
		if (over || client->over_limit)
			demand_words_pause(gpu, client, over);
		client->over_limit = over;
	}
}

static bool has_work(const struct gpu *gpu, const struct tenant *tenant)
{
	bool work = false;

	for (const struct client *client = tenant->clients; client; client = client->tenant_next)
		work |= client->gpu == gpu && atomic_load(&client->pages.status->outstanding);
	return work;
}

uint64_t compute_limit_look(struct gpu *gpu, uint64_t now)
{
	uint64_t next = POLICY_NEVER;

	if (!gpu->limited)
		return POLICY_NEVER;
	for (const struct client *client = gpu->clients; client; client = client->gpu_next) {
		struct usage *usage = client_is_first(client) ? limited(client) : NULL;
		if (!usage)
			continue;
		const struct tenant *tenant = client->tenant;
		struct limit_use use = use_of(gpu, tenant, usage->limit.over, now);
		limit_charge(&usage->limit, &use, now);
		apply(gpu, tenant, usage->limit.over);
		next = smaller(next, limit_next(&usage->limit, has_work(gpu, tenant), now));
	}
	gpu->limits_looked = now;
	return next;
}

void compute_limit_note(struct gpu *gpu)
{
	for (struct client *client = gpu->clients; client && gpu->limited;
	     client = client->gpu_next)
		note(gpu, client);
}
