/* Labels of the node that describe its GPUs (`weir.dev/gpu.*`), for node selectors; and of the
 * agent's own pod (placement.h). The agent removes labels that do not apply, and does not touch
 * other labels. */
#pragma once

#include <stdbool.h>

#include "kubernetes/api.h"

#include "weir/loop.h"

#define LABELS_PREFIX    "weir.dev/gpu."
#define LABELS_VALUE_MAX 64u                   /* with NUL */
#define LABELS_AGAIN_NS  (600 * 1000000000ull) /* repairs labels that somebody removed */
#define LABELS_PAUSE_NS  1000000000ull         /* between changes of the node */

enum label {
	LABEL_COUNT,
	LABEL_PRODUCT,
	LABEL_MEMORY,
	LABEL_DRIVER,
	LABEL_CUDA,
	LABEL_SHARING_MODE,
	LABEL_MIG,
	LABEL_VERSION,
	LABEL_LARGEST_FREE, /* placement.h */
	LABEL_FREE_GPUS,
	LABEL_FREE,
	LABELS,
};

/* Of the agent's pod. */
enum { OWN_LABEL_LARGEST_FREE, OWN_LABEL_FREE_GPUS, OWN_LABELS };

struct labels {
	struct loop_timer timer;
	struct api *api;
	const char *const *names; /* with their prefix */
	unsigned n;
	char path[600];                        /* of the object */
	uint64_t pause;                        /* ns between two changes */
	uint64_t sent_at;                      /* 0: never */
	char wanted[LABELS][LABELS_VALUE_MAX]; /* empty: no such label */
	bool known[LABELS];                    /* it was set; the others are left as they are */
	bool sending, changed;
};

/* @api must outlive the labels' last use; free it before labels_deinit(). */
int labels_init(struct labels *labels, struct loop *loop, struct api *api, const char *node);
int labels_init_own(struct labels *labels, struct loop *loop, struct api *api,
		    const char *namespace_, const char *pod);
void labels_deinit(struct labels *labels);

/* Sets a label to any text; characters that a label may not have become `-`. Sent soon, with the
 * others. */
void labels_set(struct labels *labels, unsigned label, const char *value);

/* Makes a valid label value of @text: at most 63 letters, digits and `-_.`, with a letter or digit
 * at both ends. */
void labels_clean(char out[LABELS_VALUE_MAX], const char *text);
