#include "dra/offer.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "allocator.h"
#include "config.h"
#include "container-spec.h"
#include "inventory.h"
#include "weir/base.h"

struct offer offer_of(const struct config *config, const struct gpu *gpu)
{
	uint32_t taken = config_for_gpu(config, gpu).shares + gpu->kept;
	uint32_t shares = SHARES_PER_GPU - (uint32_t)smaller(taken, SHARES_PER_GPU);
	uint64_t memory = gpu->memory * shares / SHARES_PER_GPU;

	memory -= memory % OFFER_MEMORY_STEP;
	return memory ? (struct offer){shares, memory} : (struct offer){0};
}

void offer_device_name(char out[CLAIM_DEVICE_MAX], const struct gpu *gpu)
{
	size_t n = strlen(gpu->uuid);

	for (size_t i = 0; i <= n; i++)
		out[i] = (char)tolower((unsigned char)gpu->uuid[i]);
}

int offer_find(const struct inventory *inventory, const char *device)
{
	for (unsigned i = 0; i < inventory->node.n_gpus; i++) {
		char name[CLAIM_DEVICE_MAX];
		offer_device_name(name, &inventory->gpus[i]);
		if (strcmp(name, device) == 0)
			return (int)i;
	}
	return -1;
}

/* What claims have of a device. */
static struct offer sum(const struct claims *held, const char *device)
{
	struct offer all = {0};

	for (size_t i = 0; i < held->n; i++) {
		for (size_t d = 0; d < held->list[i]->n; d++) {
			const struct claim_device *one = &held->list[i]->devices[d];
			if (strcmp(one->device, device) != 0)
				continue;
			all.shares += one->shares;
			all.memory += one->memory;
		}
	}
	return all;
}

uint32_t offer_held(const struct claims *held, const struct gpu *gpu)
{
	char name[CLAIM_DEVICE_MAX];

	offer_device_name(name, gpu);
	return sum(held, name).shares;
}

static bool fits(const struct offer *offer, const struct claims *held,
		 const struct claim_device *device, char *error)
{
	struct offer have = sum(held, device->device);

	if (device->shares <= offer->shares && device->memory <= offer->memory &&
	    have.shares <= offer->shares - device->shares &&
	    have.memory <= offer->memory - device->memory)
		return true;
	snprintf(error, DRA_ERROR_MAX,
		 "%u shares and %llu MiB do not fit on %s: claims may have %u shares and %llu MiB "
		 "of it, and have %u and %llu",
		 device->shares, (unsigned long long)(device->memory >> 20), device->device,
		 offer->shares, (unsigned long long)(offer->memory >> 20), have.shares,
		 (unsigned long long)(have.memory >> 20));
	return false;
}

static bool take_device(const struct config *config, const struct inventory *inventory,
			const struct claims *held, struct claim_device *device, char *error)
{
	int at = offer_find(inventory, device->device);

	if (at < 0) {
		snprintf(error, DRA_ERROR_MAX, "no such GPU on this node: %s", device->device);
		return false;
	}
	const struct gpu *gpu = &inventory->gpus[at];
	struct offer offer = offer_of(config, gpu);
	if (!device->shares)
		device->shares = offer.shares;
	if (!device->memory)
		device->memory = offer.memory;
	if (!gpu->healthy) {
		snprintf(error, DRA_ERROR_MAX, "GPU %s is unhealthy", gpu->uuid);
		return false;
	}
	if (!offer.shares) {
		snprintf(error, DRA_ERROR_MAX, "GPU %s is not offered to claims", gpu->uuid);
		return false;
	}
	if (!offer_is_whole(device) && container_spec_lacks_mps(config, gpu)) {
		snprintf(error, DRA_ERROR_MAX, "the MPS daemon of %s does not answer", gpu->uuid);
		return false;
	}
	return fits(&offer, held, device, error);
}

bool offer_take(const struct config *config, const struct inventory *inventory,
		const struct claims *held, struct claim *claim, char error[DRA_ERROR_MAX])
{
	bool whole = true;

	for (size_t i = 0; i < claim->n; i++) {
		if (!take_device(config, inventory, held, &claim->devices[i], error))
			return false;
		whole &= offer_is_whole(&claim->devices[i]);
	}
	if (claim->n > 1 && !whole) {
		snprintf(error, DRA_ERROR_MAX,
			 "parts of %zu devices in one claim: a claim has a part of one GPU, or "
			 "whole GPUs",
			 claim->n);
		return false;
	}
	return true;
}
