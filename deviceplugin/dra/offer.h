/* What claims may have of each GPU, and whether a claim fits. Pure.
 *
 * The configuration divides a GPU's 100 shares: `shares` of them are devices of weir.dev/gpu-share,
 * and the rest is offered to claims, with the same part of the memory. So neither interface can
 * hand out what the other has. When the division changes, a share that somebody has stays his:
 * pods keep theirs (kept.h), and the device plugin does not offer those of prepared claims. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dra/claim-parse.h"
#include "weir/claims.h"

struct config;
struct gpu;
struct inventory;

struct offer {
	uint32_t shares;
	uint64_t memory; /* a multiple of OFFER_MEMORY_STEP */
};
#define OFFER_MEMORY_STEP (2ull << 20)

/* All zero: claims get nothing of this GPU. */
struct offer offer_of(const struct config *config, const struct gpu *gpu);

/* The GPU's name as a device of a ResourceSlice: its UUID in lower case. */
void offer_device_name(char out[CLAIM_DEVICE_MAX], const struct gpu *gpu);
/* The index of the GPU with this name; -1: not on this node. */
int offer_find(const struct inventory *inventory, const char *device);

/* True: the device is a whole GPU, which pods get without Weir. */
static inline bool offer_is_whole(const struct claim_device *device)
{
	return device->shares == 100;
}

/* Fills in what an allocation without capacities means: all that is offered. False: the claim must
 * not be prepared, and @error says why. @held: the claims that are prepared already. */
bool offer_take(const struct config *config, const struct inventory *inventory,
		const struct claims *held, struct claim *claim, char error[DRA_ERROR_MAX]);
/* Shares of the GPU that prepared claims have. */
uint32_t offer_held(const struct claims *held, const struct gpu *gpu);
