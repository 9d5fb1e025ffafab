/* The kubelet's checkpoint of devices (`kubelet_internal_checkpoint`, Kubernetes 1.20 and newer):
 * which shares of each GPU the node offers, and which of them containers have. Pure.
 *
 * The kubelet writes it at each allocation. It frees a pod's devices when it needs some, so the
 * file still lists those of pods that have ended. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECKPOINT_GPUS_MAX    64
#define CHECKPOINT_FILE_MAX    (16u << 20)
#define CHECKPOINT_WAITING_MAX 32

struct checkpoint_gpu {
	char id[41];
	uint64_t offered[2], taken[2]; /* shares, by their number */
};

/* A container's shares that are neither of one GPU nor whole GPUs: no GPU had room, and the device
 * plugin lets the container wait. */
struct checkpoint_waiting {
	char uid[64];                      /* of the pod */
	unsigned n;                        /* shares */
	unsigned own[CHECKPOINT_GPUS_MAX]; /* of them by GPU */
};

struct checkpoint {
	size_t n;
	struct checkpoint_gpu gpus[CHECKPOINT_GPUS_MAX]; /* sorted by id */
	size_t n_waiting;
	struct checkpoint_waiting waiting[CHECKPOINT_WAITING_MAX];
};

/* Whether the pod still has its devices. */
typedef bool checkpoint_alive_fn(void *userdata, const char *pod_uid);

/* -EINVAL: not a checkpoint. Unknown devices are left out. */
int checkpoint_parse(struct checkpoint *out, const char *text, size_t size, const char *resource,
		     checkpoint_alive_fn *alive, void *userdata);
/* Free shares of a GPU. */
unsigned checkpoint_free(const struct checkpoint_gpu *gpu);
/* The most free shares of one GPU; GPUs that are free as a whole. */
unsigned checkpoint_largest_free(const struct checkpoint *checkpoint);
unsigned checkpoint_free_gpus(const struct checkpoint *checkpoint);
/* Whether there would be room for the container if it gave its shares back. */
bool checkpoint_fits(const struct checkpoint *checkpoint, const struct checkpoint_waiting *waiting);
