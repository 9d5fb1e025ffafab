/* The GPUs of this node and the device ids of their shares, kept up to date.
 *
 * A GPU stays in the list for ever, unhealthy while it is lost, because containers may still hold
 * its ids. Without NVML the list is empty, and NVML is tried every 30 s. While a GPU is lost, NVML
 * is opened again every 5 s: a GPU that was reset comes back this way. A device id is
 * "GPU-<uuid>::NN" with the number of the share, 00..99.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "allocator.h"
#include "gpu.h"
#include "weir/health.h"
#include "weir/loop.h"
#include "weir/nvml.h"

#define DEVICE_ID_MAX 64u /* with NUL; the kubelet's limit */

struct config;

struct inventory {
	const struct config *config;
	struct loop_timer timer;
	void (*changed)(struct inventory *inventory);

	struct gpu gpus[GPUS_MAX];
	struct node node; /* the same GPUs for the allocator */

	struct nvml nvml;
	char *nvml_path;
	nvmlEventSet_t events;          /* XID errors; NULL: the driver reports none */
	nvmlDevice_t handles[GPUS_MAX]; /* NULL: NVML does not list it now */
	struct health health[GPUS_MAX];
	uint64_t opened, next_probe;
	bool lost;       /* a GPU is lost, or none was ever found */
	bool complained; /* logged that NVML or GPUs are missing */
};

/* @changed is called when GPUs appear or their health changes. Takes @nvml_path, which may be NULL.
 * @before: NULL, or a deinited inventory whose GPUs and health this one takes over. */
int inventory_init(struct inventory *inventory, struct loop *loop, const struct config *config,
		   char *nvml_path, void (*changed)(struct inventory *inventory),
		   const struct inventory *before);
void inventory_deinit(struct inventory *inventory);

void inventory_id(char out[DEVICE_ID_MAX], const struct gpu *gpu, unsigned share);
/* False: not one of our ids. */
bool inventory_find(const struct inventory *inventory, const char *id, unsigned *gpu,
		    unsigned *share);
