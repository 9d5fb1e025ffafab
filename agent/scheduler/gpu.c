#include "scheduler/gpu.h"

#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "scheduler/client.h"

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

#define SHARED (1ull << WEIR_BIT_SHARED)

static void note_bits(struct gpu *gpu)
{
	atomic_store(gpu->region.taken, gpu->bits | gpu->reserved);
}

void gpu_tell_blocking(struct gpu *gpu, uint64_t now)
{
	struct max_blocking_look look;
	uint32_t ns[WEIR_LEVELS];
	struct client *client;

	max_blocking_time_begin(&look);
	for (client = gpu->clients; client; client = client->gpu_next)
		max_blocking_time_add(&look, &client->blocking, client->pages.status, client->level,
				      client->entry.slo, now);
	max_blocking_time_find(&look, gpu->reserved != 0, ns);
	for (client = gpu->clients; client; client = client->gpu_next) {
		_Atomic uint32_t *told = &client->pages.control->max_blocking_time;
		if (atomic_load(told) != ns[client->level])
			atomic_store(told, ns[client->level]);
	}
}

static void blocking_due(struct loop_timer *timer)
{
	gpu_tell_blocking(container_of(timer, struct gpu, blocking), loop_now());
}

/* Looks at once, and then regularly while there is more than one level. */
static void follow_levels(struct gpu *gpu)
{
	unsigned n = 0;

	gpu_tell_blocking(gpu, loop_now());
	for (uint8_t level = 0; level < WEIR_LEVELS; level++)
		n += gpu->n_level[level] != 0;
	if (n > 1)
		loop_timer_set(&gpu->blocking, MAX_BLOCKING_TIME_LOOK_NS,
			       MAX_BLOCKING_TIME_LOOK_NS);
	else
		loop_timer_clear(&gpu->blocking);
}

/* Tells each client how many are above and below it. A client that may come back after a restart
 * may be above any other, so none must stop gating meanwhile. */
static void recount(struct gpu *gpu)
{
	unsigned above[WEIR_LEVELS], below[WEIR_LEVELS] = {0};
	struct client *client;
	unsigned n = (unsigned)__builtin_popcountll(gpu->reserved);

	for (int level = WEIR_LEVELS - 1; level >= 0; level--) {
		above[level] = level == WEIR_LEVELS - 1 ? 0 : n;
		n += gpu->n_level[level];
	}
	for (unsigned level = 1; level < WEIR_LEVELS; level++)
		below[level] = below[level - 1] + gpu->n_level[level - 1];
	for (client = gpu->clients; client; client = client->gpu_next) {
		struct weir_control_page *page = client->pages.control;
		if (atomic_load(&page->above) == above[client->level] &&
		    atomic_load(&page->below) == below[client->level])
			continue;
		atomic_store(&page->above, above[client->level]);
		atomic_store(&page->below, below[client->level]);
		atomic_fetch_add(&page->epoch, 1);
	}
	follow_levels(gpu);
}

static bool may_set(const struct client *client, unsigned level, uint64_t now)
{
	return client->level > level || (now < client->old_until && client->old_level > level);
}

void gpu_sweep(struct gpu *gpu, uint64_t now)
{
	const struct client *client;

	if (gpu->reserved && now >= gpu->reserved_until) {
		log_info("%s: %d demand bits from before the restart were not claimed", gpu->id,
			 __builtin_popcountll(gpu->reserved));
		gpu->reserved = 0;
		note_bits(gpu);
		recount(gpu);
	}
	for (unsigned level = 0; level < WEIR_DEMAND_LEVELS; level++) {
		uint64_t allowed = gpu->reserved | (gpu->n_shared ? SHARED : 0);
		for (client = gpu->clients; client; client = client->gpu_next)
			if (client->bit < WEIR_BITS_OWN && may_set(client, level, now))
				allowed |= bit_of(client);
		atomic_fetch_and(&gpu->region.demand[level]->word, allowed);
	}
}

/* Sweeps when all present grace periods are over. A sweep that is due is not put off: else clients
 * that come and go all the time would prevent it. */
static void sweep_later(struct gpu *gpu)
{
	bool due = gpu->graces_until;

	gpu->graces_until = loop_now() + GPU_GRACE_NS;
	if (!due)
		loop_timer_set(&gpu->sweep, GPU_GRACE_NS, 0);
}

static void sweep_due(struct loop_timer *timer)
{
	struct gpu *gpu = container_of(timer, struct gpu, sweep);
	uint64_t now = loop_now();

	gpu_sweep(gpu, now);
	if (now < gpu->graces_until)
		loop_timer_set(timer, gpu->graces_until - now, 0);
	else
		gpu->graces_until = 0;
}

void gpu_share(struct gpu *gpu)
{
	const struct client *client;
	uint64_t wanted[WEIR_DEMAND_LEVELS] = {0};

	for (client = gpu->clients; client; client = client->gpu_next) {
		if (client->bit != WEIR_BIT_SHARED ||
		    atomic_load(&client->pages.status->outstanding) == 0)
			continue;
		for (unsigned level = 0; level < client->level; level++)
			wanted[level] = SHARED;
	}
	for (unsigned level = 0; level < WEIR_DEMAND_LEVELS; level++) {
		_Atomic uint64_t *word = &gpu->region.demand[level]->word;
		if ((atomic_load(word) & SHARED) == wanted[level])
			continue;
		if (wanted[level])
			atomic_fetch_or(word, SHARED);
		else
			atomic_fetch_and(word, ~SHARED);
	}
}

static void sharing_due(struct loop_timer *timer)
{
	gpu_share(container_of(timer, struct gpu, sharing));
}

static void count_shared(struct gpu *gpu, int change)
{
	gpu->n_shared += (unsigned)change;
	if (gpu->n_shared == 0)
		loop_timer_clear(&gpu->sharing);
	else if (gpu->n_shared == 1 && change > 0)
		loop_timer_set(&gpu->sharing, GPU_SHARING_NS, GPU_SHARING_NS);
	gpu_share(gpu);
}

static void deinit_parts(struct gpu *gpu)
{
	loop_timer_deinit(&gpu->blocking);
	loop_timer_deinit(&gpu->sharing);
	loop_timer_deinit(&gpu->sweep);
	region_deinit(&gpu->region);
}

int gpu_open(struct gpu *gpu, struct loop *loop, const struct folder *root)
{
	int r = region_init(&gpu->region, root, gpu->id);

	if (r < 0)
		return r;
	r = loop_timer_init(&gpu->sweep, loop, sweep_due);
	if (r == 0)
		r = loop_timer_init(&gpu->sharing, loop, sharing_due);
	if (r == 0)
		r = loop_timer_init(&gpu->blocking, loop, blocking_due);
	if (r < 0) {
		deinit_parts(gpu);
		return r;
	}
	gpu->open = true;
	gpu->reserved = atomic_load(gpu->region.taken) & ~SHARED;
	gpu->reserved_until = loop_now() + GPU_GRACE_NS;
	if (gpu->reserved)
		sweep_later(gpu);
	else
		gpu_sweep(gpu, gpu->reserved_until);
	return 0;
}

void gpu_close(struct gpu *gpu)
{
	if (!gpu->open)
		return;
	deinit_parts(gpu);
	gpu->graces_until = 0;
	gpu->open = false;
}

static uint8_t choose_bit(const struct gpu *gpu, uint8_t claimed)
{
	uint64_t free_bits = ~(gpu->bits | gpu->reserved | SHARED);

	if (claimed < WEIR_BITS_OWN && !(gpu->bits & 1ull << claimed))
		return claimed;
	return free_bits ? (uint8_t)__builtin_ctzll(free_bits) : WEIR_BIT_SHARED;
}

void gpu_add(struct gpu *gpu, struct client *client, uint8_t claimed_bit)
{
	client->gpu = gpu;
	client->bit = choose_bit(gpu, claimed_bit);
	DL_APPEND2(gpu->clients, client, gpu_prev, gpu_next);
	gpu->n_level[client->level]++;
	if (client->bit < WEIR_BITS_OWN) {
		gpu->bits |= bit_of(client);
		gpu->reserved &= ~bit_of(client);
		note_bits(gpu);
	} else {
		count_shared(gpu, 1);
	}
	/* A claimed bit may be set at levels that its owner was above before. */
	if (client->bit == claimed_bit) {
		client->old_level = WEIR_LEVELS - 1;
		client->old_until = loop_now() + GPU_GRACE_NS;
		sweep_later(gpu);
	}
	recount(gpu);
}

void gpu_remove(struct gpu *gpu, struct client *client, bool lives)
{
	DL_DELETE2(gpu->clients, client, gpu_prev, gpu_next);
	gpu->n_level[client->level]--;
	if (client->bit == WEIR_BIT_SHARED) {
		count_shared(gpu, -1);
	} else if (!lives) {
		for (unsigned level = 0; level < WEIR_DEMAND_LEVELS; level++)
			atomic_fetch_and(&gpu->region.demand[level]->word, ~bit_of(client));
		gpu->bits &= ~bit_of(client);
		note_bits(gpu);
		/* The process may live on for a moment and set its bit. */
		sweep_later(gpu);
	}
	recount(gpu);
}

void gpu_set_level(struct gpu *gpu, struct client *client, uint8_t level)
{
	if (level < client->level) {
		client->old_level = client->level;
		client->old_until = loop_now() + GPU_GRACE_NS;
		sweep_later(gpu);
	}
	gpu->n_level[client->level]--;
	gpu->n_level[level]++;
	client->level = level;
	atomic_store(&client->pages.control->level, level);
	atomic_fetch_add(&client->pages.control->epoch, 1);
	recount(gpu);
}
