#include "container-spec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "allocator.h"
#include "cdi.h"
#include "codec.h"
#include "config.h"
#include "driver.h"
#include "gpu.h"
#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"
#include "weir/protocol.h"

#define MPS_DIR      "/run/weir-mps" /* in containers */
#define PRELOAD_FILE "/etc/ld.so.preload"
#define CDI_KEY      "cdi.k8s.io/weir-device-plugin_gpus"

/* The answer under construction. After the first failure nothing more is added. */
struct builder {
	V1beta1__ContainerAllocateResponse *response;
	const struct config *config;
	int error;
};

/* Appends a new message to a repeated field. NULL: failed, now or earlier. */
static void *append(struct builder *b, void *list, size_t *n,
		    const ProtobufCMessageDescriptor *type)
{
	void ***items = list;
	void **grown = b->error ? NULL : realloc(*items, (*n + 1) * sizeof(void *));

	if (grown)
		*items = grown;
	void *item = grown ? codec_new(type) : NULL;
	if (item)
		grown[(*n)++] = item;
	else
		b->error = -ENOMEM;
	return item;
}

static char *copy(struct builder *b, const char *text)
{
	char *copied = strdup(text);

	if (!copied)
		b->error = -ENOMEM;
	return copied;
}

static void add_mount(struct builder *b, const char *host, const char *container, bool read_only)
{
	V1beta1__ContainerAllocateResponse *r = b->response;
	V1beta1__Mount *mount = append(b, &r->mounts, &r->n_mounts, &v1beta1__mount__descriptor);

	if (!mount)
		return;
	mount->host_path = copy(b, host);
	mount->container_path = copy(b, container);
	mount->read_only = read_only;
}

/* Adds nothing if there is no such node. */
static void add_device(struct builder *b, const char *path)
{
	V1beta1__ContainerAllocateResponse *r = b->response;

	if (!driver_host_has(b->config, path))
		return;
	V1beta1__DeviceSpec *device =
		append(b, &r->devices, &r->n_devices, &v1beta1__device_spec__descriptor);
	if (!device)
		return;
	device->host_path = copy(b, path);
	device->container_path = copy(b, path);
	device->permissions = copy(b, "rw");
}

static void add_pair(struct builder *b, V1beta1__StringPair ***list, size_t *n, const char *key,
		     const char *value)
{
	V1beta1__StringPair *pair = append(b, list, n, &v1beta1__string_pair__descriptor);

	if (!pair)
		return;
	pair->key = copy(b, key);
	pair->value = copy(b, value);
}

static void add_env(struct builder *b, const char *key, const char *value)
{
	add_pair(b, &b->response->envs, &b->response->n_envs, key, value);
}

static void add_cdi_device(struct builder *b, const char *name)
{
	V1beta1__ContainerAllocateResponse *r = b->response;
	V1beta1__CDIDevice *device =
		append(b, &r->cdi_devices, &r->n_cdi_devices, &v1beta1__cdidevice__descriptor);

	if (device)
		device->name = copy(b, name);
}

/* Names the CDI devices; the runtime reads what they add. */
static void name_gpus(struct builder *b, const struct gpu *gpus, const struct grant *grant)
{
	char list[GPUS_MAX * (CDI_KIND_MAX + GPU_UUID_MAX)];
	const char *kind = b->config->cdi.kind;
	size_t size = 0;

	for (unsigned i = 0; i < grant->n_gpus; i++) {
		size_t begin = size ? size + 1 : 0;
		size += (size_t)snprintf(list + size, sizeof(list) - size, i ? ",%s=%s" : "%s=%s",
					 kind, gpus[grant->gpus[i]].uuid);
		if (b->config->device_list == DEVICE_LIST_CDI_CRI)
			add_cdi_device(b, list + begin);
	}
	if (b->config->device_list == DEVICE_LIST_CDI_ANNOTATIONS)
		add_pair(b, &b->response->annotations, &b->response->n_annotations, CDI_KEY, list);
}

/* NVIDIA_VISIBLE_DEVICES is for NVIDIA's container runtime, and overrides the "all" of CUDA images.
 * With CDI it is "void", so that this runtime does nothing. The device nodes select the GPU.
 * CUDA_VISIBLE_DEVICES is only set if there are no nodes, because programs expect numbers in it. */
static void add_gpus(struct builder *b, const struct gpu *gpus, const struct grant *grant)
{
	char list[GPUS_MAX * GPU_UUID_MAX] = "", node[DRIVER_NODE_MAX];
	bool by_name = b->config->device_list != DEVICE_LIST_ENVVAR, has_nodes = true;
	size_t n = 0;

	for (unsigned i = 0; i < grant->n_gpus; i++) {
		const struct gpu *gpu = &gpus[grant->gpus[i]];
		n += (size_t)snprintf(list + n, sizeof(list) - n, i ? ",%s" : "%s", gpu->uuid);
		has_nodes &= driver_gpu_node(node, b->config, gpu->minor);
		if (has_nodes && !by_name)
			add_device(b, node);
	}
	add_env(b, "NVIDIA_VISIBLE_DEVICES", by_name ? "void" : list);
	if (!has_nodes)
		add_env(b, "CUDA_VISIBLE_DEVICES", list);
	for (const char *const *common = driver_nodes; *common && has_nodes && !by_name; common++)
		add_device(b, *common);
	if (by_name)
		name_gpus(b, gpus, grant);
}

static void add_driver_file(void *owner, const char *host, const char *container)
{
	add_mount(owner, host, container, true);
}

/* The agent reports this with a file. Without the daemon, a container's first CUDA call would fail.
 */
static bool has_mps(const struct config *config, const struct gpu *gpu)
{
	char ready[512], client[512];

	snprintf(ready, sizeof(ready), "%s/%s/ready", config->mps.dir, gpu->uuid);
	/* An older agent, whose daemon still runs, did not create this file. */
	snprintf(client, sizeof(client), "%s/%s/client", config->mps.dir, gpu->uuid);
	return driver_host_has(config, ready) && driver_host_has(config, client);
}

bool container_spec_lacks_mps(const struct config *config, const struct gpu *gpu)
{
	return config->mps.required && config_for_gpu(config, gpu).mode == GPU_MODE_MPS &&
	       !has_mps(config, gpu);
}

/* The folder of this GPU's daemon only. Sockets on a read-only mount still accept connections. */
static void add_mps(struct builder *b, const struct gpu *gpu)
{
	char pipes[512];

	if (config_for_gpu(b->config, gpu).mode != GPU_MODE_MPS)
		return;
	if (!has_mps(b->config, gpu)) {
		log_limited(LOG_WARNING, 60,
			    "the MPS daemon of %s does not answer; containers are time-sliced",
			    gpu->uuid);
		return;
	}
	snprintf(pipes, sizeof(pipes), "%s/%s/client", b->config->mps.dir, gpu->uuid);
	add_env(b, "CUDA_MPS_PIPE_DIRECTORY", MPS_DIR);
	add_mount(b, pipes, MPS_DIR, true);
}

/* Mounts the folder, not the socket, because a new agent creates a new socket. With gpuSockets it
 * is the folder of the container's GPU only. */
static void add_socket(struct builder *b, const struct gpu *gpu, const char *socket_dir)
{
	const struct config *config = b->config;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s%s", config->agent_socket_dir,
		 config->gpu_sockets ? "/" : "", config->gpu_sockets ? gpu->uuid : "");
	add_mount(b, path, socket_dir, true);
}

static void add_weir(struct builder *b, const struct driver *driver, const struct gpu *gpu)
{
	const struct config *config = b->config;
	char socket_dir[] = WEIR_SOCKET_PATH;

	*strrchr(socket_dir, '/') = '\0';
	add_env(b, "WEIR_GPU", gpu->uuid);
	/* The kubelet does not tell us the pod's annotation. */
	add_env(b, WEIR_LIMITED_VARIABLE, "1");
	if (driver->mount && driver->libraries)
		add_env(b, "WEIR_DRIVER", DRIVER_DIR_DEBIAN "/libcuda.so.1");
	add_mount(b, config->library_path, config->library_path, true);
	if (config->nvml_path[0])
		add_mount(b, config->nvml_path, config->nvml_path, true);
	add_mount(b, config->preload_path, PRELOAD_FILE, true);
	add_socket(b, gpu, socket_dir);
	add_mps(b, gpu);
}

int container_spec_waits(V1beta1__ContainerAllocateResponse **out, const char *why)
{
	struct builder b = {.response =
				    codec_new(&v1beta1__container_allocate_response__descriptor)};
	char host[384];

	if (!b.response)
		return error_origin(-ENOMEM);
	/* A file is no folder: every runtime fails with this path in its message. */
	snprintf(host, sizeof(host), "/dev/null/%s", why);
	add_mount(&b, host, "/run/weir-no-room", true);
	if (b.error) {
		codec_free(&b.response->base);
		return error_origin(b.error);
	}
	*out = b.response;
	return 0;
}

int container_spec(V1beta1__ContainerAllocateResponse **out, const struct config *config,
		   const struct driver *driver, const struct gpu *gpus, const struct grant *grant)
{
	struct builder b = {.config = config,
			    .response =
				    codec_new(&v1beta1__container_allocate_response__descriptor)};

	if (!b.response)
		return error_origin(-ENOMEM);
	add_gpus(&b, gpus, grant);
	if (config->device_list == DEVICE_LIST_ENVVAR)
		driver_each_file(driver, add_driver_file, &b);
	if (!grant->whole)
		add_weir(&b, driver, &gpus[grant->gpus[0]]);
	for (size_t i = 0; i < config->container.n_mounts; i++) {
		const struct config_mount *mount = &config->container.mounts[i];
		add_mount(&b, mount->host_path, mount->container_path, mount->read_only);
	}
	for (size_t i = 0; i < config->container.n_env; i++)
		add_env(&b, config->container.env[i].key, config->container.env[i].value);

	if (b.error) {
		codec_free(&b.response->base);
		return error_origin(b.error);
	}
	*out = b.response;
	return 0;
}
