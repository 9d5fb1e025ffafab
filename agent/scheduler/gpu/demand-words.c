#include "scheduler/gpu/demand-words.h"

#include "scheduler/gpu/demand-bits.h"
#include "scheduler/gpu/gpu-state.h"

#include "weir/base.h"

static struct weir_demand_page *page_of(const struct gpu *gpu, unsigned level)
{
	return gpu->region.pages[level].demand;
}

static bool may_set(const struct client *client, unsigned level, uint64_t now)
{
	return client->level > level || now < client->old_until;
}

uint64_t demand_words_allowed(const struct gpu *gpu, unsigned level, uint64_t now)
{
	uint64_t bits = gpu->reserved | (gpu->n_shared ? DEMAND_BIT_SHARED : 0);

	for (const struct client *client = gpu->clients; client; client = client->gpu_next)
		if (client->bit < WEIR_BITS_OWN && may_set(client, level, now))
			bits |= demand_bit(client);
	return bits;
}

static bool shows_demand(const struct gpu *gpu, const struct client *client)
{
	for (unsigned level = 0; level < client->level && client->bit < WEIR_BITS_OWN; level++)
		if (demand_page_bits(page_of(gpu, level)) & demand_bit(client))
			return true;
	return false;
}

static void clear_bit(const struct gpu *gpu, const struct client *client)
{
	for (unsigned level = 0; level < WEIR_DEMAND_LEVELS; level++)
		demand_page_keep(page_of(gpu, level), ~demand_bit(client));
}

/* A client sets its bit just before it reports work, and demand may be speculative. So it gets some
 * time. */
static void clear_unclaimed(const struct gpu *gpu, uint64_t now)
{
	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		if (atomic_load(&client->pages.status->outstanding) || !shows_demand(gpu, client)) {
			client->unclaimed_since = 0;
		} else if (!client->unclaimed_since) {
			client->unclaimed_since = now;
		} else if (now - client->unclaimed_since >= DEMAND_WORDS_CLAIM_NS) {
			clear_bit(gpu, client);
			client->unclaimed_since = 0;
			client->tell = true;
		}
	}
}

/* A client of an older libweir sets its bit in `word` alone, but kernels that wait for `whole` may
 * have been launched before it came. */
static void set_for_older(const struct gpu *gpu)
{
	for (const struct client *client = gpu->clients; client; client = client->gpu_next) {
		bool older = !client->says_whole && client->bit < WEIR_BITS_OWN;
		for (unsigned level = 0; older && level < client->level; level++)
			demand_page_whole(page_of(gpu, level), demand_bit(client));
	}
}

/* A client that died takes nothing away. The part of a paused client stays, and that of a client
 * without demand while its next launch is expected. */
static uint32_t said_sms(const struct gpu *gpu, unsigned level)
{
	uint64_t whole = atomic_load(&page_of(gpu, level)->whole);
	uint32_t said = 0;

	for (const struct client *client = gpu->clients; client; client = client->gpu_next) {
		uint64_t acts_at = atomic_load(&client->pages.status->level);
		bool above = smaller(client->level, acts_at) > level;
		if (above && client->bit < WEIR_BITS_OWN && !(whole & demand_bit(client)))
			said += atomic_load(&client->pages.status->demand_sms);
	}
	return said;
}

void demand_words_sweep(struct gpu *gpu, uint64_t now)
{
	for (unsigned level = 0; level < WEIR_DEMAND_LEVELS; level++) {
		demand_page_keep(page_of(gpu, level), demand_words_allowed(gpu, level, now));
		/* Clients that have not come back yet say nothing. */
		if (!gpu->reserved)
			demand_page_repair(page_of(gpu, level), &gpu->sms_looks[level],
					   said_sms(gpu, level));
	}
	set_for_older(gpu);
	region_clear_retired(&gpu->region);
	clear_unclaimed(gpu, now);
}

/* A raised client acts at its old level until its own gates of that level are passed: its demand
 * must not close them. */
void demand_words_share(struct gpu *gpu)
{
	uint64_t wanted[WEIR_DEMAND_LEVELS] = {0};

	for (const struct client *client = gpu->clients; client; client = client->gpu_next) {
		if (client->bit != WEIR_BIT_SHARED || client->paused ||
		    atomic_load(&client->pages.status->outstanding) == 0)
			continue;
		uint64_t acts_at = atomic_load(&client->pages.status->level);
		for (unsigned level = 0; level < smaller(client->level, acts_at); level++)
			wanted[level] = DEMAND_BIT_SHARED;
	}
	for (unsigned level = 0; level < WEIR_DEMAND_LEVELS; level++) {
		struct weir_demand_page *page = page_of(gpu, level);
		if ((demand_page_bits(page) & DEMAND_BIT_SHARED) == wanted[level])
			continue;
		if (wanted[level])
			demand_page_set(page, DEMAND_BIT_SHARED);
		else
			demand_page_keep(page, ~DEMAND_BIT_SHARED);
	}
}

/* The SMs that the client needed before are in the page's sum still, so `whole` stays clear. */
static void show_bit(struct weir_demand_page *page, const struct client *client)
{
	if (atomic_load(&client->pages.status->demand_sms))
		atomic_fetch_or(&page->word, demand_bit(client));
	else
		demand_page_set(page, demand_bit(client));
}

/* The bit of its own, where it acts. Others find it as if it had been set all the time. */
static void show_again(const struct gpu *gpu, const struct client *client)
{
	uint64_t acts_at = atomic_load(&client->pages.status->level);

	if (client->bit >= WEIR_BITS_OWN || !atomic_load(&client->pages.status->outstanding))
		return;
	for (unsigned level = 0; level < smaller(client->level, acts_at); level++)
		show_bit(page_of(gpu, level), client);
	/* It clears its bit before it reports that its work has ended. */
	if (!atomic_load(&client->pages.status->outstanding))
		clear_bit(gpu, client);
}

void demand_words_show(const struct gpu *gpu, const struct client *client)
{
	if (gpu->open && client->bit < WEIR_BITS_OWN && !shows_demand(gpu, client))
		show_again(gpu, client);
}

void demand_words_pause(struct gpu *gpu, struct client *client, bool paused)
{
	bool before = client->paused;

	client->paused = paused;
	if (!gpu->open)
		return;
	if (paused && client->bit < WEIR_BITS_OWN)
		clear_bit(gpu, client);
	else if (before && !paused)
		show_again(gpu, client);
	if (client->bit == WEIR_BIT_SHARED && before != paused)
		demand_words_share(gpu);
}
