#include "kubernetes/labels.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "weir/base.h"

#define SETTLE_NS 200000000ull /* collects changes before they are sent */
#define RETRY_NS  60000000000ull

static const char *const node_names[LABELS] = {
	[LABEL_COUNT] = LABELS_PREFIX "count",
	[LABEL_PRODUCT] = LABELS_PREFIX "product",
	[LABEL_MEMORY] = LABELS_PREFIX "memory",
	[LABEL_DRIVER] = LABELS_PREFIX "driver-version",
	[LABEL_CUDA] = LABELS_PREFIX "cuda-version",
	[LABEL_SHARING_MODE] = LABELS_PREFIX "sharing-mode",
	[LABEL_MIG] = LABELS_PREFIX "mig",
	[LABEL_VERSION] = LABELS_PREFIX "weir-version",
	[LABEL_LARGEST_FREE] = LABELS_PREFIX "largest-free",
	[LABEL_FREE_GPUS] = LABELS_PREFIX "free-gpus",
	[LABEL_FREE] = LABELS_PREFIX "free",
};
static const char *const own_names[OWN_LABELS] = {
	[OWN_LABEL_LARGEST_FREE] = "weir.dev/largest-free",
	[OWN_LABEL_FREE_GPUS] = "weir.dev/free-gpus",
};

void labels_clean(char out[LABELS_VALUE_MAX], const char *text)
{
	size_t n = 0;

	for (; *text && n < LABELS_VALUE_MAX - 1; text++) {
		bool alphanumeric = isascii(*text) && isalnum((unsigned char)*text);
		if (alphanumeric || (n > 0 && strchr("-_.", *text)))
			out[n++] = *text;
		else if (n > 0 && out[n - 1] != '-')
			out[n++] = '-';
	}
	while (n > 0 && !isalnum((unsigned char)out[n - 1]))
		n--;
	out[n] = '\0';
}

/* All known labels each time, so that old labels of an earlier agent disappear. */
static cJSON *describe(const struct labels *labels)
{
	cJSON *root = cJSON_CreateObject();
	cJSON *list = cJSON_AddObjectToObject(cJSON_AddObjectToObject(root, "metadata"), "labels");

	for (unsigned i = 0; i < labels->n; i++) {
		if (!labels->known[i])
			continue;
		if (*labels->wanted[i])
			cJSON_AddStringToObject(list, labels->names[i], labels->wanted[i]);
		else
			cJSON_AddNullToObject(list, labels->names[i]);
	}
	return root;
}

static void sent(void *userdata, long status)
{
	struct labels *labels = userdata;

	labels->sending = false;
	if (status < 200 || status >= 300)
		loop_timer_set(&labels->timer, RETRY_NS, 0);
	else
		loop_timer_set(&labels->timer, labels->changed ? labels->pause : LABELS_AGAIN_NS,
			       0);
}

static void expired(struct loop_timer *timer)
{
	struct labels *labels = container_of(timer, struct labels, timer);

	if (api_send(labels->api, "PATCH", labels->path, describe(labels), sent, labels) < 0) {
		loop_timer_set(&labels->timer, RETRY_NS, 0);
		return;
	}
	labels->changed = false;
	labels->sending = true;
	labels->sent_at = loop_now();
}

int labels_init(struct labels *labels, struct loop *loop, struct api *api, const char *node)
{
	*labels = (struct labels){
		.api = api, .names = node_names, .n = LABELS, .pause = LABELS_PAUSE_NS};
	snprintf(labels->path, sizeof(labels->path), "/api/v1/nodes/%s", node);
	return loop_timer_init(&labels->timer, loop, expired);
}

int labels_init_own(struct labels *labels, struct loop *loop, struct api *api,
		    const char *namespace_, const char *pod)
{
	*labels = (struct labels){.api = api, .names = own_names, .n = OWN_LABELS};
	snprintf(labels->path, sizeof(labels->path), "/api/v1/namespaces/%s/pods/%s", namespace_,
		 pod);
	return loop_timer_init(&labels->timer, loop, expired);
}

void labels_deinit(struct labels *labels)
{
	loop_timer_deinit(&labels->timer);
}

/* The node's labels wait for other changes, as each one wakes schedulers and controllers. */
static uint64_t settle_time(const struct labels *labels)
{
	uint64_t now = loop_now(), due = labels->sent_at + labels->pause;

	if (!labels->pause)
		return 0;
	return labels->sent_at && due > now + SETTLE_NS ? due - now : SETTLE_NS;
}

void labels_set(struct labels *labels, unsigned label, const char *value)
{
	char clean[LABELS_VALUE_MAX];

	labels_clean(clean, value);
	if (!labels->api || (labels->known[label] && strcmp(clean, labels->wanted[label]) == 0))
		return;
	labels->known[label] = true;
	memcpy(labels->wanted[label], clean, sizeof(clean));
	if (!labels->sending && !labels->changed)
		loop_timer_set(&labels->timer, settle_time(labels), 0);
	labels->changed = true;
}
