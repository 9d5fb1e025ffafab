#include "weir/claims.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#include "weir/base.h"
#include "weir/error.h"
#include "weir/units.h"

#define WHOLE      100    /* shares of a GPU */
#define DIGITS_MAX 21     /* a 64-bit number as text; a JSON number has only 53 bits */
#define COUNT_MAX  100000 /* of a node */

void claims_deinit(struct claims *claims)
{
	for (size_t i = 0; i < claims->n; i++)
		free(claims->list[i]);
	free(claims->list);
	*claims = (struct claims){0};
}

int claims_add(struct claims *claims, struct claim *claim)
{
	struct claim **grown = realloc(claims->list, (claims->n + 1) * sizeof(claim));

	if (!grown) {
		free(claim);
		return error_origin(-ENOMEM);
	}
	claims->list = grown;
	claims->list[claims->n++] = claim;
	return 0;
}

bool claims_remove(struct claims *claims, const char *uid)
{
	for (size_t i = 0; i < claims->n; i++) {
		if (strcmp(claims->list[i]->uid, uid) != 0)
			continue;
		free(claims->list[i]);
		claims->list[i] = claims->list[--claims->n];
		return true;
	}
	return false;
}

const struct claim *claims_find(const struct claims *claims, const char *uid)
{
	for (size_t i = 0; i < claims->n; i++)
		if (strcmp(claims->list[i]->uid, uid) == 0)
			return claims->list[i];
	return NULL;
}

const struct claim *claims_named(const struct claims *claims, const char *namespace_,
				 const char *name)
{
	for (size_t i = 0; i < claims->n; i++)
		if (strcmp(claims->list[i]->name, name) == 0 &&
		    strcmp(claims->list[i]->namespace_, namespace_) == 0)
			return claims->list[i];
	return NULL;
}

static bool add_text(cJSON *object, const char *name, const char *text)
{
	return cJSON_AddStringToObject(object, name, text);
}

static bool add_number(cJSON *object, const char *name, uint64_t number)
{
	char digits[DIGITS_MAX] = "", *at = digits + sizeof(digits) - 1;

	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	return add_text(object, name, at);
}

static bool add_device(cJSON *list, const struct claim_device *device)
{
	cJSON *object = cJSON_CreateObject();

	return cJSON_AddItemToArray(list, object) && add_text(object, "request", device->request) &&
	       add_text(object, "device", device->device) &&
	       add_text(object, "shareID", device->share_id) &&
	       add_number(object, "shares", device->shares) &&
	       add_number(object, "memory", device->memory);
}

static bool add_claim(cJSON *list, const struct claim *claim)
{
	cJSON *object = cJSON_CreateObject(), *devices;
	bool good = cJSON_AddItemToArray(list, object) && add_text(object, "uid", claim->uid) &&
		    add_text(object, "namespace", claim->namespace_) &&
		    add_text(object, "name", claim->name) && add_text(object, "pod", claim->pod) &&
		    (devices = cJSON_AddArrayToObject(object, "devices"));

	for (size_t i = 0; good && i < claim->n; i++)
		good = add_device(devices, &claim->devices[i]);
	return good;
}

char *claims_format(const struct claims *claims)
{
	cJSON *json = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(json, "claims");
	bool good = list;

	for (size_t i = 0; good && i < claims->n; i++)
		good = add_claim(list, claims->list[i]);
	char *text = good ? cJSON_PrintUnformatted(json) : NULL;
	cJSON_Delete(json);
	return text;
}

static const char *member_text(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

/* False: missing, or too long. */
static bool read_text(char *out, size_t size, const cJSON *object, const char *name)
{
	const char *text = member_text(object, name);

	if (!text || strlen(text) >= size)
		return false;
	memcpy(out, text, strlen(text) + 1);
	return true;
}

static bool read_number(uint64_t *out, uint64_t most, const cJSON *object, const char *name)
{
	const char *text = member_text(object, name);

	return text && number_parse(text, 0, most, out);
}

static bool read_device(struct claim_device *out, const cJSON *object)
{
	uint64_t shares;
	bool good = read_text(out->request, sizeof(out->request), object, "request") &&
		    read_text(out->device, sizeof(out->device), object, "device") &&
		    read_text(out->share_id, sizeof(out->share_id), object, "shareID") &&
		    read_number(&shares, WHOLE, object, "shares") && shares &&
		    read_number(&out->memory, INT64_MAX, object, "memory");

	if (good)
		out->shares = (uint32_t)shares;
	return good;
}

static bool read_claim(struct claim *out, const cJSON *object)
{
	const cJSON *devices = cJSON_GetObjectItemCaseSensitive(object, "devices"), *device;

	if (!read_text(out->uid, sizeof(out->uid), object, "uid") ||
	    !read_text(out->namespace_, sizeof(out->namespace_), object, "namespace") ||
	    !read_text(out->name, sizeof(out->name), object, "name") ||
	    !read_text(out->pod, sizeof(out->pod), object, "pod"))
		return false;
	cJSON_ArrayForEach(device, devices)
	{
		if (out->n == CLAIM_DEVICES_MAX || !read_device(&out->devices[out->n], device))
			return false;
		out->n++;
	}
	return cJSON_IsArray(devices);
}

static int read_claims(struct claims *out, const cJSON *list)
{
	const cJSON *item;

	if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > COUNT_MAX)
		return -EINVAL;
	cJSON_ArrayForEach(item, list)
	{
		struct claim *claim = calloc(1, sizeof(*claim));
		if (!claim)
			return error_origin(-ENOMEM);
		if (!read_claim(claim, item)) {
			free(claim);
			return -EINVAL;
		}
		int r = claims_add(out, claim);
		if (r < 0)
			return r;
	}
	return 0;
}

int claims_parse(struct claims *out, const char *text, size_t size)
{
	cJSON *json = cJSON_ParseWithLength(text, size);

	*out = (struct claims){0};
	int r = read_claims(out, cJSON_GetObjectItemCaseSensitive(json, "claims"));
	if (r < 0)
		claims_deinit(out);
	cJSON_Delete(json);
	return r;
}
