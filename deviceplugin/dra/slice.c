#include "dra/slice.h"

#include <cjson/cJSON.h>
#include <stdio.h>

#include "config.h"
#include "dra/offer.h"
#include "inventory.h"
#include "weir/base.h"

/* A capacity that a claim takes a part of, and all of it by default. */
static bool add_capacity(cJSON *capacities, const char *name, const char *all, const char *least)
{
	cJSON *capacity = cJSON_AddObjectToObject(capacities, name);
	cJSON *policy = cJSON_AddObjectToObject(capacity, "requestPolicy");
	cJSON *range = cJSON_AddObjectToObject(policy, "validRange");

	return cJSON_AddStringToObject(capacity, "value", all) &&
	       cJSON_AddStringToObject(policy, "default", all) &&
	       cJSON_AddStringToObject(range, "min", least) &&
	       cJSON_AddStringToObject(range, "max", all) &&
	       cJSON_AddStringToObject(range, "step", least);
}

static bool add_capacities(cJSON *device, const struct offer *offer)
{
	cJSON *capacities = cJSON_AddObjectToObject(device, "capacity");
	char shares[16], memory[32];

	snprintf(shares, sizeof(shares), "%u", offer->shares);
	snprintf(memory, sizeof(memory), "%lluMi", (unsigned long long)(offer->memory >> 20));
	return add_capacity(capacities, "shares", shares, "1") &&
	       add_capacity(capacities, "memory", memory, "2Mi");
}

/* Leaves out what is not known. */
static bool add_text(cJSON *attributes, const char *name, const char *kind, const char *text)
{
	return !*text ||
	       cJSON_AddStringToObject(cJSON_AddObjectToObject(attributes, name), kind, text);
}

static bool add_number(cJSON *attributes, const char *name, double number)
{
	return cJSON_AddNumberToObject(cJSON_AddObjectToObject(attributes, name), "int", number);
}

/* A semantic version has three numbers without leading zeros: 535.54.03 is 535.54.3. */
static void write_version(char out[48], const char *driver)
{
	unsigned major = 0, minor = 0, patch = 0;
	int n = sscanf(driver, "%u.%u.%u", &major, &minor, &patch);

	snprintf(out, 48, n > 0 ? "%u.%u.%u" : "", major, minor, patch);
}

static bool add_attributes(cJSON *device, const struct config *config, const struct gpu *gpu)
{
	cJSON *attributes = cJSON_AddObjectToObject(device, "attributes");
	char version[48], model[65];

	write_version(version, gpu->driver);
	snprintf(model, sizeof(model), "%.64s", gpu->product);
	return add_text(attributes, "model", "string", model) &&
	       add_text(attributes, "uuid", "string", gpu->uuid) &&
	       add_text(attributes, "architecture", "string", gpu->architecture) &&
	       add_text(attributes, "mode", "string",
			gpu_mode_words[config_for_gpu(config, gpu).mode]) &&
	       add_text(attributes, "driverVersion", "version", version) &&
	       add_number(attributes, "memoryMiB", (double)(gpu->memory >> 20)) &&
	       (gpu->numa < 0 || add_number(attributes, "numaNode", gpu->numa));
}

static bool add_device(cJSON *devices, const struct config *config, const struct gpu *gpu)
{
	const struct offer offer = offer_of(config, gpu);
	char name[CLAIM_DEVICE_MAX];

	if (!gpu->healthy || !offer.shares)
		return true;
	cJSON *device = cJSON_CreateObject();
	offer_device_name(name, gpu);
	return cJSON_AddItemToArray(devices, device) &&
	       cJSON_AddStringToObject(device, "name", name) &&
	       cJSON_AddTrueToObject(device, "allowMultipleAllocations") &&
	       add_attributes(device, config, gpu) && add_capacities(device, &offer);
}

static bool add_owner(cJSON *meta, const struct config *config, const char *node_uid)
{
	cJSON *owner = cJSON_CreateObject();

	return cJSON_AddItemToArray(cJSON_AddArrayToObject(meta, "ownerReferences"), owner) &&
	       cJSON_AddStringToObject(owner, "apiVersion", "v1") &&
	       cJSON_AddStringToObject(owner, "kind", "Node") &&
	       cJSON_AddStringToObject(owner, "name", config->dra.node) &&
	       cJSON_AddStringToObject(owner, "uid", node_uid) &&
	       cJSON_AddTrueToObject(owner, "controller");
}

/* Without a generation of its own, a pool whose size changes is incomplete until all slices are
 * there. */
static bool add_pool(cJSON *spec, const struct config *config, unsigned n)
{
	cJSON *pool = cJSON_AddObjectToObject(spec, "pool");

	return cJSON_AddStringToObject(spec, "driver", DRA_DRIVER) &&
	       cJSON_AddStringToObject(spec, "nodeName", config->dra.node) &&
	       cJSON_AddStringToObject(pool, "name", config->dra.node) &&
	       cJSON_AddNumberToObject(pool, "generation", 1) &&
	       cJSON_AddNumberToObject(pool, "resourceSliceCount", n);
}

/* NULL: no memory. */
static char *name_slice(const struct config *config, unsigned at)
{
	char *name;

	return asprintf(&name, "%s-" DRA_DRIVER "-%u", config->dra.node, at) < 0 ? NULL : name;
}

char *slice_path(const struct config *config, unsigned at, const char *query)
{
	cleanup(freep) char *name = name_slice(config, at);
	char *path;

	if (!name ||
	    asprintf(&path, "/apis/resource.k8s.io/v1/resourceslices/%s%s", name, query) < 0)
		return NULL;
	return path;
}

char *slice_format(const struct config *config, const struct inventory *inventory, unsigned at,
		   const char *node_uid)
{
	cleanup(freep) char *name = name_slice(config, at);
	cJSON *slice = cJSON_CreateObject(), *meta = cJSON_AddObjectToObject(slice, "metadata");
	cJSON *spec = cJSON_AddObjectToObject(slice, "spec");
	cJSON *devices = cJSON_AddArrayToObject(spec, "devices");
	bool good = name && devices &&
		    cJSON_AddStringToObject(slice, "apiVersion", "resource.k8s.io/v1") &&
		    cJSON_AddStringToObject(slice, "kind", "ResourceSlice") &&
		    cJSON_AddStringToObject(meta, "name", name) &&
		    add_owner(meta, config, node_uid) &&
		    add_pool(spec, config, inventory->node.n_gpus) &&
		    add_device(devices, config, &inventory->gpus[at]);

	char *text = good ? cJSON_PrintUnformatted(slice) : NULL;
	cJSON_Delete(slice);
	return text;
}
