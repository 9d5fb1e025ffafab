/* dra-call SOCKET: the calls of a kubelet to a driver for dynamic resource allocation. Reads lines
 *
 *   register
 *   prepare NAMESPACE NAME UID
 *   unprepare NAMESPACE NAME UID
 *
 * and answers each with one: `MICROSECONDS ok WORDS...`, or `MICROSECONDS failed TEXT` if the
 * driver refuses or does not answer. The words are the endpoint, or the CDI devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "dra-v1.pb-c.h"
#include "rpc/rpc.h"
#include "weir/base.h"
#include "weir/log.h"
#include "weir/loop.h"

#define DRIVER     "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"
#define REGISTRY   "/pluginregistration.Registration/"
#define TIMEOUT_MS 20000u

struct caller {
	struct loop loop;
	struct rpc *rpc;
	const char *socket;
	bool over, failed;
	char text[4096]; /* what is answered, or why not */
	const ProtobufCMessageDescriptor *type;
	ProtobufCMessage *answer;
};

static void message(void *owner, const void *bytes, size_t size)
{
	struct caller *caller = owner;

	caller->answer = codec_decode(caller->type, bytes, size);
}

static void done(void *owner, enum rpc_status status, const char *text)
{
	struct caller *caller = owner;

	caller->over = true;
	caller->failed = status != RPC_OK || !caller->answer;
	snprintf(caller->text, sizeof(caller->text), "%s", text);
}

/* NULL: failed; the text says why. Free the answer with codec_free(). */
static void *call(struct caller *caller, const char *path, const ProtobufCMessage *request,
		  const ProtobufCMessageDescriptor *type)
{
	static const struct rpc_receiver receiver = {message, done};
	cleanup(bytes_deinit) struct bytes bytes = {0};
	struct rpc_request *sent;

	caller->over = false;
	caller->failed = true;
	caller->type = type;
	caller->answer = NULL;
	snprintf(caller->text, sizeof(caller->text), "cannot call");
	if (codec_encode(&bytes, request) < 0 ||
	    rpc_request_new(&sent, caller->rpc, caller->socket, path, bytes.data, bytes.size,
			    TIMEOUT_MS, &receiver, caller) < 0)
		return NULL;
	while (!caller->over && loop_step(&caller->loop, -1) >= 0)
		;
	return caller->failed ? NULL : caller->answer;
}

static void enroll(struct caller *caller)
{
	Dra__InfoRequest request = DRA__INFO_REQUEST__INIT;
	Dra__RegistrationStatus status = DRA__REGISTRATION_STATUS__INIT;
	Dra__PluginInfo *info =
		call(caller, REGISTRY "GetInfo", &request.base, &dra__plugin_info__descriptor);

	if (!info)
		return;
	status.plugin_registered = true;
	codec_free(call(caller, REGISTRY "NotifyRegistrationStatus", &status.base,
			&dra__registration_status_response__descriptor));
	if (!caller->failed)
		snprintf(caller->text, sizeof(caller->text), "%s", info->endpoint);
	codec_free(&info->base);
}

static void refused(struct caller *caller, const char *error)
{
	caller->failed = true;
	snprintf(caller->text, sizeof(caller->text), "%s", error);
}

static void prepare(struct caller *caller, Dra__Claim *claim)
{
	Dra__PrepareRequest request = DRA__PREPARE_REQUEST__INIT;

	request.claims = &claim;
	request.n_claims = 1;
	Dra__PrepareResponse *response = call(caller, DRIVER "NodePrepareResources", &request.base,
					      &dra__prepare_response__descriptor);
	const Dra__Prepared *result =
		response && response->n_claims == 1 ? response->claims[0]->result : NULL;
	if (!response)
		return;
	if (!result || strcmp(response->claims[0]->uid, claim->uid) != 0)
		refused(caller, "no answer about the claim");
	else if (*result->error)
		refused(caller, result->error);
	else if (result->n_devices != 1 || result->devices[0]->n_cdi_device_ids != 2)
		refused(caller, "not one device with two names");
	else
		snprintf(caller->text, sizeof(caller->text), "%s %s",
			 result->devices[0]->cdi_device_ids[0],
			 result->devices[0]->cdi_device_ids[1]);
	codec_free(&response->base);
}

static void unprepare(struct caller *caller, Dra__Claim *claim)
{
	Dra__UnprepareRequest request = DRA__UNPREPARE_REQUEST__INIT;

	request.claims = &claim;
	request.n_claims = 1;
	Dra__UnprepareResponse *response =
		call(caller, DRIVER "NodeUnprepareResources", &request.base,
		     &dra__unprepare_response__descriptor);
	if (!response)
		return;
	if (response->n_claims != 1 || !response->claims[0]->result)
		refused(caller, "no answer about the claim");
	else if (*response->claims[0]->result->error)
		refused(caller, response->claims[0]->result->error);
	codec_free(&response->base);
}

static void obey(struct caller *caller, char *line)
{
	char verb[16] = "", namespace_[64] = "", name[256] = "", uid[64] = "";
	Dra__Claim claim = DRA__CLAIM__INIT;

	sscanf(line, "%15s %63s %255s %63s", verb, namespace_, name, uid);
	claim.namespace_ = namespace_;
	claim.name = name;
	claim.uid = uid;
	uint64_t began = loop_now();
	if (strcmp(verb, "register") == 0)
		enroll(caller);
	else if (strcmp(verb, "prepare") == 0)
		prepare(caller, &claim);
	else if (strcmp(verb, "unprepare") == 0)
		unprepare(caller, &claim);
	else
		refused(caller, "no such command");
	printf("%llu %s %s\n", (unsigned long long)((loop_now() - began) / NS_PER_US),
	       caller->failed ? "failed" : "ok", caller->text);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct caller caller = {.socket = argv[1]};
	char line[512];

	log_init("dra-call", LOG_ERROR);
	if (argc != 2 || loop_init(&caller.loop) < 0 || rpc_new(&caller.rpc, &caller.loop) < 0)
		return 2;
	while (fgets(line, sizeof(line), stdin))
		obey(&caller, line);
	rpc_free(caller.rpc);
	loop_deinit(&caller.loop);
	return 0;
}
