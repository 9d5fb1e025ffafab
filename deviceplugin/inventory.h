/* The GPUs of this node and their shares as device ids, kept up to date.
 *
 * A GPU that was seen once stays in the list, unhealthy while it is away, because containers may
 * still hold its ids. Without NVML the list is empty and NVML is tried again each half minute; it
 * is started anew each 5 s while a GPU is away, which is how one that was reset comes back. A
 * device id is "GPU-<uuid>::NN": the share's number, 00..99.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "allocator.h"
#include "gpu.h"
#include "weir/health.h"
#include "weir/loop.h"
#include "weir/nvml.h"

#define DEVICE_ID_MAX 64u /* with its end; what the kubelet allows */

struct config;

struct inventory {
	const struct config *config;
	struct loop_timer timer;
	void (*changed)(struct inventory *inventory);

	struct gpu gpus[GPUS_MAX];
	struct node node; /* the same GPUs as the allocator sees them */

	struct nvml nvml;
	char *nvml_path;
	nvmlEventSet_t events;          /* of errors; NULL: this driver tells none */
	nvmlDevice_t handles[GPUS_MAX]; /* NULL: NVML does not list it at present */
	struct health health[GPUS_MAX];
	uint64_t opened, next_probe;
	bool lost;       /* a GPU that was seen does not answer, or there never was one */
	bool complained; /* about the lack of NVML or of GPUs */
};

/* @changed: GPUs came, or became healthy or unhealthy. Takes @nvml_path, which may be NULL.
 * @before, if there is one, was deinited: its GPUs stay in the list, with what is known of their
 * health. */
int inventory_init(struct inventory *inventory, struct loop *loop, const struct config *config,
		   char *nvml_path, void (*changed)(struct inventory *inventory),
		   const struct inventory *before);
void inventory_deinit(struct inventory *inventory);

void inventory_id(char out[DEVICE_ID_MAX], const struct gpu *gpu, unsigned share);
/* False: @id is none of ours. */
bool inventory_find(const struct inventory *inventory, const char *id, unsigned *gpu,
		    unsigned *share);
