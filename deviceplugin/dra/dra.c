#include "dra/dra.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"
#include "config.h"
#include "dra-v1.pb-c.h"
#include "dra/claim-cdi.h"
#include "dra/claim-parse.h"
#include "dra/reply.h"
#include "inventory.h"
#include "weir/api-client.h"
#include "weir/base.h"
#include "weir/log.h"

#define SOCKET_PERIOD (5 * NS_PER_S)

static void get_info(struct dra *dra, struct rpc_call *call, const ProtobufCMessage *request)
{
	static char type[] = "DRAPlugin", name[] = DRA_DRIVER, version[] = "v1.DRAPlugin";
	char *versions[] = {version};
	Dra__PluginInfo info = DRA__PLUGIN_INFO__INIT;

	(void)request;
	info.type = type;
	info.name = name;
	info.endpoint = dra->socket;
	info.n_supported_versions = countof(versions);
	info.supported_versions = versions;
	reply_with(call, &info.base);
}

/* A kubelet that started has deleted the slice, or is about to. */
static void notified(struct dra *dra, struct rpc_call *call, const ProtobufCMessage *request)
{
	const Dra__RegistrationStatus *status = (const Dra__RegistrationStatus *)request;
	Dra__RegistrationStatusResponse response = DRA__REGISTRATION_STATUS_RESPONSE__INIT;

	if (status->plugin_registered)
		log_info("registered the driver " DRA_DRIVER " with the kubelet");
	else
		log_error("the kubelet does not register " DRA_DRIVER ": %s", status->error);
	dra_look(dra);
	sweep_start(&dra->sweep);
	reply_with(call, &response.base);
}

static void prepare(struct dra *dra, struct rpc_call *call, const ProtobufCMessage *request)
{
	preparer_prepare(&dra->preparer, call, request);
}

static void unprepare(struct dra *dra, struct rpc_call *call, const ProtobufCMessage *request)
{
	preparer_unprepare(&dra->preparer, call, request);
	dra->freed(dra);
}

static const struct {
	const char *path;
	const ProtobufCMessageDescriptor *request;
	void (*answer)(struct dra *dra, struct rpc_call *call, const ProtobufCMessage *request);
} methods[] = {
	{"/pluginregistration.Registration/GetInfo", &dra__info_request__descriptor, get_info},
	{"/pluginregistration.Registration/NotifyRegistrationStatus",
	 &dra__registration_status__descriptor, notified},
	{"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources",
	 &dra__prepare_request__descriptor, prepare},
	{"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources",
	 &dra__unprepare_request__descriptor, unprepare},
};

static void called(void *owner, struct rpc_call *call, const char *path, const void *request,
		   size_t size)
{
	for (size_t i = 0; i < countof(methods); i++) {
		if (strcmp(path, methods[i].path) != 0)
			continue;
		cleanup(codec_freep) ProtobufCMessage *message =
			codec_decode(methods[i].request, request, size);
		if (message)
			methods[i].answer(owner, call, message);
		else
			rpc_call_finish(call, RPC_INVALID_ARGUMENT, "malformed request");
		return;
	}
	rpc_call_finish(call, RPC_UNIMPLEMENTED, "no such method");
}

static void ended(void *owner, struct rpc_call *call)
{
	struct dra *dra = owner;

	preparer_ended(&dra->preparer, call);
}

static const struct rpc_service service = {.called = called, .ended = ended};

/* No ended() follows for the calls of a closed server. */
static void close_server(struct dra *dra)
{
	struct rpc_server *server = take(dra->server);

	if (!server)
		return;
	rpc_server_close(server);
	preparer_ended(&dra->preparer, NULL);
}

static void look_at_socket(struct loop_timer *timer)
{
	struct dra *dra = container_of(timer, struct dra, timer);

	/* gRPC removes the path of a server that ends, so the next one comes later. */
	if (dra->server && access(dra->socket, F_OK) < 0) {
		close_server(dra);
		return;
	}
	if (dra->server)
		return;
	int r = rpc_server_new(&dra->server, dra->rpc, dra->socket, &service, dra);
	if (r < 0)
		log_limited(LOG_WARNING, 60, "cannot listen at %s: %s", dra->socket, strerror(-r));
}

static void name_gpus(const struct dra *dra)
{
	char error[DRA_ERROR_MAX];

	if (!claim_cdi_publish(dra->config, dra->preparer.driver, dra->preparer.inventory, error,
			       sizeof(error)))
		log_warning("%s", error);
}

void dra_look(struct dra *dra)
{
	name_gpus(dra);
	kept_look(&dra->kept);
	dra->preparer.ready = dra->kept.known;
	if (dra->kept.known)
		publisher_look(&dra->publisher);
}

static void kept_changed(struct kept *kept)
{
	dra_look(container_of(kept, struct dra, kept));
}

int dra_init(struct dra *dra, struct loop *loop, struct rpc *rpc, const struct config *config,
	     const struct driver *driver, struct inventory *inventory,
	     void (*freed)(struct dra *dra))
{
	*dra = (struct dra){.config = config, .rpc = rpc, .freed = freed};
	snprintf(dra->socket, sizeof(dra->socket), "%s/" DRA_DRIVER "-reg.sock",
		 config->dra.registry_dir);
	int r = ledger_init(&dra->ledger, config);
	if (r == 0)
		r = api_client_new(&dra->api, loop, config->dra.kubeconfig);
	if (r == 0)
		r = publisher_init(&dra->publisher, loop, dra->api, config, inventory);
	if (r == 0)
		r = kept_init(&dra->kept, loop, rpc, config, inventory, kept_changed);
	if (r == 0)
		r = loop_timer_init(&dra->timer, loop, look_at_socket);
	if (r == 0)
		r = loop_timer_set(&dra->timer, 0, SOCKET_PERIOD);
	dra->preparer = (struct preparer){.config = config,
					  .driver = driver,
					  .inventory = inventory,
					  .ledger = &dra->ledger,
					  .api = dra->api};
	dra->sweep = (struct sweep){.config = config, .ledger = &dra->ledger, .api = dra->api};
	if (r == 0)
		dra_look(dra);
	return r;
}

void dra_deinit(struct dra *dra)
{
	close_server(dra);
	loop_timer_deinit(&dra->timer);
	kept_deinit(&dra->kept);
	publisher_deinit(&dra->publisher);
	api_client_free(take(dra->api));
	preparer_deinit(&dra->preparer);
	ledger_deinit(&dra->ledger);
}
