#include "kubernetes/labels.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "weir/base.h"

#define SETTLE_NS 200000000ull /* collects changes before they are sent */
#define RETRY_NS  60000000000ull

static const char *const names[LABELS] = {
	[LABEL_COUNT] = "count",       [LABEL_PRODUCT] = "product",
	[LABEL_MEMORY] = "memory",     [LABEL_DRIVER] = "driver-version",
	[LABEL_CUDA] = "cuda-version", [LABEL_SHARING_MODE] = "sharing-mode",
	[LABEL_MIG] = "mig",           [LABEL_VERSION] = "weir-version",
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

/* All labels each time, so that old labels of an earlier agent disappear. */
static cJSON *describe(const struct labels *labels)
{
	cJSON *root = cJSON_CreateObject();
	cJSON *list = cJSON_AddObjectToObject(cJSON_AddObjectToObject(root, "metadata"), "labels");
	char key[64];

	for (int i = 0; i < LABELS; i++) {
		snprintf(key, sizeof(key), LABELS_PREFIX "%s", names[i]);
		if (*labels->wanted[i])
			cJSON_AddStringToObject(list, key, labels->wanted[i]);
		else
			cJSON_AddNullToObject(list, key);
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
		loop_timer_set(&labels->timer, labels->changed ? 0 : LABELS_AGAIN_NS, 0);
}

static void expired(struct loop_timer *timer)
{
	struct labels *labels = container_of(timer, struct labels, timer);
	char path[300];

	snprintf(path, sizeof(path), "/api/v1/nodes/%s", labels->node);
	if (api_send(labels->api, "PATCH", path, describe(labels), sent, labels) < 0) {
		loop_timer_set(&labels->timer, RETRY_NS, 0);
		return;
	}
	labels->changed = false;
	labels->sending = true;
}

int labels_init(struct labels *labels, struct loop *loop, struct api *api, const char *node)
{
	*labels = (struct labels){.api = api, .node = node};
	return loop_timer_init(&labels->timer, loop, expired);
}

void labels_deinit(struct labels *labels)
{
	loop_timer_deinit(&labels->timer);
}

void labels_set(struct labels *labels, enum label label, const char *value)
{
	char clean[LABELS_VALUE_MAX];

	labels_clean(clean, value);
	if (!labels->api || strcmp(clean, labels->wanted[label]) == 0)
		return;
	memcpy(labels->wanted[label], clean, sizeof(clean));
	labels->changed = true;
	if (!labels->sending)
		loop_timer_set(&labels->timer, SETTLE_NS, 0);
}
