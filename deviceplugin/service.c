#include "service.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "allocator.h"
#include "cdi.h"
#include "codec.h"
#include "config.h"
#include "container-spec.h"
#include "deviceplugin-v1beta1.pb-c.h"
#include "dra/offer.h"
#include "inventory.h"
#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"

#define ERROR_MAX SERVICE_ERROR_MAX

/* Answers one request. If the result is not RPC_OK, @error gets one line. */
typedef enum rpc_status answer_fn(struct service *service, const void *request, struct bytes *reply,
				  char error[ERROR_MAX]);

static enum rpc_status no_memory(char *error)
{
	snprintf(error, ERROR_MAX, "out of memory");
	return RPC_INTERNAL;
}

static enum rpc_status encode(struct bytes *reply, const ProtobufCMessage *message, char *error)
{
	return codec_encode(reply, message) == 0 ? RPC_OK : no_memory(error);
}

static enum rpc_status get_options(struct service *service, const void *request,
				   struct bytes *reply, char *error)
{
	V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;

	(void)service;
	(void)request;
	options.get_preferred_allocation_available = true;
	return encode(reply, &options.base, error);
}

/* The messages of a GPU. All its shares have the same health and topology. */
struct device_list {
	V1beta1__Device *pointers[GPUS_MAX * SHARES_PER_GPU];
	V1beta1__Device devices[GPUS_MAX * SHARES_PER_GPU];
	char ids[GPUS_MAX * SHARES_PER_GPU][DEVICE_ID_MAX];
	V1beta1__TopologyInfo topologies[GPUS_MAX];
	V1beta1__NUMANode nodes[GPUS_MAX], *node_pointers[GPUS_MAX];
};

static size_t list_gpu(struct device_list *list, size_t n, const struct gpu *gpu, unsigned at,
		       unsigned shares)
{
	static char healthy[] = "Healthy", unhealthy[] = "Unhealthy";

	v1beta1__numanode__init(&list->nodes[at]);
	v1beta1__topology_info__init(&list->topologies[at]);
	list->nodes[at].id = gpu->numa;
	list->node_pointers[at] = &list->nodes[at];
	list->topologies[at].nodes = &list->node_pointers[at];
	list->topologies[at].n_nodes = 1;
	for (unsigned share = 0; share < shares; share++, n++) {
		V1beta1__Device *device = &list->devices[n];
		v1beta1__device__init(device);
		inventory_id(list->ids[n], gpu, share);
		device->id = list->ids[n];
		device->health = gpu->healthy ? healthy : unhealthy;
		device->topology = gpu->numa >= 0 ? &list->topologies[at] : NULL;
		list->pointers[n] = device;
	}
	return n;
}

/* Shares to offer. A claim may still have some of them from an earlier configuration. */
static unsigned shares_of(struct service *service, const struct gpu *gpu)
{
	unsigned shares = config_for_gpu(service->config, gpu).shares;
	unsigned rest = SHARES_PER_GPU - (service->claims ? offer_held(service->claims, gpu) : 0);

	service->cut |= shares > rest;
	return (unsigned)smaller(shares, rest);
}

static enum rpc_status list_devices(struct service *service, const void *request,
				    struct bytes *reply, char *error)
{
	V1beta1__ListAndWatchResponse response = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
	cleanup(freep) struct device_list *list = malloc(sizeof(*list));
	const struct inventory *inventory = service->inventory;

	(void)request;
	if (!list)
		return no_memory(error);
	service->cut = false;
	for (unsigned i = 0; i < inventory->node.n_gpus; i++) {
		const struct gpu *gpu = &inventory->gpus[i];
		response.n_devices =
			list_gpu(list, response.n_devices, gpu, i, shares_of(service, gpu));
	}
	response.devices = list->pointers;
	return encode(reply, &response.base, error);
}

/* Collects the shares that @ids name. False: an id is unknown or occurs twice; @error says which.
 */
static bool read_ids(struct shares *out, const struct service *service, char *const *ids, size_t n,
		     char *error)
{
	const char *resource = service->config->resource_name;
	unsigned gpu, share;

	*out = (struct shares){0};
	for (size_t i = 0; i < n; i++) {
		if (!inventory_find(service->inventory, ids[i], &gpu, &share)) {
			snprintf(error, ERROR_MAX, "%s: no such device on this node: %.*s",
				 resource, (int)DEVICE_ID_MAX, ids[i]);
			return false;
		}
		if (shares_has(out, gpu, share)) {
			snprintf(error, ERROR_MAX, "%s: device named twice: %.*s", resource,
				 (int)DEVICE_ID_MAX, ids[i]);
			return false;
		}
		shares_add(out, gpu, share);
	}
	return true;
}

static int write_ids(V1beta1__ContainerPreferredAllocationResponse *out,
		     const struct inventory *inventory, const struct shares *shares)
{
	out->deviceids = calloc(shares_total(shares) + 1, sizeof(*out->deviceids));
	if (!out->deviceids)
		return error_origin(-ENOMEM);
	for (unsigned gpu = 0; gpu < inventory->node.n_gpus; gpu++) {
		for (unsigned share = 0; share < SHARES_PER_GPU; share++) {
			char id[DEVICE_ID_MAX];
			if (!shares_has(shares, gpu, share))
				continue;
			inventory_id(id, &inventory->gpus[gpu], share);
			char *copied = strdup(id);
			if (!copied)
				return error_origin(-ENOMEM);
			out->deviceids[out->n_deviceids++] = copied;
		}
	}
	return 0;
}

/* The shares of a container's request. False: the answer is empty. The kubelet then chooses itself,
 * and Allocate explains what is wrong with the whole request. */
static bool choose(struct shares *out, const struct service *service,
		   const struct shares *available, const struct shares *must, int32_t size)
{
	const struct node *node = &service->inventory->node;

	if (size <= 0)
		return false;
	if (allocator_prefer(out, node, available, must, (unsigned)size))
		return true;
	if (service->config->no_room != NO_ROOM_WAIT)
		return false;
	allocator_scatter(out, node, available, must, (unsigned)size);
	return shares_total(out) == (unsigned)size;
}

static enum rpc_status prefer(struct service *service, const void *message, struct bytes *reply,
			      char *error)
{
	const V1beta1__PreferredAllocationRequest *request = message;
	cleanup(codec_freep) V1beta1__PreferredAllocationResponse *response =
		codec_new(&v1beta1__preferred_allocation_response__descriptor);

	if (!response || !(response->container_responses =
				   calloc(request->n_container_requests + 1, sizeof(void *))))
		return no_memory(error);

	for (size_t i = 0; i < request->n_container_requests; i++) {
		const V1beta1__ContainerPreferredAllocationRequest *wanted =
			request->container_requests[i];
		struct shares available, must, chosen;
		V1beta1__ContainerPreferredAllocationResponse *answer =
			codec_new(&v1beta1__container_preferred_allocation_response__descriptor);
		if (!answer)
			return no_memory(error);
		response->container_responses[response->n_container_responses++] = answer;
		if (!read_ids(&available, service, wanted->available_deviceids,
			      wanted->n_available_deviceids, error) ||
		    !read_ids(&must, service, wanted->must_include_deviceids,
			      wanted->n_must_include_deviceids, error))
			return RPC_INVALID_ARGUMENT;
		if (choose(&chosen, service, &available, &must, wanted->allocation_size) &&
		    write_ids(answer, service->inventory, &chosen) < 0)
			return no_memory(error);
	}
	return encode(reply, &response->base, error);
}

bool service_name_gpus(const struct service *service, char error[SERVICE_ERROR_MAX])
{
	const struct inventory *inventory = service->inventory;
	char path[192];

	if (service->config->device_list == DEVICE_LIST_ENVVAR)
		return true;
	int r = cdi_publish(path, sizeof(path), service->config, service->driver, inventory->gpus,
			    inventory->node.n_gpus);
	if (r < 0)
		snprintf(error, SERVICE_ERROR_MAX, "%s: %s", path, strerror(-r));
	return r == 0;
}

static enum rpc_status has_no_room(V1beta1__ContainerAllocateResponse **out,
				   struct service *service, enum allocation allocation,
				   const struct shares *taken, char *error)
{
	char why[ERROR_MAX];

	allocator_explain(why, sizeof(why), allocation, service->config->resource_name, taken);
	if (service->config->no_room != NO_ROOM_WAIT || allocation == ALLOCATION_NONE) {
		memcpy(error, why, sizeof(why));
		return RPC_RESOURCE_EXHAUSTED;
	}
	if (container_spec_waits(out, why) < 0)
		return no_memory(error);
	service->counters.waiting++;
	log_info("a container waits: %s", why);
	return RPC_OK;
}

static enum rpc_status allocate_one(V1beta1__ContainerAllocateResponse **out,
				    struct service *service,
				    const V1beta1__ContainerAllocateRequest *request, char *error)
{
	const struct inventory *inventory = service->inventory;
	struct shares taken;
	struct grant grant;

	if (!read_ids(&taken, service, request->devices_ids, request->n_devices_ids, error))
		return RPC_INVALID_ARGUMENT;
	enum allocation allocation = allocator_check(&grant, &inventory->node, &taken);
	if (allocation != ALLOCATION_OK)
		return has_no_room(out, service, allocation, &taken, error);
	if (!service_name_gpus(service, error))
		return RPC_FAILED_PRECONDITION;
	const struct gpu *first = &inventory->gpus[grant.gpus[0]];
	if (!grant.whole && container_spec_lacks_mps(service->config, first)) {
		snprintf(error, ERROR_MAX, "%s: the MPS daemon of %s does not answer",
			 service->config->resource_name, first->uuid);
		return RPC_FAILED_PRECONDITION;
	}
	if (container_spec(out, service->config, service->driver, inventory->gpus, &grant) < 0)
		return no_memory(error);
	service->counters.allocated++;
	log_info("allocated %u shares of %s%s", grant.n_shares, first->uuid,
		 grant.n_gpus > 1 ? " and more" : "");
	return RPC_OK;
}

static enum rpc_status allocate(struct service *service, const void *message, struct bytes *reply,
				char *error)
{
	const V1beta1__AllocateRequest *request = message;
	cleanup(codec_freep) V1beta1__AllocateResponse *response =
		codec_new(&v1beta1__allocate_response__descriptor);

	if (!response || !(response->container_responses =
				   calloc(request->n_container_requests + 1, sizeof(void *))))
		return no_memory(error);
	for (size_t i = 0; i < request->n_container_requests; i++) {
		enum rpc_status status = allocate_one(&response->container_responses[i], service,
						      request->container_requests[i], error);
		if (status != RPC_OK) {
			service->counters.refused++;
			log_warning("refused: %s", error);
			return status;
		}
		response->n_container_responses++;
	}
	return encode(reply, &response->base, error);
}

/* Nothing to do: the agent sees a container when its first process connects. */
static enum rpc_status pre_start(struct service *service, const void *request, struct bytes *reply,
				 char *error)
{
	V1beta1__PreStartContainerResponse response = V1BETA1__PRE_START_CONTAINER_RESPONSE__INIT;

	(void)service;
	(void)request;
	return encode(reply, &response.base, error);
}

/* In the order of the .proto file, which is the order of the descriptor's methods. */
static const struct {
	answer_fn *answer;
	bool streaming;
} methods[] = {
	{get_options}, {list_devices, .streaming = true}, {prefer}, {allocate}, {pre_start},
};

static void keep_stream(struct service *service, struct rpc_call *call)
{
	if (service->n_streams == STREAMS_MAX) {
		rpc_call_finish(call, RPC_RESOURCE_EXHAUSTED, "too many streams");
		return;
	}
	service->streams[service->n_streams++] = call;
	if (service->n_streams == 1)
		service->watched(service);
}

static void called(void *owner, struct rpc_call *call, const char *path, const void *request,
		   size_t size)
{
	const ProtobufCServiceDescriptor *descriptor = &v1beta1__device_plugin__descriptor;
	struct service *service = owner;
	cleanup(bytes_deinit) struct bytes reply = {0};
	cleanup(codec_freep) ProtobufCMessage *message = NULL;
	char error[ERROR_MAX] = "";

	int method = codec_method(descriptor, path);
	if (method < 0) {
		rpc_call_finish(call, RPC_UNIMPLEMENTED, "no such method");
		return;
	}
	log_debug("kubelet calls %s", descriptor->methods[method].name);
	message = codec_decode(descriptor->methods[method].input, request, size);
	if (!message) {
		rpc_call_finish(call, RPC_INVALID_ARGUMENT, "malformed request");
		return;
	}
	enum rpc_status status = methods[method].answer(service, message, &reply, error);
	if (status == RPC_OK && rpc_call_send(call, reply.data, reply.size) < 0) {
		status = RPC_INTERNAL;
		snprintf(error, sizeof(error), "answer too large");
	}
	if (status == RPC_OK && methods[method].streaming)
		keep_stream(service, call);
	else
		rpc_call_finish(call, status, error);
}

static void ended(void *owner, struct rpc_call *call)
{
	struct service *service = owner;

	for (unsigned i = 0; i < service->n_streams; i++) {
		if (service->streams[i] != call)
			continue;
		service->streams[i] = service->streams[--service->n_streams];
		if (!service->n_streams)
			service->unwatched(service);
		return;
	}
}

const struct rpc_service service_methods = {.called = called, .ended = ended};

void service_push(struct service *service)
{
	cleanup(bytes_deinit) struct bytes list = {0};
	char error[ERROR_MAX];

	if (!service->n_streams)
		return;
	if (list_devices(service, NULL, &list, error) != RPC_OK) {
		log_error("device list not sent: %s", error);
		return;
	}
	for (unsigned i = 0; i < service->n_streams; i++)
		rpc_call_send(service->streams[i], list.data, list.size);
}

void service_reset(struct service *service)
{
	service->n_streams = 0;
}
