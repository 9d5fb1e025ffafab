#include "dra/claim-parse.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "weir/base.h"
#include "weir/units.h"

#define WHOLE 100

static const cJSON *member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

static const char *member_text(const cJSON *object, const char *name)
{
	const char *text = cJSON_GetStringValue(member(object, name));

	return text ? text : "";
}

static bool copy(char *out, size_t size, const cJSON *object, const char *name)
{
	return snprintf(out, size, "%s", member_text(object, name)) < (int)size;
}

/* The names of capacities may have the driver's domain. */
static const char *consumed(const cJSON *result, const char *name)
{
	const cJSON *capacity = member(result, "consumedCapacity");
	char whole[64];

	snprintf(whole, sizeof(whole), DRA_DRIVER "/%s", name);
	const char *text = member_text(capacity, name);
	return *text ? text : member_text(capacity, whole);
}

static bool read_capacity(struct claim_device *out, const cJSON *result, char *error)
{
	const char *shares = consumed(result, "shares"), *memory = consumed(result, "memory");
	uint64_t number = 0;

	if (*shares && !number_parse(shares, 1, WHOLE, &number)) {
		snprintf(error, DRA_ERROR_MAX, "%.40s shares of %s: expected 1 to 100", shares,
			 out->device);
		return false;
	}
	if (*memory && !memory_parse(memory, &out->memory)) {
		snprintf(error, DRA_ERROR_MAX, "%.40s memory of %s: expected " MEMORY_EXPECTED,
			 memory, out->device);
		return false;
	}
	out->shares = (uint32_t)number;
	return true;
}

static bool is_ours(const cJSON *result, const char *node)
{
	return strcmp(member_text(result, "driver"), DRA_DRIVER) == 0 &&
	       strcmp(member_text(result, "pool"), node) == 0;
}

static const cJSON *results_of(const cJSON *json)
{
	const cJSON *allocation = member(member(json, "status"), "allocation");

	return member(member(allocation, "devices"), "results");
}

static bool read_results(struct claim *claim, const cJSON *results, const char *node, char *error)
{
	const cJSON *result;

	cJSON_ArrayForEach(result, results)
	{
		struct claim_device *device = &claim->devices[claim->n];
		if (!is_ours(result, node))
			continue;
		if (claim->n == CLAIM_DEVICES_MAX ||
		    !copy(device->request, sizeof(device->request), result, "request") ||
		    !copy(device->device, sizeof(device->device), result, "device") ||
		    !copy(device->share_id, sizeof(device->share_id), result, "shareID")) {
			snprintf(error, DRA_ERROR_MAX, "the claim's allocation is malformed");
			return false;
		}
		if (!read_capacity(device, result, error))
			return false;
		claim->n++;
	}
	if (!claim->n)
		snprintf(error, DRA_ERROR_MAX,
			 "the claim has no device of " DRA_DRIVER " on node %s", node);
	return claim->n;
}

static void copy_pod(struct claim *claim, const cJSON *json)
{
	const cJSON *user;

	cJSON_ArrayForEach(user, member(member(json, "status"), "reservedFor"))
	{
		if (strcmp(member_text(user, "resource"), "pods") == 0 &&
		    copy(claim->pod, sizeof(claim->pod), user, "uid"))
			return;
	}
	claim->pod[0] = '\0';
}

static bool read_claim(struct claim *claim, const cJSON *json, const char *uid, const char *node,
		       char *error)
{
	const cJSON *meta = member(json, "metadata");

	if (strcmp(member_text(meta, "uid"), uid) != 0) {
		snprintf(error, DRA_ERROR_MAX, "the claim was replaced by another of its name");
		return false;
	}
	if (!copy(claim->uid, sizeof(claim->uid), meta, "uid") || !*claim->uid ||
	    !copy(claim->namespace_, sizeof(claim->namespace_), meta, "namespace") ||
	    !copy(claim->name, sizeof(claim->name), meta, "name")) {
		snprintf(error, DRA_ERROR_MAX, "the claim's names are malformed");
		return false;
	}
	copy_pod(claim, json);
	return read_results(claim, results_of(json), node, error);
}

struct claim *claim_parse(const char *text, size_t size, const char *uid, const char *node,
			  char error[DRA_ERROR_MAX])
{
	cJSON *json = cJSON_ParseWithLength(text, size);
	struct claim *claim = calloc(1, sizeof(*claim));

	snprintf(error, DRA_ERROR_MAX, "out of memory");
	if (claim && !read_claim(claim, json, uid, node, error))
		free(take(claim));
	cJSON_Delete(json);
	return claim;
}

bool claim_lives(long status, const char *text, size_t size, const char *uid, const char *node)
{
	cJSON *json = status == 200 ? cJSON_ParseWithLength(text, size) : NULL;
	const cJSON *result;
	bool lives = false;

	if (strcmp(member_text(member(json, "metadata"), "uid"), uid) == 0)
		cJSON_ArrayForEach(result, results_of(json)) lives |= is_ours(result, node);
	cJSON_Delete(json);
	return lives;
}
