#include "scheduler/preemption.h"

#include "hardware/slices.h"
#include "policy/run-queue.h"

#include "weir/base.h"

static bool has_channels(const struct client *client)
{
	return client->channels.usable;
}

/* Whether clients of @level leave each other turns. */
static bool takes_turns(const struct gpu *gpu, uint8_t level)
{
	return !gpu->queues.policy->never_holds && !gpu_slices(gpu, level) &&
	       !gpu->queues.levels[level].all_concurrent;
}

static uint64_t weight_of(const struct client *client)
{
	return share_weight(&client->share, client->entry.weight);
}

static bool has_server(const struct client *client)
{
	return client->gpu->servers[client->level] && !has_channels(client);
}

/* Clients of a server run in its channel group, and count as one. */
static void add_server(struct slice_rank *rank, uint64_t weight)
{
	rank->n++;
	rank->weights += weight;
	rank->least = smaller(rank->least, weight);
}

/* @own: a client of @level, or NULL: the level's server. */
static struct slice_rank rank_of(const struct gpu *gpu, const struct client *own, uint8_t level)
{
	struct slice_rank rank = {.least = UINT64_MAX};
	uint64_t in_server = 0;

	for (const struct client *other = gpu->clients; other; other = other->gpu_next) {
		rank.above |= other->level > level;
		rank.below |= other->level < level;
		if (other->level != level)
			continue;
		in_server += has_server(other) ? weight_of(other) : 0;
		if (!has_channels(other) ||
		    (other != own && (takes_turns(gpu, level) || other->share.idle)))
			continue;
		rank.n++;
		rank.weights += weight_of(other);
		rank.least = smaller(rank.least, weight_of(other));
	}
	if (!own || (in_server && !takes_turns(gpu, level)))
		add_server(&rank, larger(in_server, 1));
	rank.weight = own ? weight_of(own) : larger(in_server, 1);
	return rank;
}

/* With short slices two clients that have work stop each other. */
static bool has_short_slice(const struct channels_client *channels)
{
	return channels->slice && channels->slice <= SLICE_BETWEEN;
}

static uint64_t hold_limit_of(const struct channels_client *channels)
{
	return has_short_slice(channels) ? 0 : PREEMPTION_HOLD_NS;
}

/* A server stops as a whole: only if all clients of its level are held. One whose level has changed
 * may be in it, too. */
static void stop_server(struct gpu *gpu, uint8_t level, uint64_t now)
{
	struct channels_client *server = gpu->servers[level];
	unsigned n = 0;

	if (!server)
		return;
	bool stop = true;
	for (const struct client *client = gpu->clients; client; client = client->gpu_next) {
		if (client->level != level && client->first_level != level)
			continue;
		n++;
		stop &= client->level == level && client->hold_began &&
			now - client->hold_began >= hold_limit_of(server);
	}
	channels_stop(server, stop && n);
}

void preemption_set_slices(struct gpu *gpu)
{
	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		if (!has_channels(client))
			continue;
		struct slice_rank rank = rank_of(gpu, client, client->level);
		channels_set_slice(&client->channels, slice_for(&rank));
	}
	for (uint8_t level = 0; level < WEIR_LEVELS; level++) {
		if (!gpu->servers[level])
			continue;
		stop_server(gpu, level, loop_now());
		struct slice_rank rank = rank_of(gpu, NULL, level);
		channels_set_slice(gpu->servers[level], slice_for(&rank));
	}
}

void preemption_set_server(struct gpu *gpu, uint8_t level, struct channels_client *server)
{
	gpu->servers[level] = server;
	if (gpu->queues.policy)
		preemption_set_slices(gpu);
}

void preemption_hold(struct client *client, uint64_t since, uint64_t now)
{
	bool held = since && now - since >= hold_limit_of(&client->channels);
	bool stop = has_channels(client) && (held || client->over_limit);

	/* Before the stop: the client may see it at once. */
	atomic_store(&client->pages.control->stopped_until, stop ? now + PREEMPTION_STOP_NS : 0);
	channels_stop(&client->channels, stop);
	stop_server(client->gpu, client->level, now);
}
