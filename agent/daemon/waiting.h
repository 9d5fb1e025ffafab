/* Pods that are on this node and for which no GPU had room (`noRoom: wait` of the device plugin).
 *
 * The kubelet keeps such a pod's shares, of several GPUs, for the pod's life, so its container can
 * never start. The agent deletes the pod when there is room, and its controller creates it again. A
 * pod of a ReplicaSet is also deleted after WAITING_LONG_NS, as another node may have room. Pods
 * without a controller stay: nobody would create them again. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <uthash.h>

#include "weir/loop.h"

#define WAITING_LONG_NS  (300 * 1000000000ull)
#define WAITING_AGAIN_NS (15 * 1000000000ull) /* after a deletion that had no effect */

struct api;
struct checkpoint;
struct events;
struct pod;
struct pods;

struct waiting_pod {
	char uid[64];
	UT_hash_handle hh;
	uint64_t since, deleted_at; /* 0: not deleted */
	uint64_t generation;        /* of the last look that saw it */
};

struct waiting {
	struct pods *pods;
	struct api *api;       /* NULL: pods are not deleted */
	struct events *events; /* NULL: none are sent */
	struct loop_timer timer;
	struct waiting_pod *all;
	uint64_t generation, n_replaced;
};

int waiting_init(struct waiting *waiting, struct loop *loop, loop_timer_fn *look);
void waiting_deinit(struct waiting *waiting);
/* Looks at the containers of @checkpoint that wait, at @now. Calls `look` again when time decides.
 */
void waiting_look(struct waiting *waiting, const struct checkpoint *checkpoint, uint64_t now);
void waiting_metrics(FILE *out, const struct waiting *waiting);
/* NULL: @pod does not wait. */
const struct waiting_pod *waiting_find(const struct waiting *waiting, const struct pod *pod);
