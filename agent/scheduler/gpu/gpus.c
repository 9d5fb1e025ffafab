#include "scheduler/gpu/gpus.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "common/hash.h"

#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"
#include "weir/nvml.h"

static struct gpu *add(struct gpus *gpus, const uint8_t uuid[16])
{
	struct gpu *gpu = calloc(1, sizeof(*gpu));

	if (!gpu) {
		error_origin(-ENOMEM);
		return NULL;
	}
	memcpy(gpu->uuid, uuid, sizeof(gpu->uuid));
	gpu_id_format(uuid, gpu->id);
	gpu->index = -1;
	HASH_ADD(hh, gpus->all, uuid, sizeof(gpu->uuid), gpu);
	gpus->n++;
	return gpu;
}

static struct gpu *find(struct gpus *gpus, const uint8_t uuid[16])
{
	struct gpu *gpu;

	HASH_FIND(hh, gpus->all, uuid, sizeof(gpu->uuid), gpu);
	return gpu;
}

static int add_device(struct gpus *gpus, const struct nvml *nvml, unsigned i)
{
	nvmlDevice_t device;
	nvmlMemory_t memory;
	char id[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
	uint8_t uuid[16];

	nvmlReturn_t error = nvml->nvmlDeviceGetHandleByIndex(i, &device);
	if (error == NVML_SUCCESS)
		error = nvml->nvmlDeviceGetUUID(device, id, sizeof(id));
	if (error != NVML_SUCCESS || !gpu_id_parse(id, uuid)) {
		log_warning("GPU %u is ignored: %s", i,
			    error ? nvml_error(nvml, error) : "its UUID is invalid");
		return 0;
	}
	if (find(gpus, uuid))
		return 0;
	struct gpu *gpu = add(gpus, uuid);
	if (!gpu)
		return -ENOMEM;
	gpu->listed = true;
	gpu->index = (int)i;
	if (nvml->nvmlDeviceGetName(device, gpu->name, sizeof(gpu->name)) != NVML_SUCCESS)
		gpu->name[0] = '\0';
	if (nvml->nvmlDeviceGetMemoryInfo(device, &memory) == NVML_SUCCESS)
		gpu->memory = memory.total;
	log_info("%s: %s, %llu MiB", gpu->id, gpu->name, (unsigned long long)(gpu->memory >> 20));
	return 0;
}

static int list_devices(struct gpus *gpus, const char *path)
{
	char message[256];
	struct nvml nvml;
	unsigned n = 0;
	int r = nvml_open(&nvml, path, message, sizeof(message));

	if (r < 0) {
		log_warning("%s; GPUs are those that clients name", message);
		return 0;
	}
	if (nvml.nvmlDeviceGetCount(&n) == NVML_SUCCESS)
		gpus->listed = true;
	const char *name = strrchr(nvml.path, '/');
	if (name)
		snprintf(gpus->libraries, sizeof(gpus->libraries), "%.*s", (int)(name - nvml.path),
			 nvml.path);
	for (unsigned i = 0; i < n && i < GPUS_MAX && r == 0; i++)
		r = add_device(gpus, &nvml, i);
	if (gpus->listed && gpus->n == 0)
		log_warning("NVML at %s lists no GPU; every client will be refused", nvml.path);
	if (!nvml.nvmlSystemGetCudaDriverVersion_v2 ||
	    nvml.nvmlSystemGetCudaDriverVersion_v2(&gpus->cuda) != NVML_SUCCESS)
		gpus->cuda = 0;
	nvml_close(&nvml);
	return r;
}

#define COMPILER_CUDA  13000
#define SIMULATED_NAME "Weir Simulated GPU"

bool gpus_take_machine_code(const struct gpus *gpus)
{
	for (const struct gpu *gpu = gpus->all; gpu; gpu = gpu->hh.next)
		if (strcmp(gpu->name, SIMULATED_NAME) == 0)
			return false;
	return gpus->listed && gpus->cuda >= COMPILER_CUDA;
}

static int open_gpu(struct gpus *gpus, struct gpu *gpu)
{
	gpu->freezer = &gpus->freezer;
	return gpu->open ? 0 : gpu_open(gpu, gpus->loop, &gpus->root);
}

/* Unless another process still reads there what it is to let go on. */
static void remove_folder(const struct gpus *gpus, const char *id)
{
	if (gpus->freezer.lock >= 0)
		region_remove(&gpus->root, id);
}

/* Without NVML: finds the GPUs of an earlier agent's clients, and removes the other folders. */
static int recall(struct gpus *gpus, const char *id)
{
	uint8_t uuid[16];

	if (!gpu_id_parse(id, uuid) || find(gpus, uuid))
		return 0;
	if (gpus->listed || gpus->n >= GPUS_MAX) {
		remove_folder(gpus, id);
		return 0;
	}
	struct gpu *gpu = add(gpus, uuid);
	if (!gpu)
		return -ENOMEM;
	if (open_gpu(gpus, gpu) == 0 && gpu->reserved == 0) {
		gpu_close(gpu);
		remove_folder(gpus, id);
		HASH_DEL(gpus->all, gpu);
		gpus->n--;
		free(gpu);
	}
	return 0;
}

static int recall_all(struct gpus *gpus)
{
	DIR *folder = folder_list(&gpus->root, ".");
	int r = 0;

	if (!folder)
		return error_origin(-errno);
	for (struct dirent *entry; r == 0 && (entry = readdir(folder));)
		r = recall(gpus, entry->d_name);
	closedir(folder);
	return r;
}

int gpus_init(struct gpus *gpus, struct loop *loop, const char *state_dir, const char *nvml)
{
	*gpus = GPUS_NONE;
	gpus->loop = loop;
	gpus->freezer.root = &gpus->root;
	int r = region_root_init(&gpus->root, state_dir);
	if (r == 0) {
		/* If it fails, stops by signal try it again. */
		freezer_claim(&gpus->freezer);
		r = list_devices(gpus, nvml);
	}
	if (r == 0)
		r = recall_all(gpus);
	if (r < 0) {
		gpus_deinit(gpus);
		return r;
	}
	/* gpu_open() logs failures. A GPU that failed is opened when a client asks for it. */
	for (struct gpu *gpu = gpus->all; gpu; gpu = gpu->hh.next)
		open_gpu(gpus, gpu);
	return 0;
}

static void close_and_free(struct gpu *gpu)
{
	gpu_close(gpu);
	free(gpu);
}

void gpus_deinit(struct gpus *gpus)
{
	hash_release(gpus->all, close_and_free);
	freezer_deinit(&gpus->freezer);
	folder_close(&gpus->root);
	gpus->n = 0;
}

struct config_gpu_settings gpu_settings(const struct config *config, const struct gpu *gpu)
{
	return config_for_gpu(config, &(struct gpu_traits){gpu->id, gpu->index, gpu->name});
}

int gpus_get(struct gpus *gpus, const uint8_t uuid[16], struct gpu **out)
{
	struct gpu *gpu = find(gpus, uuid);

	if (!gpu && (gpus->listed || gpus->n >= GPUS_MAX))
		return GPUS_UNKNOWN;
	if (!gpu)
		gpu = add(gpus, uuid);
	*out = gpu;
	return gpu ? open_gpu(gpus, gpu) : -ENOMEM;
}
