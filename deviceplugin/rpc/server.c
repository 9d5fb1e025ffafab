/* A server and the calls to it. One call object always waits for the next caller. */
#include "rpc/queue.h"

#include <errno.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>

#include "weir/base.h"
#include "weir/error.h"

struct rpc_server {
	struct rpc *rpc;
	grpc_server *server;
	const struct rpc_service *service;
	void *owner;
	unsigned calls;           /* call objects, including @waiting */
	struct rpc_call *waiting; /* waits for the next caller */
	struct event shut_down;
	bool closing, down;
};

struct rpc_call {
	struct rpc_server *server;
	grpc_call *call;
	grpc_call_details details;
	grpc_metadata_array metadata;
	grpc_byte_buffer *request;
	grpc_byte_buffer *sending, *next; /* being sent; the newest message behind it */
	struct event arrived, received, sent, finished, closed;
	unsigned pending; /* events that gRPC will still deliver */
	int cancelled;
	bool announced; /* called() was called */
	bool greeted;   /* initial metadata sent */
	bool finish, finishing, over;
	enum rpc_status status;
	grpc_slice text;
};

static void server_wait(struct rpc_server *server);

static void server_unless_used(struct rpc_server *server)
{
	struct rpc *rpc = server->rpc;

	if (!server->down || server->calls)
		return;
	grpc_server_destroy(server->server);
	if (server->service->closed)
		server->service->closed(server->owner);
	free(server);
	rpc->live--;
}

/* One event of @call was delivered. The last one frees @call. */
static void call_delivered(void *owner)
{
	struct rpc_call *call = owner;
	struct rpc_server *server = call->server;

	if (--call->pending)
		return;
	if (call->announced && !server->closing)
		server->service->ended(server->owner, call);
	rpc_buffer_drop(&call->request);
	rpc_buffer_drop(&call->sending);
	rpc_buffer_drop(&call->next);
	grpc_call_details_destroy(&call->details);
	grpc_metadata_array_destroy(&call->metadata);
	grpc_slice_unref(call->text);
	if (call->call)
		grpc_call_unref(call->call);
	free(call);
	server->calls--;
	server_wait(server);
	server_unless_used(server);
}

/* Sends the newest message, or else the status. */
static void call_flush(struct rpc_call *call)
{
	grpc_op ops[2] = {{.op = GRPC_OP_SEND_INITIAL_METADATA}};
	size_t n = call->greeted ? 0 : 1;

	if (call->over || call->sending || call->finishing)
		return;
	if (call->next) {
		call->sending = take(call->next);
		ops[n++] = (grpc_op){.op = GRPC_OP_SEND_MESSAGE,
				     .data.send_message.send_message = call->sending};
		if (!rpc_start(call->call, ops, n, &call->sent, &call->pending))
			rpc_buffer_drop(&call->sending);
		call->greeted = true;
	} else if (call->finish) {
		ops[n] = (grpc_op){.op = GRPC_OP_SEND_STATUS_FROM_SERVER};
		ops[n].data.send_status_from_server.status = (grpc_status_code)call->status;
		ops[n].data.send_status_from_server.status_details = &call->text;
		rpc_start(call->call, ops, n + 1, &call->finished, &call->pending);
		call->finishing = true;
	}
}

int rpc_call_send(struct rpc_call *call, const void *message, size_t size)
{
	if (size > RPC_MESSAGE_MAX)
		return -EMSGSIZE;
	if (call->over || call->finish)
		return -EPIPE;
	rpc_buffer_drop(&call->next);
	call->next = rpc_buffer(message, size);
	call_flush(call);
	return 0;
}

void rpc_call_finish(struct rpc_call *call, enum rpc_status status, const char *text)
{
	if (call->over || call->finish)
		return;
	call->finish = true;
	call->status = status;
	call->text = grpc_slice_from_copied_string(text ? text : "");
	call_flush(call);
}

static void call_sent(void *owner, bool ok)
{
	struct rpc_call *call = owner;

	(void)ok; /* call_closed() handles a peer that left */
	rpc_buffer_drop(&call->sending);
	call_flush(call);
}

static void call_closed(void *owner, bool ok)
{
	struct rpc_call *call = owner;

	(void)ok;
	call->over = true;
}

static void call_received(void *owner, bool ok)
{
	struct rpc_call *call = owner;
	struct rpc_server *server = call->server;
	grpc_slice bytes;

	if (!ok || server->closing) {
		grpc_call_cancel(call->call, NULL);
	} else if (!call->request || !rpc_buffer_read(call->request, &bytes)) {
		rpc_call_finish(call, RPC_INVALID_ARGUMENT, "no readable request");
	} else {
		char *method = grpc_slice_to_c_string(call->details.method);
		call->announced = true;
		server->service->called(server->owner, call, method, GRPC_SLICE_START_PTR(bytes),
					GRPC_SLICE_LENGTH(bytes));
		gpr_free(method);
		grpc_slice_unref(bytes);
	}
	rpc_buffer_drop(&call->request);
}

static void call_arrived(void *owner, bool ok)
{
	struct rpc_call *call = owner;
	const grpc_op close = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER,
			       .data.recv_close_on_server.cancelled = &call->cancelled};
	const grpc_op receive = {.op = GRPC_OP_RECV_MESSAGE,
				 .data.recv_message.recv_message = &call->request};

	call->server->waiting = NULL;
	if (ok) { /* else the server shuts down */
		server_wait(call->server);
		rpc_start(call->call, &close, 1, &call->closed, &call->pending);
		rpc_start(call->call, &receive, 1, &call->received, &call->pending);
	}
}

/* Makes one call object wait for the next caller, unless RPC_CALLS_MAX are open. */
static void server_wait(struct rpc_server *server)
{
	struct rpc *rpc = server->rpc;

	if (server->closing || server->waiting || server->calls >= RPC_CALLS_MAX)
		return;
	struct rpc_call *call = calloc(1, sizeof(*call));
	if (!call)
		return; /* tried again when a call ends */
	call->server = server;
	call->arrived = (struct event){call_arrived, call_delivered, call};
	call->received = (struct event){call_received, call_delivered, call};
	call->sent = (struct event){call_sent, call_delivered, call};
	call->finished = (struct event){NULL, call_delivered, call};
	call->closed = (struct event){call_closed, call_delivered, call};
	call->text = grpc_empty_slice();
	grpc_call_details_init(&call->details);
	grpc_metadata_array_init(&call->metadata);
	server->calls++;
	server->waiting = call;
	call->pending = 1;
	grpc_server_request_call(server->server, &call->call, &call->details, &call->metadata,
				 rpc->queue, rpc->queue, &call->arrived);
}

static void server_shut_down(void *owner)
{
	struct rpc_server *server = owner;

	server->down = true;
	server_unless_used(server);
}

int rpc_server_new(struct rpc_server **out, struct rpc *rpc, const char *path,
		   const struct rpc_service *service, void *owner)
{
	grpc_arg arguments[] = {
		rpc_setting(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, RPC_MESSAGE_MAX),
		rpc_setting(GRPC_ARG_MAX_CONCURRENT_STREAMS, RPC_CALLS_MAX),
	};
	const grpc_channel_args args = {countof(arguments), arguments};
	char address[RPC_ADDRESS_MAX];

	int r = rpc_address(address, path);
	if (r < 0)
		return r;
	struct rpc_server *server = calloc(1, sizeof(*server));
	if (!server)
		return error_origin(-ENOMEM);
	server->rpc = rpc;
	server->service = service;
	server->owner = owner;
	server->shut_down = (struct event){NULL, server_shut_down, server};
	server->server = grpc_server_create(&args, NULL);
	grpc_server_register_completion_queue(server->server, rpc->queue, NULL);
	rpc->live++;

	grpc_server_credentials *credentials = grpc_insecure_server_credentials_create();
	int bound = grpc_server_add_http2_port(server->server, address, credentials);
	grpc_server_credentials_release(credentials);
	grpc_server_start(server->server);
	if (!bound) {
		static const struct rpc_service nobody;
		server->service = &nobody;
		rpc_server_close(server);
		return -EADDRNOTAVAIL;
	}
	server_wait(server);
	*out = server;
	return 0;
}

void rpc_server_close(struct rpc_server *server)
{
	if (!server || server->closing)
		return;
	server->closing = true;
	grpc_server_shutdown_and_notify(server->server, server->rpc->queue, &server->shut_down);
	grpc_server_cancel_all_calls(server->server);
}
