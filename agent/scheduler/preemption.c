#include "scheduler/preemption.h"

#include <assert.h>
#include <string.h>

#include "common/process.h"
#include "hardware/freeze.h"
#include "hardware/slices.h"
#include "policy/run-queue.h"
#include "scheduler/siblings.h"
#include "scheduler/tenants.h"

#include "weir/base.h"
#include "weir/log.h"

static_assert(POLICY_QUICK == SLICE_BETWEEN * NS_PER_US, "quick work fits into a slice");

/* Whether clients of @level leave each other turns. */
static bool takes_turns(const struct gpu *gpu, uint8_t level)
{
	return !gpu->queues.policy->never_holds && !gpu_slices(gpu, level) &&
	       !gpu->queues.levels[level].slices && !gpu->queues.levels[level].all_concurrent;
}

static bool has_server(const struct client *client)
{
	return client->gpu->servers[client->level] && !preemption_works(client);
}

/* Idle clients of a level that is sliced now and then would only shorten the others' slices. */
static bool counts(const struct client *other, const struct client *own)
{
	return other == own || (own && siblings_share(own, other)) ||
	       (!takes_turns(other->gpu, other->level) &&
		(!other->gpu->queues.levels[other->level].slices || other->entry.active));
}

/* us. */
static uint64_t mean_by_policy(const struct gpu *gpu)
{
	const struct policy *policy = gpu->queues.policy;

	return policy->slice ? policy->slice(&gpu->queues.settings) / NS_PER_US : 0;
}

/* The driver is not to be asked for anything meanwhile. */
static bool has_quick_work(const struct run_queue_entry *entry)
{
	return entry->quick || objective_is_tight(entry->slo);
}

/* @own: a client of @level, or NULL: the level's server, in whose channel group its clients run. */
static struct slice_rank rank_of(const struct gpu *gpu, const struct client *own, uint8_t level)
{
	struct slice_rank rank = {.least = UINT64_MAX,
				  .alone = level > 0,
				  .quick = own && has_quick_work(&own->entry),
				  .steady = gpu->queues.levels[level].sliced,
				  .mean = mean_by_policy(gpu)};
	uint64_t in_server = 0;

	for (const struct client *other = gpu->clients; other; other = other->gpu_next) {
		rank.alone &= own ? other == own : other->level == level;
		rank.above |= other->level > level;
		rank.below |= other->level < level;
		if (other->level != level)
			continue;
		in_server += has_server(other) ? other->entry.weight : 0;
		if (!preemption_works(other) || !counts(other, own))
			continue;
		slice_rank_add(&rank, other->entry.weight);
		rank.steady &= !other->tenant->compute_limit;
		/* Beside a compute limit longer ones are too coarse. */
		if (other->tenant->compute_limit)
			rank.mean = smaller(rank.mean, SLICE_SHARE);
	}
	if (!own || (in_server && !takes_turns(gpu, level)))
		slice_rank_add(&rank, larger(in_server, 1));
	rank.weight = own ? own->entry.weight : larger(in_server, 1);
	return rank;
}

/* With short slices two clients that have work stop each other. */
static bool has_short_slice(const struct channels_client *channels)
{
	return channels->slice && channels->slice <= SLICE_BETWEEN;
}

/* For how long @client may go on in @channels, its own or its server's. */
static uint64_t hold_limit_in(const struct client *client, const struct channels_client *channels)
{
	if (has_short_slice(channels))
		return 0;
	return client->held_until ? PREEMPTION_HOLD_BY_HAND_NS : PREEMPTION_HOLD_NS;
}

/* A server stops as a whole: once all clients of its level were held for long enough. One whose
 * level has changed may be in it, too. POLICY_NEVER: somebody is not held. */
static uint64_t server_stops_at(const struct gpu *gpu, uint8_t level)
{
	uint64_t at = 0;

	if (gpu->self_test.state != SELF_TEST_WORKS)
		return POLICY_NEVER;
	for (const struct client *client = gpu->clients; client; client = client->gpu_next) {
		uint64_t began = client->preemption.hold_began;
		if (client->level != level && client->first_level != level)
			continue;
		if (client->level != level || !began)
			return POLICY_NEVER;
		at = larger(at, began + hold_limit_in(client, gpu->servers[level]));
	}
	return at ? at : POLICY_NEVER;
}

static void stop_server(struct gpu *gpu, uint8_t level, uint64_t now)
{
	struct channels_client *server = gpu->servers[level];

	if (!server)
		return;
	bool stop = now >= server_stops_at(gpu, level);
	/* Before the stop, and renewed in time. */
	uint64_t until = stop ? now + PREEMPTION_STOP_NS : 0;
	if (!stop != !server->told_until || until - server->told_until >= PREEMPTION_STOP_NS / 4) {
		server->tell_stopped(server, until);
		server->told_until = until;
	}
	channels_stop(server, stop);
}

void preemption_set_slices(struct gpu *gpu)
{
	/* Nobody has come. A server comes before its first client does. */
	if (!gpu->queues.policy)
		return;
	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		struct slice_rank rank = rank_of(gpu, client, client->level);
		channels_set_slice(&client->channels,
				   preemption_works(client) ? slice_for(&rank) : SLICE_DEFAULT);
	}
	for (uint8_t level = 0; level < WEIR_LEVELS; level++) {
		if (!gpu->servers[level])
			continue;
		stop_server(gpu, level, loop_now());
		struct slice_rank rank = rank_of(gpu, NULL, level);
		bool works = gpu->self_test.state == SELF_TEST_WORKS;
		channels_set_slice(gpu->servers[level], works ? slice_for(&rank) : SLICE_DEFAULT);
	}
}

void preemption_set_server(struct gpu *gpu, uint8_t level, struct channels_client *server)
{
	gpu->servers[level] = server;
	preemption_set_slices(gpu);
}

/* An expired hold is the client's to clear. */
static bool cleared_hold(const struct client *client, uint64_t now)
{
	const struct weir_control_page *control = client->pages.control;

	return client->preemption.hold_began && !atomic_load(&control->hold) &&
	       now < atomic_load(&control->hold_until);
}

/* The client reports work, although it was stopped for longer than reports take. */
static bool ran_while_stopped(struct client *client, uint64_t now)
{
	struct preemption *preemption = &client->preemption;
	uint64_t executed = atomic_load(&client->pages.status->executed);
	uint64_t former = preemption->executed;

	if (!preemption->stopped_since || now - preemption->stopped_since < PREEMPTION_REPORT_NS)
		return false;
	bool known = preemption->reported;
	preemption->executed = executed;
	preemption->reported = true;
	return known && executed != former;
}

/* Since when everything is stopped that the agent knows of the client's process on this GPU; 0:
 * something is not. */
static uint64_t process_stopped_at(const struct client *client)
{
	uint64_t last = 0;

	for (const struct client *other = client->gpu->clients; other; other = other->gpu_next) {
		if (other->pid != client->pid)
			continue;
		uint64_t at = channels_stopped_at(&other->channels);
		if (!at)
			return 0;
		last = larger(last, at);
	}
	return last;
}

/* The driver says that its process ran. */
static bool used_while_stopped(struct client *client, uint64_t now)
{
	struct preemption *preemption = &client->preemption;
	uint64_t since = preemption->stopped_since ? process_stopped_at(client) : 0;
	struct process_sample sample;

	/* A stop that has lapsed is renewed in a moment. */
	since = since ? larger(since, preemption->stopped_since) : 0;
	if (!since || now < since + PREEMPTION_WATCH_NS)
		return false;
	process_use_ask(&client->gpu->use, now);
	if (!process_use_find(&client->gpu->use, client->pid, &sample) ||
	    sample.end <= preemption->sampled || sample.end <= since)
		return false;
	preemption->sampled = sample.end;
	log_debug("client %llu: ran for %u %% of %u ms that ended %u ms after its stop",
		  (unsigned long long)client->number, sample.percent,
		  (unsigned)((sample.end - sample.begin) / NS_PER_MS),
		  (unsigned)((sample.end - since) / NS_PER_MS));
	return process_use_shows(&sample, since);
}

static void freeze(struct client *client)
{
	if (client->preemption.frozen)
		return;
	int r = freeze_stop(client->gpu->freezer, client->gpu->id, client->pid, client->process);

	client->preemption.frozen = r == 0;
	if (r < 0)
		log_limited(LOG_WARNING, 60, "client %llu cannot be stopped by a signal: %s",
			    (unsigned long long)client->number, strerror(-r));
}

static void disobeyed(struct client *client)
{
	struct preemption *preemption = &client->preemption;
	struct usage *usage = tenant_usage(client->tenant, client->gpu);

	preemption->disobeyed++;
	if (usage)
		usage->quotas.disobeyed++;
	if (!client->gpu->end_disobedient ||
	    (!client->ends_stops && preemption->disobeyed < PREEMPTION_KILL))
		return;
	client_end(client, ENDING_DISOBEDIENCE);
	client->gpu->end_disobedient(client->gpu);
}

/* Each place has a limit of its own: a client that does one thing all the time hides nothing else.
 */
#define SAY(client, how)                                                                 \
	log_limited(LOG_WARNING, 1, WHOSE "client %llu, pid %d, " how ": it is stopped", \
		    WHO((client)->tenant), (unsigned long long)(client)->number,         \
		    (int)(client)->pid)

static void end_hold(struct client *client)
{
	struct preemption *preemption = &client->preemption;

	if (preemption->frozen)
		freeze_go_on(client->gpu->freezer, client->gpu->id, client->pid, client->process);
	*preemption = (struct preemption){0};
}

static void look_for_disobedience(struct client *client, uint64_t now)
{
	if (cleared_hold(client, now)) {
		SAY(client, "has cleared its hold word");
		disobeyed(client);
	}
	bool ran = ran_while_stopped(client, now), used = used_while_stopped(client, now);
	if (!ran && !used)
		return;
	/* A report may only have come late; the driver's count is certain. */
	client->ends_stops |= used;
	SAY(client, "runs while it is stopped");
	disobeyed(client);
	freeze(client);
	channels_stop_again(&client->channels);
}

static void forget_stop(struct preemption *preemption)
{
	preemption->stopped_since = 0;
	preemption->reported = false;
}

/* When the agent was late, the client has let its groups go on, as it should. */
static void stop_again_if_late(struct client *client, uint64_t now)
{
	if (!client->stopped_until || now < client->stopped_until)
		return;
	forget_stop(&client->preemption);
	channels_stop_again(&client->channels);
}

/* Call while it is stopped. */
static void look_for_death(struct client *client, uint64_t now)
{
	struct preemption *preemption = &client->preemption;

	if (now - preemption->alive_at < PREEMPTION_DEATH_NS)
		return;
	preemption->alive_at = now;
	if (process_is_ending(client->pid))
		channels_forget(&client->channels);
}

/* The client is held for an objective whose work fits into one slice. A stop, or its end, would
 * interrupt that work, because the driver makes the GPU switch again. Requests of 0.3 ms took
 * 0.54 ms in the median on an H100, of which 0.16 is the switch; with stops, and a hold of 0.1 ms
 * at first, 0.77. So nothing is asked of the driver meanwhile. If a turn has just begun, the client
 * that had the turn before is not stopped yet, and the one that has it stays stopped. With that the
 * p99 of 175 requests was 0.71 ms (one run).
 */
static bool makes_room_shortly(const struct client *client)
{
	const struct run_queue_entry *current = client->entry.queue->current;

	return current && has_quick_work(current) && current->remaining <= POLICY_QUICK;
}

/* For how long it may go on. */
static uint64_t hold_limit(const struct client *client)
{
	if (client->held_until || !makes_room_shortly(client))
		return hold_limit_in(client, &client->channels);
	return channels_stays_stopped(&client->channels) ? 0 : PREEMPTION_HOLD_NS;
}

/* Whether it was held for long enough. */
static bool is_held_for_long(const struct client *client, uint64_t now)
{
	const struct preemption *preemption = &client->preemption;
	bool obeys = !preemption->disobeyed && !client->ends_stops;

	return !obeys || now - preemption->hold_began >= hold_limit(client);
}

/* True: it is to be stopped. */
static bool go_on_holding(struct client *client, uint64_t now)
{
	struct preemption *preemption = &client->preemption;

	look_for_disobedience(client, now);
	preemption->hold_began = preemption->hold_began ? preemption->hold_began : now;
	bool stop = preemption_works(client) && is_held_for_long(client, now);
	if (!stop)
		forget_stop(preemption);
	else if (!preemption->stopped_since)
		preemption->stopped_since = now;
	if (stop && client->ends_stops)
		freeze(client);
	return stop;
}

uint64_t preemption_due(const struct client *client)
{
	const struct preemption *preemption = &client->preemption;
	const struct channels_client *server = client->gpu->servers[client->level];

	if (!client->held_until || !preemption->hold_began)
		return POLICY_NEVER;
	if (preemption_works(client))
		return preemption->stopped_since ? POLICY_NEVER
						 : preemption->hold_began + hold_limit(client);
	return server && !server->stopped ? server_stops_at(client->gpu, client->level)
					  : POLICY_NEVER;
}

void preemption_hold(struct client *client, bool held, uint64_t now)
{
	bool stop = preemption_works(client) && client_is_out(client);

	stop_again_if_late(client, now);
	if (held)
		stop |= go_on_holding(client, now);
	else
		end_hold(client);
	if (stop)
		look_for_death(client, now);
	/* Before the stop: the client may see it at once. */
	client->stopped_until = stop ? now + PREEMPTION_STOP_NS : 0;
	atomic_store(&client->pages.control->stopped_until, client->stopped_until);
	channels_stop(&client->channels, stop);
	stop_server(client->gpu, client->level, now);
}
