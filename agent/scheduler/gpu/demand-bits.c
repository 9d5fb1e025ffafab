#include "scheduler/gpu/demand-bits.h"

#include "scheduler/gpu/gpu-state.h"

#include "weir/base.h"
#include "weir/log.h"

static void note_bits(struct gpu *gpu)
{
	atomic_store(&gpu->region.taken->bits, gpu->bits | gpu->reserved);
}

static uint8_t choose_bit(struct gpu *gpu, const struct client *client, uint8_t claimed)
{
	uint64_t unowned = ~(gpu->bits | DEMAND_BIT_SHARED), free_bits = unowned & ~gpu->reserved;
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

void demand_bits_give(struct gpu *gpu, struct client *client, uint8_t claimed)
{
	client->bit = choose_bit(gpu, client, claimed);
	if (client->bit == WEIR_BIT_SHARED)
		return;
	gpu->bits |= demand_bit(client);
	gpu->reserved &= ~demand_bit(client);
	note_bits(gpu);
}

void demand_bits_take(struct gpu *gpu, const struct client *client)
{
	if (client->bit >= WEIR_BITS_OWN)
		return;
	gpu->bits &= ~demand_bit(client);
	note_bits(gpu);
}

void demand_bits_note_level(const struct gpu *gpu, const struct client *client)
{
	_Atomic uint8_t *noted = &gpu->region.taken->levels[client->bit];

	if (client->bit < WEIR_BITS_OWN || client->level > atomic_load(noted))
		atomic_store(noted, client->level);
}

void demand_bits_give_up(struct gpu *gpu)
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
		demand_bits_note_level(gpu, client);
	gpu->unsafe |= (1u << former) - 1;
	gpu->reserved = 0;
	note_bits(gpu);
}
