/* A request to a server, on a connection of its own. */
#include "rpc/queue.h"

#include <errno.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>

#include "weir/base.h"
#include "weir/error.h"

struct rpc_request {
	struct rpc *rpc;
	grpc_channel *channel;
	grpc_call *call;
	const struct rpc_receiver *receiver;
	void *owner;
	grpc_metadata_array initial, trailing;
	grpc_byte_buffer *message;
	struct event started, received, finished;
	unsigned pending;
	bool cancelled;
	grpc_status_code status;
	grpc_slice text;
};

/* One event of @request was delivered. The last one frees @request. */
static void request_delivered(void *owner)
{
	struct rpc_request *request = owner;
	struct rpc *rpc = request->rpc;

	if (--request->pending)
		return;
	if (!request->cancelled) {
		char *text = grpc_slice_to_c_string(request->text);
		request->receiver->done(request->owner, (enum rpc_status)request->status, text);
		gpr_free(text);
	}
	rpc_buffer_drop(&request->message);
	grpc_slice_unref(request->text);
	grpc_metadata_array_destroy(&request->initial);
	grpc_metadata_array_destroy(&request->trailing);
	grpc_call_unref(request->call);
	grpc_channel_destroy(request->channel);
	free(request);
	rpc->live--;
}

static void request_receive(struct rpc_request *request)
{
	const grpc_op receive = {.op = GRPC_OP_RECV_MESSAGE,
				 .data.recv_message.recv_message = &request->message};

	rpc_start(request->call, &receive, 1, &request->received, &request->pending);
}

static void request_received(void *owner, bool ok)
{
	struct rpc_request *request = owner;
	grpc_slice bytes;

	/* NULL: there are no more messages. */
	if (ok && request->message) {
		if (request->receiver->message && !request->cancelled &&
		    rpc_buffer_read(request->message, &bytes)) {
			request->receiver->message(request->owner, GRPC_SLICE_START_PTR(bytes),
						   GRPC_SLICE_LENGTH(bytes));
			grpc_slice_unref(bytes);
		}
		rpc_buffer_drop(&request->message);
		request_receive(request);
	}
}

/* Each request has its own connection, so that it does not inherit another one's reconnection
 * delay. */
static grpc_channel *connect_to(const char *address)
{
	grpc_arg arguments[] = {
		rpc_setting(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1),
		rpc_setting(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, RPC_MESSAGE_MAX),
		/* The default would be the percent-encoded path, which grpc-go refuses. */
		{.type = GRPC_ARG_STRING,
		 .key = (char *)GRPC_ARG_DEFAULT_AUTHORITY,
		 .value.string = (char *)"localhost"},
	};
	const grpc_channel_args args = {countof(arguments), arguments};
	grpc_channel_credentials *credentials = grpc_insecure_credentials_create();
	grpc_channel *channel = grpc_channel_create(address, credentials, &args);

	grpc_channel_credentials_release(credentials);
	return channel;
}

static void request_start(struct rpc_request *request, const void *message, size_t size)
{
	grpc_byte_buffer *body = rpc_buffer(message, size);
	const grpc_op opening[] = {
		{.op = GRPC_OP_SEND_INITIAL_METADATA},
		{.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = body},
		{.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
		{.op = GRPC_OP_RECV_INITIAL_METADATA,
		 .data.recv_initial_metadata.recv_initial_metadata = &request->initial},
	};
	const grpc_op status = {
		.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
		.data.recv_status_on_client = {.trailing_metadata = &request->trailing,
					       .status = &request->status,
					       .status_details = &request->text},
	};

	rpc_start(request->call, opening, countof(opening), &request->started, &request->pending);
	rpc_start(request->call, &status, 1, &request->finished, &request->pending);
	request_receive(request);
	grpc_byte_buffer_destroy(body); /* gRPC has its own reference */
}

int rpc_request_new(struct rpc_request **out, struct rpc *rpc, const char *path, const char *method,
		    const void *message, size_t size, unsigned timeout_ms,
		    const struct rpc_receiver *receiver, void *owner)
{
	char address[RPC_ADDRESS_MAX];
	gpr_timespec deadline = gpr_inf_future(GPR_CLOCK_MONOTONIC);

	int r = rpc_address(address, path);
	if (r < 0)
		return r;
	if (size > RPC_MESSAGE_MAX)
		return -EMSGSIZE;
	struct rpc_request *request = calloc(1, sizeof(*request));
	if (!request)
		return error_origin(-ENOMEM);
	request->rpc = rpc;
	request->receiver = receiver;
	request->owner = owner;
	request->started = (struct event){NULL, request_delivered, request};
	request->received = (struct event){request_received, request_delivered, request};
	request->finished = (struct event){NULL, request_delivered, request};
	request->text = grpc_empty_slice();
	grpc_metadata_array_init(&request->initial);
	grpc_metadata_array_init(&request->trailing);
	rpc->live++;

	if (timeout_ms)
		deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
					gpr_time_from_millis(timeout_ms, GPR_TIMESPAN));
	request->channel = connect_to(address);
	grpc_slice path_of_method = grpc_slice_from_copied_string(method);
	request->call = grpc_channel_create_call(request->channel, NULL, GRPC_PROPAGATE_DEFAULTS,
						 rpc->queue, path_of_method, NULL, deadline, NULL);
	grpc_slice_unref(path_of_method);
	request_start(request, message, size);
	*out = request;
	return 0;
}

void rpc_request_cancel(struct rpc_request *request)
{
	if (!request || request->cancelled)
		return;
	request->cancelled = true;
	grpc_call_cancel(request->call, NULL);
}
