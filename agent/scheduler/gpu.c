#include "scheduler/gpu.h"

#include "hardware/freeze.h"

#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "scheduler/client.h"
#include "scheduler/spatial.h"

#include "weir/base.h"
#include "weir/log.h"

void gpu_format_id(const uint8_t uuid[16], char out[GPU_ID_SIZE])
{
	size_t n = (size_t)snprintf(out, GPU_ID_SIZE, "GPU");

	for (int i = 0; i < 16; i++) {
		bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
		n += (size_t)snprintf(out + n, GPU_ID_SIZE - n, "%s%02x", dash ? "-" : "", uuid[i]);
	}
}

bool gpu_parse_id(const char *id, uint8_t out[16])
{
	char again[GPU_ID_SIZE];
	uint8_t uuid[16];
	const char *at = id + 4;

	if (strlen(id) != GPU_ID_SIZE - 1)
		return false;
	for (int i = 0; i < 16; i++) {
		at += *at == '-';
		if (sscanf(at, "%2hhx", &uuid[i]) != 1)
			return false;
		at += 2;
	}
	gpu_format_id(uuid, again);
	if (strcmp(again, id) != 0)
		return false;
	memcpy(out, uuid, sizeof(uuid));
	return true;
}

static uint64_t bit_of(const struct client *client)
{
	return 1ull << client->bit;
}

static struct weir_demand_page *page_of(const struct gpu *gpu, unsigned level)
{
	return gpu->region.pages[level].demand;
}

#define SHARED          (1ull << WEIR_BIT_SHARED)
#define GPU_RENEWALS_NS ((GPU_RENEWALS - 1) * (int64_t)GPU_RENEW_NS)

static void note_bits(struct gpu *gpu)
{
	atomic_store(&gpu->region.taken->bits, gpu->bits | gpu->reserved);
}

/* A word that clients read is only written if it changes. */
static void tell(_Atomic uint32_t *word, uint32_t value)
{
	if (atomic_load(word) != value)
		atomic_store(word, value);
}

void gpu_tell_blocking(struct gpu *gpu, uint64_t now)
{
	struct max_blocking_look look;
	uint32_t ns[WEIR_LEVELS];

	max_blocking_time_begin(&look);
	for (struct client *client = gpu->clients; client; client = client->gpu_next)
		max_blocking_time_add(&look, &client->blocking, client->pages.status, client->level,
				      client->entry.slo, now);
	max_blocking_time_find(&look, gpu->reserved != 0, ns);
	for (struct client *client = gpu->clients; client; client = client->gpu_next)
		tell(&client->pages.control->max_blocking_time, ns[client->level]);
}

void gpu_tell_spatial(struct gpu *gpu)
{
	bool ever = !gpu->reserved && !gpu_has_servers(gpu);
	struct spatial_look look = {0};

	for (const struct client *client = gpu->clients; client; client = client->gpu_next)
		spatial_add(&look, client->level,
			    client->says_whole && client_is_concurrent(client), client->yield != 0);
	for (const struct client *client = gpu->clients; client; client = client->gpu_next)
		client_set_flag(client, WEIR_CONTROL_SPATIAL,
				ever && client_is_concurrent(client) &&
					spatial_allows(&look, client->level));
}

/* A client of an older libweir sets its bit in `word` alone, but kernels that wait for `whole` may
 * have been launched before it came. */
static void set_for_older(const struct gpu *gpu)
{
	for (const struct client *client = gpu->clients; client; client = client->gpu_next) {
		bool older = !client->says_whole && client->bit < WEIR_BITS_OWN;
		for (unsigned level = 0; older && level < client->level; level++)
			demand_page_whole(page_of(gpu, level), bit_of(client));
	}
}

/* Regular looks are needed. */
static bool needs_watch(const struct gpu *gpu, uint64_t now)
{
	unsigned n = 0;

	for (uint8_t level = 0; level < WEIR_LEVELS; level++)
		n += gpu->n_level[level] != 0;
	return n > 1 || gpu->reserved || gpu->unsafe || now < gpu->graces_until ||
	       region_has_retired(&gpu->region);
}

static void watch(struct gpu *gpu, uint64_t now)
{
	bool needed = needs_watch(gpu, now);

	if (needed && !gpu->watched)
		loop_timer_set(&gpu->watch, GPU_WATCH_NS, GPU_WATCH_NS);
	else if (!needed)
		loop_timer_clear(&gpu->watch);
	gpu->watched = needed;
}

static void begin_grace(struct gpu *gpu)
{
	gpu->graces_until = loop_now() + GPU_GRACE_NS;
	watch(gpu, loop_now());
}

/* Tells each client how many are above and below it. A client that may come back after a restart
 * may be above any other, so none must stop gating meanwhile. */
static void recount(struct gpu *gpu)
{
	unsigned above[WEIR_LEVELS], below[WEIR_LEVELS] = {0};
	unsigned n = (unsigned)__builtin_popcountll(gpu->reserved);

	for (int level = WEIR_LEVELS - 1; level >= 0; level--) {
		above[level] = level == WEIR_LEVELS - 1 ? 0 : n;
		n += gpu->n_level[level];
	}
	for (unsigned level = 1; level < WEIR_LEVELS; level++)
		below[level] = below[level - 1] + gpu->n_level[level - 1];
	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		struct weir_control_page *page = client->pages.control;
		if (atomic_load(&page->above) == above[client->level] &&
		    atomic_load(&page->below) == below[client->level])
			continue;
		atomic_store(&page->above, above[client->level]);
		atomic_store(&page->below, below[client->level]);
		atomic_fetch_add(&page->epoch, 1);
	}
	gpu_tell_spatial(gpu);
	gpu_tell_blocking(gpu, loop_now());
	watch(gpu, loop_now());
}

static bool shares_bit(const struct client *client)
{
	return client->bit == WEIR_BIT_SHARED && client->level > 0;
}

static bool may_set(const struct client *client, unsigned level, uint64_t now)
{
	return client->level > level || now < client->old_until;
}

static uint64_t allowed(const struct gpu *gpu, unsigned level, uint64_t now)
{
	uint64_t bits = gpu->reserved | (gpu->n_shared ? SHARED : 0);

	for (const struct client *client = gpu->clients; client; client = client->gpu_next)
		if (client->bit < WEIR_BITS_OWN && may_set(client, level, now))
			bits |= bit_of(client);
	return bits;
}

static bool shows_demand(const struct gpu *gpu, const struct client *client)
{
	for (unsigned level = 0; level < client->level && client->bit < WEIR_BITS_OWN; level++)
		if (demand_page_bits(page_of(gpu, level)) & bit_of(client))
			return true;
	return false;
}

static void clear_bit(const struct gpu *gpu, const struct client *client)
{
	for (unsigned level = 0; level < WEIR_DEMAND_LEVELS; level++)
		demand_page_keep(page_of(gpu, level), ~bit_of(client));
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
		} else if (now - client->unclaimed_since >= GPU_CLAIM_NS) {
			clear_bit(gpu, client);
			client->unclaimed_since = 0;
			client->tell = true;
		}
	}
}

/* Clients of level q wait for page q, and those above write it. */
static void renew_pages(struct gpu *gpu)
{
	int64_t now = (int64_t)loop_now(), least = now - GPU_RENEWALS_NS;
	uint32_t before = gpu->unsafe;

	if (now < gpu->renew_from)
		return;
	for (unsigned level = 0; level < WEIR_DEMAND_LEVELS; level++) {
		uint64_t word = demand_page_bits(page_of(gpu, level));
		if (!(gpu->unsafe & 1u << level) ||
		    region_renew(&gpu->region, gpu->root, gpu->id, level,
				 word & allowed(gpu, level, UINT64_MAX)) < 0)
			continue;
		gpu->unsafe &= ~(1u << level);
		for (struct client *client = gpu->clients; client; client = client->gpu_next)
			client->tell |= client->level >= level;
	}
	if (gpu->unsafe != before)
		gpu->renew_from =
			(gpu->renew_from > least ? gpu->renew_from : least) + (int64_t)GPU_RENEW_NS;
}

void gpu_revoke(struct gpu *gpu, uint8_t level, uint8_t former)
{
	gpu->unsafe |= (1u << former) - (1u << level);
}

void gpu_tell(struct gpu *gpu)
{
	renew_pages(gpu);
	for (struct client *client = gpu->clients; client; client = client->gpu_next) {
		if (client->tell && client->tell_level)
			client->tell_level(client);
		client->tell = false;
	}
}

static void note_level(const struct gpu *gpu, const struct client *client)
{
	_Atomic uint8_t *noted = &gpu->region.taken->levels[client->bit];

	if (client->bit < WEIR_BITS_OWN || client->level > atomic_load(noted))
		atomic_store(noted, client->level);
}

/* Their owners may live, and have lost their levels meanwhile. */
static void give_up_reserved(struct gpu *gpu)
{
	uint8_t former = atomic_load(&gpu->region.taken->levels[WEIR_BIT_SHARED]);

	log_info("%s: %d demand bits from before the restart were not claimed", gpu->id,
		 __builtin_popcountll(gpu->reserved));
	for (unsigned bit = 0; bit < WEIR_BITS_OWN; bit++)
		if (gpu->reserved & 1ull << bit)
			former = (uint8_t)larger(former,
						 atomic_load(&gpu->region.taken->levels[bit]));
	atomic_store(&gpu->region.taken->levels[WEIR_BIT_SHARED], 0);
	for (const struct client *client = gpu->clients; client; client = client->gpu_next)
		note_level(gpu, client);
	gpu->unsafe |= (1u << former) - 1;
	gpu->reserved = 0;
	note_bits(gpu);
	recount(gpu);
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
		if (above && client->bit < WEIR_BITS_OWN && !(whole & bit_of(client)))
			said += atomic_load(&client->pages.status->demand_sms);
	}
	return said;
}

void gpu_sweep(struct gpu *gpu, uint64_t now)
{
	if (gpu->reserved && now >= gpu->reserved_until)
		give_up_reserved(gpu);
	for (unsigned level = 0; level < WEIR_DEMAND_LEVELS; level++) {
		demand_page_keep(page_of(gpu, level), allowed(gpu, level, now));
		/* Clients that have not come back yet say nothing. */
		if (!gpu->reserved)
			demand_page_repair(page_of(gpu, level), &gpu->sms_looks[level],
					   said_sms(gpu, level));
	}
	set_for_older(gpu);
	region_clear_retired(&gpu->region);
	clear_unclaimed(gpu, now);
	gpu_tell(gpu);
}

static void watch_due(struct loop_timer *timer)
{
	struct gpu *gpu = container_of(timer, struct gpu, watch);
	uint64_t now = loop_now();

	gpu_sweep(gpu, now);
	gpu_tell_spatial(gpu);
	gpu_tell_blocking(gpu, now);
	if (!gpu->clients && !gpu->reserved)
		region_drop_retired(&gpu->region, gpu->root, gpu->id);
	watch(gpu, now);
}

/* A raised client acts at its old level until its own gates of that level are passed: its demand
 * must not close them. */
void gpu_share(struct gpu *gpu)
{
	uint64_t wanted[WEIR_DEMAND_LEVELS] = {0};

	for (const struct client *client = gpu->clients; client; client = client->gpu_next) {
		if (client->bit != WEIR_BIT_SHARED || client->paused ||
		    atomic_load(&client->pages.status->outstanding) == 0)
			continue;
		uint64_t acts_at = atomic_load(&client->pages.status->level);
		for (unsigned level = 0; level < smaller(client->level, acts_at); level++)
			wanted[level] = SHARED;
	}
	for (unsigned level = 0; level < WEIR_DEMAND_LEVELS; level++) {
		struct weir_demand_page *page = page_of(gpu, level);
		if ((demand_page_bits(page) & SHARED) == wanted[level])
			continue;
		if (wanted[level])
			demand_page_set(page, SHARED);
		else
			demand_page_keep(page, ~SHARED);
	}
}

static void sharing_due(struct loop_timer *timer)
{
	gpu_share(container_of(timer, struct gpu, sharing));
}

static void count_shared(struct gpu *gpu)
{
	unsigned before = gpu->n_shared;

	gpu->n_shared = 0;
	for (const struct client *client = gpu->clients; client; client = client->gpu_next)
		gpu->n_shared += shares_bit(client);
	if (gpu->n_shared == 0)
		loop_timer_clear(&gpu->sharing);
	else if (before == 0)
		loop_timer_set(&gpu->sharing, GPU_SHARING_NS, GPU_SHARING_NS);
	gpu_share(gpu);
}

/* The SMs that the client needed before are in the page's sum still, so `whole` stays clear. */
static void show_bit(struct weir_demand_page *page, const struct client *client)
{
	if (atomic_load(&client->pages.status->demand_sms))
		atomic_fetch_or(&page->word, bit_of(client));
	else
		demand_page_set(page, bit_of(client));
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

void gpu_show(const struct gpu *gpu, const struct client *client)
{
	if (gpu->open && client->bit < WEIR_BITS_OWN && !shows_demand(gpu, client))
		show_again(gpu, client);
}

void gpu_pause(struct gpu *gpu, struct client *client, bool paused)
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
		gpu_share(gpu);
}

static void deinit_parts(struct gpu *gpu)
{
	loop_timer_deinit(&gpu->sharing);
	loop_timer_deinit(&gpu->watch);
	region_deinit(&gpu->region);
}

void gpu_await_claims(struct gpu *gpu)
{
	gpu->reserved_until = loop_now() + GPU_GRACE_NS;
}

int gpu_open(struct gpu *gpu, struct loop *loop, const struct folder *root)
{
	int r = region_init(&gpu->region, root, gpu->id);

	if (r < 0)
		return r;
	r = loop_timer_init(&gpu->watch, loop, watch_due);
	if (r == 0)
		r = loop_timer_init(&gpu->sharing, loop, sharing_due);
	if (r < 0) {
		deinit_parts(gpu);
		return r;
	}
	gpu->open = true;
	gpu->root = root;
	freeze_recover(root, gpu->id);
	gpu->renew_from = (int64_t)loop_now() - GPU_RENEWALS_NS;
	gpu->reserved = atomic_load(&gpu->region.taken->bits) & ~SHARED;
	gpu_await_claims(gpu);
	gpu_sweep(gpu, gpu->reserved ? 0 : gpu->reserved_until);
	watch(gpu, loop_now());
	return 0;
}

void gpu_close(struct gpu *gpu)
{
	channels_deinit(&gpu->channels);
	program_run_stop(&gpu->self_test.run);
	process_use_deinit(&gpu->use);
	if (!gpu->open)
		return;
	deinit_parts(gpu);
	gpu->open = gpu->watched = false;
}

static uint8_t choose_bit(struct gpu *gpu, const struct client *client, uint8_t claimed)
{
	uint64_t unowned = ~(gpu->bits | SHARED), free_bits = unowned & ~gpu->reserved;
	int n_own = 0;

	if (client->level == 0)
		return WEIR_BIT_SHARED;
	for (const struct client *other = gpu->clients; other; other = other->gpu_next)
		n_own += other->tenant == client->tenant && other->bit < WEIR_BITS_OWN;
	if (claimed < WEIR_BITS_OWN && unowned & 1ull << claimed &&
	    n_own < __builtin_popcountll(unowned))
		return claimed;
	if (n_own < __builtin_popcountll(free_bits))
		return (uint8_t)__builtin_ctzll(free_bits);
	gpu->bits_refused++;
	return WEIR_BIT_SHARED;
}

static void give_bit(struct gpu *gpu, struct client *client, uint8_t claimed)
{
	client->bit = choose_bit(gpu, client, claimed);
	if (client->bit == WEIR_BIT_SHARED)
		return;
	gpu->bits |= bit_of(client);
	gpu->reserved &= ~bit_of(client);
	note_bits(gpu);
}

void gpu_add(struct gpu *gpu, struct client *client, uint8_t claimed_bit)
{
	uint64_t now = loop_now();

	if (!gpu->clients)
		gpu_sweep(gpu, now);
	client->gpu = gpu;
	uint64_t reserved = gpu->reserved;
	give_bit(gpu, client, claimed_bit);
	uint8_t former = atomic_load(&gpu->region.taken->levels[client->bit]);
	if (reserved & bit_of(client) && former > client->level) {
		gpu_revoke(gpu, client->level, former);
		gpu_tell(gpu); /* the others */
	}
	note_level(gpu, client);
	DL_APPEND2(gpu->clients, client, gpu_prev, gpu_next);
	gpu->n_level[client->level]++;
	/* A claimed bit may be set at levels that its owner was above before. */
	if (client->bit == claimed_bit) {
		client->old_until = now + GPU_GRACE_NS;
		begin_grace(gpu);
	}
	count_shared(gpu);
	recount(gpu);
}

void gpu_remove(struct gpu *gpu, struct client *client, bool lives)
{
	DL_DELETE2(gpu->clients, client, gpu_prev, gpu_next);
	gpu->n_level[client->level]--;
	if (client->bit < WEIR_BITS_OWN && !lives) {
		gpu->bits &= ~bit_of(client);
		note_bits(gpu);
	}
	count_shared(gpu);
	recount(gpu);
	if (lives)
		return;
	gpu_sweep(gpu, loop_now());
	begin_grace(gpu); /* the process may live on for a moment and set its bit */
}

void gpu_set_level(struct gpu *gpu, struct client *client, uint8_t level)
{
	if (level < client->level)
		gpu_revoke(gpu, level, client->level);
	gpu->n_level[client->level]--;
	gpu->n_level[level]++;
	client->level = level;
	client->tell = true;
	if (shares_bit(client) && client->takes_bit)
		give_bit(gpu, client, WEIR_BIT_NONE);
	note_level(gpu, client);
	atomic_store(&client->pages.control->level, level);
	atomic_fetch_add(&client->pages.control->epoch, 1);
	count_shared(gpu);
	recount(gpu);
}
