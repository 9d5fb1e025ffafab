#include "scheduler/min-rates.h"

#include "policy/policy.h"
#include "scheduler/gpu/demand-words.h"
#include "scheduler/preemption.h"
#include "scheduler/tenants.h"

#include "weir/base.h"
#include "weir/log.h"

/* NULL: it has none. */
static struct usage *rated(const struct client *client)
{
	struct usage *usage =
		client->tenant->min_rate ? tenant_usage(client->tenant, client->gpu) : NULL;

	return usage && usage->rate.wanted ? usage : NULL;
}

bool min_rates_listen(const struct client *client)
{
	return client->gpu->rated && client->tenant->min_rate;
}

bool min_rates_rule(const struct client *client)
{
	return min_rates_listen(client) && client->tenant->min_rate_holds;
}

static bool has_work(const struct client *client)
{
	return atomic_load(&client->pages.status->outstanding);
}

/* Its kernels run beside those of other clients of any level. */
static bool runs_beside(const struct client *client)
{
	return client_is_concurrent(client) && !gpu_has_servers(client->gpu);
}

bool min_rates_hold(const struct client *client)
{
	const struct gpu *gpu = client->gpu;

	if (!gpu->rated || preemption_works(client))
		return false;
	return !client->tenant->min_rate || !runs_beside(client) ||
	       min_rates_sum(gpu) > client->tenant->min_rate;
}

/* Which containers have work. Once a look: each client has a page of its own. */
static void find_work(const struct gpu *gpu, uint64_t now)
{
	struct usage *usage;

	for (const struct client *client = gpu->clients; client; client = client->gpu_next)
		if ((usage = rated(client)))
			usage->rate_works = false;
	for (const struct client *client = gpu->clients; client; client = client->gpu_next)
		if ((usage = rated(client)))
			usage->rate_works |= has_work(client);
	for (const struct client *client = gpu->clients; client; client = client->gpu_next)
		if ((usage = rated(client)) && usage->rate_works)
			usage->rate_worked = now;
}

/* Kernels that others run between two requests delay the next request. So others stay held there
 * while the speed alone is learned, if the next request comes soon. */
static bool learns_between(const struct gpu *gpu, const struct usage *usage)
{
	return min_rate_answers(&usage->rate) && min_rate_must_be_alone(&usage->rate) &&
	       gpu->looked - usage->rate_worked < MIN_RATES_BETWEEN_NS;
}

/* It has work, and not enough credit to leave anything to others. */
static bool lacks(const struct client *client)
{
	const struct usage *usage = rated(client);

	return usage && !usage->rate.ahead &&
	       (usage->rate_works || learns_between(client->gpu, usage));
}

static bool has_others(const struct gpu *gpu, const struct tenant *tenant)
{
	const struct client *client = gpu->clients;

	while (client && client->tenant == tenant)
		client = client->gpu_next;
	return client;
}

static bool others_have_work(const struct gpu *gpu, const struct tenant *tenant)
{
	for (const struct client *client = gpu->clients; client; client = client->gpu_next)
		if (client->tenant != tenant && has_work(client))
			return true;
	return false;
}

/* @other, of another container, may run although @client lacks its rate. */
static bool runs_despite(const struct client *other, const struct client *client)
{
	bool out = client_is_out(other) || other->held_until;

	return has_work(other) && !out && other->level >= client->level;
}

/* While it is idle: new work of it would be. */
static bool is_alone(const struct gpu *gpu, const struct client *client)
{
	const struct client *other = gpu->clients;

	if (rated(client)->rate.ahead)
		return !others_have_work(gpu, client->tenant);
	while (other && (other->tenant == client->tenant || !runs_despite(other, client)))
		other = other->gpu_next;
	return !other;
}

/* ns until launches of others have ended that have begun, or until they are stopped. Those that can
 * leave are sooner gone. */
static uint64_t leaving(const struct gpu *gpu, const struct tenant *tenant)
{
	uint64_t longest = 0;

	for (const struct client *client = gpu->clients; client; client = client->gpu_next) {
		const struct weir_status_page *status = client->pages.status;
		uint64_t n = client->tenant == tenant ? 0 : atomic_load(&status->outstanding);
		if (n && !runs_beside(client))
			longest = larger(longest, MIN_RATES_STOP_NS);
		else if (n)
			longest = larger(longest, atomic_load(&status->remaining) / n);
	}
	return 2 * smaller(longest, MIN_RATE_LEAVING_NS);
}

/* Bits of enum min_rate_hindrance. */
static unsigned hindrances(const struct gpu *gpu, const struct client *client)
{
	unsigned found = 0;

	if (!lacks(client))
		return 0;
	for (const struct client *other = gpu->clients; other; other = other->gpu_next) {
		if (other->tenant == client->tenant || !has_work(other))
			continue;
		found |= lacks(other) ? MIN_RATE_CROWDED : 0;
		if (!runs_despite(other, client))
			continue;
		found |= other->level > client->level && !other->leaves ? MIN_RATE_ABOVE : 0;
		found |= other->level == client->level && !lacks(other) ? MIN_RATE_EQUALS : 0;
	}
	return found;
}

/* ns with work since the last look, of which the client reported @told. The agent's clock counts a
 * client that is busy, as reports come late and in lumps; what it counts before the client reports
 * it is not counted again. Short work between two looks counts as reported. */
static uint64_t time_of(struct client *client, uint64_t told, bool busy, uint64_t passed)
{
	uint64_t early = client->rate.early, late = early - smaller(early, told);

	if (busy && client->rate.busy) {
		client->rate.early = early + passed > told ? early + passed - told : 0;
		return passed;
	}
	client->rate.early = busy || client->rate.busy ? late : 0;
	return smaller(told - smaller(early, told), passed);
}

/* What the client ran and wanted to run since the last look. */
static struct min_rate_use read_client(struct client *client, uint64_t passed)
{
	const struct weir_status_page *status = client->pages.status;
	uint64_t executed = atomic_load(&status->executed), before = client->rate.executed;
	uint64_t wanted = atomic_load(&status->demand_time), since = client->rate.wanted;
	bool busy = has_work(client);
	struct min_rate_use use = {
		.work = before && executed > before ? executed - before : 0,
		.time = time_of(client, since && wanted > since ? wanted - since : 0, busy, passed),
		.begins = !before && executed,
	};

	client->rate.executed = executed;
	client->rate.wanted = wanted;
	client->rate.busy = busy;
	client->rate.stopped = client->over_limit || client->held_until;
	/* One that does nothing says nothing of the container's requests. */
	use.busy = busy || use.time || use.work ? atomic_load(&status->busy_period) : 0;
	return use;
}

/* Clients of a container work at the same time. While its own limit stops it nothing counts. */
static struct min_rate_use read_tenant(const struct gpu *gpu, const struct tenant *tenant,
				       uint64_t passed)
{
	struct min_rate_use use = {0};
	bool stopped = false;

	for (struct client *client = tenant->clients; client; client = client->tenant_next) {
		if (client->gpu != gpu)
			continue;
		stopped |= client->rate.stopped;
		struct min_rate_use more = read_client(client, passed);
		use.work += more.work;
		use.begins |= more.begins;
		use.time = larger(use.time, more.time);
		use.busy = use.busy && more.busy ? smaller(use.busy, more.busy)
						 : larger(use.busy, more.busy);
	}
	if (stopped)
		use = (struct min_rate_use){0};
	return use;
}

static void say(const struct tenant *tenant, const struct min_rate *rate)
{
	char attained[MIN_RATE_TEXT_MAX], wanted[MIN_RATE_TEXT_MAX];
	const char *why = min_rate_why(rate->hindered);

	log_limited(rate->missed ? LOG_WARNING : LOG_INFO, 1, WHOSE "minimum rate %s %s: %s%s%s",
		    WHO(tenant), min_rate_format(rate->wanted, wanted),
		    rate->missed ? "is missed" : "is met again",
		    rate->attained == MIN_RATE_UNKNOWN ? "its speed alone is not known"
						       : min_rate_format(rate->attained, attained),
		    why ? "; " : "", why ? why : "");
}

static void charge(struct gpu *gpu, struct client *client, struct usage *usage, uint64_t passed)
{
	struct min_rate_use use = read_tenant(gpu, client->tenant, passed);
	bool alone = usage->rate_alone && is_alone(gpu, client);

	use.alone = alone;
	use.hindered = hindrances(gpu, client);
	use.leaving = leaving(gpu, client->tenant);
	use.works = usage->rate_works;
	if (min_rate_charge(&usage->rate, &use))
		say(client->tenant, &usage->rate);
}

/* The levels of clients that lack their rates, as bits, and the first such client that must learn
 * its speed alone. */
struct lacking {
	uint8_t levels;  /* at all; */
	uint8_t closed;  /* not between requests: those below are held; */
	uint8_t lasting; /* for MIN_RATE_SETTLE_NS without a pause */
	uint8_t holding; /* also among same-level clients */
	const struct client *learning;
	/* A client without a rate has work. Of several with rates that are ahead none makes room
	 * for another one. */
	bool others;
};

static struct lacking find_lacking(const struct gpu *gpu)
{
	struct lacking found = {0};

	for (const struct client *client = gpu->clients; client; client = client->gpu_next) {
		found.others |= !rated(client) && has_work(client);
		if (!lacks(client))
			continue;
		const struct min_rate *rate = &rated(client)->rate;
		found.levels |= (uint8_t)(1u << client->level);
		bool closed = !min_rate_answers(rate) || min_rate_must_be_alone(rate);
		found.closed |= (uint8_t)(closed << client->level);
		found.lasting |= (uint8_t)((rate->owned >= MIN_RATE_SETTLE_NS) << client->level);
		found.holding |= (uint8_t)(client->tenant->min_rate_holds << client->level);
		if (!found.learning && min_rate_learns(rate))
			found.learning = client;
	}
	return found;
}

/* @client must wait for one that lacks its rate. @leaves: it is ahead of its own. Of several that
 * lack theirs the first one learns its speed alone first. Lower-level clients wait for its demand
 * anyway, and only for that if it answers requests: they run again as soon as it is idle. Those
 * that may run beside demand for some SMs are held. Where clients take turns they would slip into
 * each gap between its kernels, which costs it two switches: they are stopped, but not for work
 * that is soon done. */
static bool waits(const struct client *client, const struct lacking *lacking, bool leaves)
{
	uint8_t own = (uint8_t)(1u << client->level), above = (uint8_t)(0xfe << client->level);
	const struct client *first = lacking->learning;

	if (leaves)
		return lacking->levels;
	if (lacks(client))
		return first && first->tenant != client->tenant && first->level >= client->level;
	bool spatial = atomic_load(&client->pages.control->flags) & WEIR_CONTROL_SPATIAL;
	uint8_t beside = spatial ? lacking->levels : lacking->closed;
	uint8_t above_all = runs_beside(client) ? beside : lacking->lasting;
	return above_all & above || lacking->holding & own;
}

static void apply(struct gpu *gpu, struct client *client, const struct lacking *lacking)
{
	const struct usage *usage = rated(client);
	bool leaves = usage && usage->rate.ahead;
	bool in_turns = leaves && !runs_beside(client);

	client->kept_out = waits(client, lacking, leaves) || (in_turns && lacking->others);
	client->leaves = leaves;
	client_set_flag(client, WEIR_CONTROL_LEAVES, leaves);
	if (!usage)
		return;
	/* Each time: work that comes meanwhile shows demand. */
	if (leaves || client->paused)
		demand_words_pause(gpu, client, leaves || client->over_limit);
	else if (!client->over_limit)
		demand_words_show(gpu, client);
}

static uint64_t next_look(const struct gpu *gpu, const struct client *client,
			  const struct usage *usage, uint64_t now)
{
	uint64_t due = min_rate_next(&usage->rate);

	if (!usage->rate_works)
		return lacks(client) ? now + MIN_RATES_BETWEEN_NS : POLICY_NEVER;
	if (!has_others(gpu, client->tenant))
		return now + MIN_RATES_ALONE_NS;
	if (!others_have_work(gpu, client->tenant))
		return now + MIN_RATES_QUIET_NS;
	uint64_t most = min_rate_answers(&usage->rate) ? MIN_RATES_REQUEST_NS : MIN_RATES_LOOK_NS;
	return now + smaller(larger(due, MIN_RATES_LATE_NS), most);
}

uint64_t min_rates_look(struct gpu *gpu, uint64_t now)
{
	uint64_t passed = now > gpu->rates_looked ? now - gpu->rates_looked : 0;
	uint64_t next = POLICY_NEVER;
	struct usage *usage;

	if (!gpu->rated)
		return POLICY_NEVER;
	find_work(gpu, now);
	for (struct client *client = gpu->clients; client; client = client->gpu_next)
		if (client_is_first(client) && (usage = rated(client)))
			charge(gpu, client, usage, passed);
	struct lacking lacking = find_lacking(gpu);
	for (struct client *client = gpu->clients; client; client = client->gpu_next)
		apply(gpu, client, &lacking);
	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		if (!client_is_first(client) || !(usage = rated(client)))
			continue;
		usage->rate_alone = is_alone(gpu, client);
		next = smaller(next, next_look(gpu, client, usage, now));
	}
	gpu->rates_looked = now;
	return next;
}

uint64_t min_rates_sum(const struct gpu *gpu)
{
	return gpu->rates_sum;
}

static void end(struct gpu *gpu, struct client *client)
{
	client_set_flag(client, WEIR_CONTROL_LEAVES, false);
	if (client->leaves && !client->over_limit)
		demand_words_pause(gpu, client, false);
	client->kept_out = client->leaves = false;
	client->rate = (typeof(client->rate)){0};
}

void min_rates_refresh(struct gpu *gpu, uint64_t now)
{
	bool before = gpu->rated;

	gpu->rated = false;
	gpu->rates_sum = 0;
	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		uint32_t wanted = client->tenant->min_rate;
		struct usage *usage =
			client->tenant->usages || wanted ? tenant_usage(client->tenant, gpu) : NULL;
		if (usage)
			min_rate_set(&usage->rate, wanted);
		gpu->rated |= rated(client) != NULL;
		gpu->rates_sum += client_is_first(client) ? wanted : 0;
		client_set_flag(client, WEIR_CONTROL_RATED,
				rated(client) && has_others(gpu, client->tenant));
		if (!rated(client))
			end(gpu, client);
	}
	if (!before)
		gpu->rates_looked = now;
}
