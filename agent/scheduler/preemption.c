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

static struct slice_rank rank_of(const struct gpu *gpu, const struct client *client)
{
	struct slice_rank rank = {.least = UINT64_MAX};

	for (const struct client *other = gpu->clients; other; other = other->gpu_next) {
		rank.above |= other->level > client->level;
		rank.below |= other->level < client->level;
		if (other->level != client->level || !has_channels(other) ||
		    (other != client && takes_turns(gpu, client->level)))
			continue;
		rank.n++;
		rank.weights += weight_of(other);
		rank.least = smaller(rank.least, weight_of(other));
	}
	rank.weight = weight_of(client);
	return rank;
}

void preemption_set_slices(struct gpu *gpu)
{
	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		if (!has_channels(client))
			continue;
		struct slice_rank rank = rank_of(gpu, client);
		channels_set_slice(&client->channels, slice_for(&rank));
	}
}

/* With short slices two clients that have work stop each other. */
static bool has_short_slice(const struct client *client)
{
	return client->channels.slice && client->channels.slice <= SLICE_BETWEEN;
}

void preemption_hold(struct client *client, uint64_t since, uint64_t now)
{
	uint64_t patience = has_short_slice(client) ? 0 : PREEMPTION_HOLD_NS;
	bool held = since && now - since >= patience;
	bool stop = has_channels(client) && (held || client->over_limit);

	/* Before the stop: the client may see it at once. */
	atomic_store(&client->pages.control->stopped_until, stop ? now + PREEMPTION_STOP_NS : 0);
	channels_stop(&client->channels, stop);
}
