#include "dra/claim-cdi.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "allocator.h"
#include "cdi.h"
#include "codec.h"
#include "config.h"
#include "container-spec.h"
#include "inventory.h"
#include "weir/base.h"

#define KIND "weir.dev/claim"

static bool add_env(cJSON *edits, const V1beta1__ContainerAllocateResponse *spec)
{
	cJSON *list = cJSON_AddArrayToObject(edits, "env");

	for (size_t i = 0; i < spec->n_envs; i++) {
		cleanup(freep) char *pair = NULL;
		if (asprintf(&pair, "%s=%s", spec->envs[i]->key, spec->envs[i]->value) < 0) {
			pair = NULL;
			return false;
		}
		if (!cJSON_AddItemToArray(list, cJSON_CreateString(pair)))
			return false;
	}
	return list;
}

/* With the options of the kubelet's mounts. */
static bool add_mount(cJSON *list, const V1beta1__Mount *mount)
{
	const char *const options[] = {"rbind", "rprivate", mount->read_only ? "ro" : "rw"};
	cJSON *object = cJSON_CreateObject();

	return cJSON_AddItemToArray(list, object) &&
	       cJSON_AddStringToObject(object, "hostPath", mount->host_path) &&
	       cJSON_AddStringToObject(object, "containerPath", mount->container_path) &&
	       cJSON_AddItemToObject(object, "options",
				     cJSON_CreateStringArray(options, (int)countof(options)));
}

static bool add_mounts(cJSON *edits, const V1beta1__ContainerAllocateResponse *spec)
{
	cJSON *list = cJSON_AddArrayToObject(edits, "mounts");
	bool good = list;

	for (size_t i = 0; good && i < spec->n_mounts; i++)
		good = add_mount(list, spec->mounts[i]);
	return good;
}

static void write_name(char *out, size_t size, const struct gpu *gpu, bool whole)
{
	snprintf(out, size, "%s%s", gpu->uuid, whole ? "-whole" : "");
}

static bool add_device(cJSON *devices, const struct config *config, const struct driver *driver,
		       const struct inventory *inventory, unsigned at, bool whole)
{
	const struct grant grant = {
		.n_shares = 1, .n_gpus = 1, .gpus = {at}, .whole = whole}; /* any part is alike */
	cleanup(codec_freep) V1beta1__ContainerAllocateResponse *spec = NULL;
	cJSON *device = cJSON_CreateObject();
	char name[GPU_UUID_MAX + 8];

	write_name(name, sizeof(name), &inventory->gpus[at], whole);
	if (!cJSON_AddItemToArray(devices, device) ||
	    container_spec(&spec, config, driver, inventory->gpus, &grant) < 0)
		return false;
	cJSON_AddStringToObject(device, "name", name);
	cJSON *edits = cJSON_AddObjectToObject(device, "containerEdits");
	return add_env(edits, spec) && add_mounts(edits, spec);
}

/* NULL: no memory. */
static char *format(const struct config *config, const struct driver *driver,
		    const struct inventory *inventory)
{
	struct config by_name = *config;
	cJSON *json = cJSON_CreateObject();
	cJSON *devices = cJSON_AddArrayToObject(json, "devices");
	bool good = cJSON_AddStringToObject(json, "cdiVersion", "0.5.0") &&
		    cJSON_AddStringToObject(json, "kind", KIND) && devices;

	/* The GPU's own CDI device has its nodes and the driver. */
	by_name.device_list = DEVICE_LIST_CDI_CRI;
	for (unsigned i = 0; good && i < inventory->node.n_gpus; i++)
		good = add_device(devices, &by_name, driver, inventory, i, false) &&
		       add_device(devices, &by_name, driver, inventory, i, true);
	char *text = good ? cJSON_Print(json) : NULL;
	cJSON_Delete(json);
	return text;
}

bool claim_cdi_publish(const struct config *config, const struct driver *driver,
		       const struct inventory *inventory, char *error, size_t error_size)
{
	cleanup(freep) char *text = format(config, driver, inventory);
	char path[192] = "the CDI specification";

	int r = text ? cdi_publish(path, sizeof(path), config, driver, inventory->gpus,
				   inventory->node.n_gpus)
		     : -ENOMEM;
	if (r == 0 && inventory->node.n_gpus)
		r = cdi_write(path, sizeof(path), config, KIND, text);
	if (r < 0)
		snprintf(error, error_size, "%s: %s", path, strerror(-r));
	return r == 0;
}

void claim_cdi_ids(char out[2][CLAIM_CDI_MAX], const struct config *config, const struct gpu *gpu,
		   bool whole)
{
	char name[GPU_UUID_MAX + 8];

	write_name(name, sizeof(name), gpu, whole);
	snprintf(out[0], CLAIM_CDI_MAX, "%s=%s", config->cdi.kind, gpu->uuid);
	snprintf(out[1], CLAIM_CDI_MAX, KIND "=%s", name);
}
