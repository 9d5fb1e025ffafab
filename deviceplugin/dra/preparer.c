#include "dra/preparer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "config.h"
#include "dra-v1.pb-c.h"
#include "dra/claim-cdi.h"
#include "dra/claim-parse.h"
#include "dra/ledger.h"
#include "dra/offer.h"
#include "dra/reply.h"
#include "inventory.h"
#include "weir/api-client.h"
#include "weir/base.h"
#include "weir/log.h"

#define CLAIMS_PER_CALL 256u /* more than the kubelet asks for */

/* A claim of a call that is read from the API server. */
struct wanted {
	struct prepare_call *owner;
	Dra__PreparedClaim *answer;
	char *name; /* NAMESPACE/NAME, for messages */
};

struct prepare_call {
	struct prepare_call *prev, *next;
	struct preparer *preparer;
	struct rpc_call *call; /* NULL: over */
	Dra__PrepareResponse *response;
	size_t n, waiting;
	struct wanted wanted[];
};

static void refuse(struct wanted *wanted, const char *error)
{
	Dra__Prepared *result = wanted->answer->result;
	char *text = strdup(error);

	log_limited(LOG_WARNING, 1, "claim %s: %s", wanted->name, error);
	/* An answer without devices and error would start containers without a GPU. */
	if (text)
		result->error = text;
	else
		codec_free(&take(wanted->owner->response)->base);
}

/* False: no memory. */
static bool name_ids(Dra__Device *device, const char ids[2][CLAIM_CDI_MAX])
{
	device->cdi_device_ids = calloc(2, sizeof(char *));
	for (size_t i = 0; device->cdi_device_ids && i < 2; i++)
		if ((device->cdi_device_ids[i] = strdup(ids[i])))
			device->n_cdi_device_ids++;
	return device->n_cdi_device_ids == 2;
}

/* Replaces protobuf-c's empty string by a copy. */
static bool set(char **field, const char *text)
{
	char *copied = strdup(text);

	if (copied)
		*field = copied;
	return copied;
}

static bool fill_device(Dra__Device *out, const struct preparer *preparer,
			const struct claim_device *device, const struct gpu *gpu)
{
	char ids[2][CLAIM_CDI_MAX];

	claim_cdi_ids(ids, preparer->config, gpu, offer_is_whole(device));
	out->request_names = calloc(1, sizeof(char *));
	if (!out->request_names || !(out->request_names[0] = strdup(device->request)))
		return false;
	out->n_request_names = 1;
	return set(&out->pool_name, preparer->config->dra.node) &&
	       set(&out->device_name, device->device) && set(&out->share_id, device->share_id) &&
	       name_ids(out, ids);
}

/* Answers with the devices of a prepared claim. */
static void grant(struct wanted *wanted, const struct claim *claim)
{
	const struct preparer *preparer = wanted->owner->preparer;
	Dra__Prepared *result = wanted->answer->result;

	result->devices = calloc(claim->n, sizeof(*result->devices));
	for (size_t i = 0; i < claim->n; i++) {
		int at = offer_find(preparer->inventory, claim->devices[i].device);
		Dra__Device *device = at < 0 ? NULL : codec_new(&dra__device__descriptor);
		if (at < 0) {
			refuse(wanted, "its GPU is not on this node");
			return;
		}
		if (result->devices && device)
			result->devices[result->n_devices++] = device;
		else
			codec_free(device ? &device->base : NULL);
		if (!result->devices || !device ||
		    !fill_device(device, preparer, &claim->devices[i],
				 &preparer->inventory->gpus[at])) {
			refuse(wanted, "out of memory");
			return;
		}
	}
}

static void prepare_claim(struct wanted *wanted, const char *text, size_t size)
{
	struct preparer *preparer = wanted->owner->preparer;
	struct ledger *ledger = preparer->ledger;
	const char *uid = wanted->answer->uid;
	char error[DRA_ERROR_MAX];
	const struct claim *held = claims_find(&ledger->claims, uid);

	if (!held && !preparer->ready) {
		refuse(wanted, "the kubelet has not said yet which shares pods have");
		return;
	}
	if (!held) {
		cleanup(freep) struct claim *claim =
			claim_parse(text, size, uid, preparer->config->dra.node, error);
		if (!claim || !offer_take(preparer->config, preparer->inventory, &ledger->claims,
					  claim, error)) {
			refuse(wanted, error);
			return;
		}
		int r = ledger_add(ledger, take(claim));
		if (r < 0) {
			snprintf(error, sizeof(error), "%s: %s", ledger->path, strerror(-r));
			refuse(wanted, error);
			return;
		}
		held = claims_find(&ledger->claims, uid);
		log_info("prepared claim %s of pod %s: %u shares and %llu MiB of %s%s",
			 wanted->name, held->pod, held->devices[0].shares,
			 (unsigned long long)(held->devices[0].memory >> 20),
			 held->devices[0].device, held->n > 1 ? " and more" : "");
	}
	grant(wanted, held);
}

static void free_call(struct prepare_call *call)
{
	for (size_t i = 0; i < call->n; i++)
		free(call->wanted[i].name);
	codec_free(call->response ? &call->response->base : NULL);
	free(call);
}

static void finish(struct prepare_call *call)
{
	if (call->call)
		reply_with(call->call, call->response ? &call->response->base : NULL);
	DL_DELETE(call->preparer->calls, call);
	free_call(call);
}

static void got_claim(void *userdata, long status, const char *body, size_t size)
{
	struct wanted *wanted = userdata;
	struct prepare_call *call = wanted->owner;
	char error[DRA_ERROR_MAX];

	if (call->response && status == 200) {
		prepare_claim(wanted, body, size);
	} else if (call->response) {
		snprintf(error, sizeof(error), "%s: HTTP status %ld %.200s",
			 status ? "the API server does not show the claim"
				: "the API server does not answer",
			 status, body);
		refuse(wanted, error);
	}
	if (--call->waiting == 0)
		finish(call);
}

/* Only what a name may contain, so that it can stand in a path. */
static bool is_name(const char *text)
{
	return *text && strlen(text) < 254 &&
	       !text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789.-")];
}

char *preparer_path(const char *namespace_, const char *name)
{
	char *path;

	if (!is_name(namespace_) || !is_name(name) ||
	    asprintf(&path, "/apis/resource.k8s.io/v1/namespaces/%s/resourceclaims/%s", namespace_,
		     name) < 0)
		return NULL;
	return path;
}

static void start(struct wanted *wanted, const Dra__Claim *claim)
{
	struct preparer *preparer = wanted->owner->preparer;
	const struct claim *held = claims_find(&preparer->ledger->claims, claim->uid);
	cleanup(freep) char *path = NULL;

	if (held) {
		grant(wanted, held);
		return;
	}
	path = preparer_path(claim->namespace_, claim->name);
	if (path && api_client_send(preparer->api, "GET", path, NULL, got_claim, wanted) == 0)
		wanted->owner->waiting++;
	else
		refuse(wanted, path ? "out of memory" : "not a claim's name");
}

/* An answer for @claim, empty yet. False: no memory. */
static bool add(struct prepare_call *call, const Dra__Claim *claim)
{
	struct wanted *wanted = &call->wanted[call->n];
	Dra__PreparedClaim *answer = codec_new(&dra__prepared_claim__descriptor);

	if (!answer)
		return false;
	call->response->claims[call->response->n_claims++] = answer;
	*wanted = (struct wanted){.owner = call, .answer = answer};
	call->n++;
	if (asprintf(&wanted->name, "%.64s/%.254s", claim->namespace_, claim->name) < 0)
		wanted->name = NULL;
	answer->result = codec_new(&dra__prepared__descriptor);
	return wanted->name && answer->result && set(&answer->uid, claim->uid);
}

static struct prepare_call *new_call(struct preparer *preparer, struct rpc_call *call,
				     const Dra__PrepareRequest *request)
{
	struct prepare_call *new =
		calloc(1, sizeof(*new) + request->n_claims * sizeof(new->wanted[0]));

	if (!new)
		return NULL;
	new->preparer = preparer;
	new->call = call;
	new->response = codec_new(&dra__prepare_response__descriptor);
	bool good = new->response &&
		    (new->response->claims = calloc(request->n_claims + 1, sizeof(void *)));
	for (size_t i = 0; good && i < request->n_claims; i++)
		good = add(new, request->claims[i]);
	if (!good)
		free_call(take(new));
	return new;
}

void preparer_prepare(struct preparer *preparer, struct rpc_call *call,
		      const ProtobufCMessage *message)
{
	const Dra__PrepareRequest *request = (const Dra__PrepareRequest *)message;
	struct prepare_call *new =
		request->n_claims > CLAIMS_PER_CALL ? NULL : new_call(preparer, call, request);
	char error[DRA_ERROR_MAX];

	if (!new) {
		rpc_call_finish(call, RPC_RESOURCE_EXHAUSTED, "out of memory, or too many claims");
		return;
	}
	DL_APPEND(preparer->calls, new);
	new->waiting = 1; /* until all have started */
	bool named = claim_cdi_publish(preparer->config, preparer->driver, preparer->inventory,
				       error, sizeof(error));
	for (size_t i = 0; i < new->n &&new->response; i++) {
		if (named)
			start(&new->wanted[i], request->claims[i]);
		else
			refuse(&new->wanted[i], error);
	}
	if (--new->waiting == 0)
		finish(new);
}

static bool unprepare(struct preparer *preparer, Dra__UnprepareResponse *response,
		      const Dra__Claim *claim)
{
	Dra__UnpreparedClaim *answer = codec_new(&dra__unprepared_claim__descriptor);

	if (!answer)
		return false;
	response->claims[response->n_claims++] = answer;
	answer->result = codec_new(&dra__unprepared__descriptor);
	if (!answer->result || !set(&answer->uid, claim->uid))
		return false;
	int r = ledger_remove(preparer->ledger, claim->uid);
	if (r == 0)
		log_info("unprepared claim %s/%s", claim->namespace_, claim->name);
	return r == 0 || set(&answer->result->error, strerror(-r));
}

void preparer_unprepare(struct preparer *preparer, struct rpc_call *call,
			const ProtobufCMessage *message)
{
	const Dra__UnprepareRequest *request = (const Dra__UnprepareRequest *)message;
	Dra__UnprepareResponse *response = codec_new(&dra__unprepare_response__descriptor);
	bool good = response && (response->claims = calloc(request->n_claims + 1, sizeof(void *)));

	for (size_t i = 0; good && i < request->n_claims; i++)
		good = unprepare(preparer, response, request->claims[i]);
	reply_with(call, good ? &response->base : NULL);
	codec_free(response ? &response->base : NULL);
}

void preparer_ended(struct preparer *preparer, const struct rpc_call *call)
{
	for (struct prepare_call *one = preparer->calls; one; one = one->next)
		if (!call || one->call == call)
			one->call = NULL;
}

void preparer_deinit(struct preparer *preparer)
{
	while (preparer->calls) {
		struct prepare_call *call = preparer->calls;
		DL_DELETE(preparer->calls, call);
		free_call(call);
	}
}
