/* What the node's GPUs are, as labels of the node (`weir.dev/gpu.*`), for node selectors. A label
 * that holds no longer is taken away; others' labels are not touched. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kubernetes/api.h"

#include "weir/loop.h"

#define LABELS_PREFIX    "weir.dev/gpu."
#define LABELS_VALUE_MAX 64u                   /* with its end */
#define LABELS_AGAIN_NS  (600 * 1000000000ull) /* somebody may have taken one away */

enum label {
	LABEL_COUNT,
	LABEL_PRODUCT,
	LABEL_MEMORY,
	LABEL_DRIVER,
	LABEL_CUDA,
	LABEL_SHARING_MODE,
	LABEL_MIG,
	LABEL_VERSION,
	LABELS,
};

struct labels {
	struct loop_timer timer;
	struct api *api;
	const char *node;
	char wanted[LABELS][LABELS_VALUE_MAX]; /* empty: it is to go */
	bool sending, changed;
};

/* @api and @node must live as long as the labels; free @api first. */
int labels_init(struct labels *labels, struct loop *loop, struct api *api, const char *node);
void labels_deinit(struct labels *labels);

/* Any text: what a label's value may not have becomes `-`. It is sent with the others, soon. */
void labels_set(struct labels *labels, enum label label, const char *value);

/* For labels_set(), and tests: at most 63 letters, digits and `-_.`, which neither begin nor end
 * it. */
void labels_clean(char out[LABELS_VALUE_MAX], const char *text);
