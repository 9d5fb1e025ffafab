#include "scheduler/gpu/gpu.h"

#include <utlist.h>

#include "scheduler/client.h"
#include "scheduler/gpu/demand-bits.h"
#include "scheduler/gpu/demand-words.h"
#include "scheduler/gpu/spatial.h"

#include "weir/base.h"

#define GPU_RENEWALS_NS ((GPU_RENEWALS - 1) * (int64_t)GPU_RENEW_NS)

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
			    client->says_whole && client_is_concurrent(client),
			    client_yields_part(client));
	for (const struct client *client = gpu->clients; client; client = client->gpu_next)
		client_set_flag(client, WEIR_CONTROL_SPATIAL,
				ever && client_is_concurrent(client) &&
					spatial_allows(&look, client->level));
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

/* Clients of level q wait for page q, and those above write it. */
static void renew_pages(struct gpu *gpu)
{
	int64_t now = (int64_t)loop_now(), least = now - GPU_RENEWALS_NS;
	uint32_t before = gpu->unsafe;

	if (now < gpu->renew_from)
		return;
	for (unsigned level = 0; level < WEIR_DEMAND_LEVELS; level++) {
		uint64_t word = demand_page_bits(gpu->region.pages[level].demand);
		if (!(gpu->unsafe & 1u << level) ||
		    region_renew(&gpu->region, gpu->root, gpu->id, level,
				 word & demand_words_allowed(gpu, level, UINT64_MAX)) < 0)
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

void gpu_sweep(struct gpu *gpu, uint64_t now)
{
	if (gpu->reserved && now >= gpu->reserved_until) {
		demand_bits_give_up(gpu);
		recount(gpu);
	}
	demand_words_sweep(gpu, now);
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

static void sharing_due(struct loop_timer *timer)
{
	demand_words_share(container_of(timer, struct gpu, sharing));
}

static void count_shared(struct gpu *gpu)
{
	unsigned before = gpu->n_shared;

	gpu->n_shared = 0;
	for (const struct client *client = gpu->clients; client; client = client->gpu_next)
		gpu->n_shared += demand_bit_is_shared(client);
	if (gpu->n_shared == 0)
		loop_timer_clear(&gpu->sharing);
	else if (before == 0)
		loop_timer_set(&gpu->sharing, GPU_SHARING_NS, GPU_SHARING_NS);
	demand_words_share(gpu);
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
	gpu->renew_from = (int64_t)loop_now() - GPU_RENEWALS_NS;
	gpu->reserved = atomic_load(&gpu->region.taken->bits) & ~DEMAND_BIT_SHARED;
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

void gpu_add(struct gpu *gpu, struct client *client, uint8_t claimed_bit)
{
	uint64_t now = loop_now();

	if (!gpu->clients)
		gpu_sweep(gpu, now);
	client->gpu = gpu;
	uint64_t reserved = gpu->reserved;
	demand_bits_give(gpu, client, claimed_bit);
	uint8_t former = atomic_load(&gpu->region.taken->levels[client->bit]);
	if (reserved & demand_bit(client) && former > client->level) {
		gpu_revoke(gpu, client->level, former);
		gpu_tell(gpu); /* the others */
	}
	demand_bits_note_level(gpu, client);
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
	if (!lives)
		demand_bits_take(gpu, client);
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
	if (demand_bit_is_shared(client) && client->takes_bit)
		demand_bits_give(gpu, client, WEIR_BIT_NONE);
	demand_bits_note_level(gpu, client);
	atomic_store(&client->pages.control->level, level);
	atomic_fetch_add(&client->pages.control->epoch, 1);
	count_shared(gpu);
	recount(gpu);
}
