/* gRPC over unix sockets, as the kubelet speaks it, on our event loop.
 *
 * gRPC wants a thread that waits in its completion queue. That thread does nothing but hand each
 * completion to the loop; everything else, the callbacks below included, happens in the loop's
 * thread. So nothing here blocks, and a server answers while a request of ours is still under way,
 * which the kubelet's Register needs.
 *
 * Messages are bytes; methods are paths like "/v1beta1.DevicePlugin/Allocate". A call has one
 * request and any number of answers, so unary and server-streaming are the same thing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct loop;
struct rpc;
struct rpc_server;
struct rpc_call;
struct rpc_request;

/* No message is larger, either way; what grpc-go allows by default. */
#define RPC_MESSAGE_MAX (4u << 20)
/* Calls that a server has open at one time; more wait. */
#define RPC_CALLS_MAX 64u
/* The longest path of a socket, its end included. */
#define RPC_PATH_MAX 108u

/* gRPC's own numbers. */
enum rpc_status {
	RPC_OK = 0,
	RPC_CANCELLED = 1,
	RPC_UNKNOWN = 2,
	RPC_INVALID_ARGUMENT = 3,
	RPC_DEADLINE_EXCEEDED = 4,
	RPC_RESOURCE_EXHAUSTED = 8,
	RPC_FAILED_PRECONDITION = 9,
	RPC_UNIMPLEMENTED = 12,
	RPC_INTERNAL = 13,
	RPC_UNAVAILABLE = 14,
};

int rpc_new(struct rpc **out, struct loop *loop);
/* Waits for what gRPC still holds of closed servers and cancelled requests; others must not be
 * left. */
struct rpc *rpc_free(struct rpc *rpc);

/* What a server tells its owner. */
struct rpc_service {
	/* A call came. Answer with rpc_call_send() and rpc_call_finish(), now or later.
	 * @request lives until this returns, @call until ended(). */
	void (*called)(void *owner, struct rpc_call *call, const char *method, const void *request,
		       size_t size);
	/* The call is over: finished, or its peer or the connection went away. */
	void (*ended)(void *owner, struct rpc_call *call);
	/* After rpc_server_close(): nothing is left of the server. May be null. */
	void (*closed)(void *owner);
};

/* Listens on the socket @path at once; replaces a file that is there. -ENAMETOOLONG: @path is. */
int rpc_server_new(struct rpc_server **out, struct rpc *rpc, const char *path,
		   const struct rpc_service *service, void *owner);
/* Ends all calls and stops listening; no called() or ended() any more. Accepts NULL. */
void rpc_server_close(struct rpc_server *server);

/* Sends one message. One that still waits behind another is replaced: a slow peer gets the
 * newest. */
int rpc_call_send(struct rpc_call *call, const void *message, size_t size);
/* Ends the call behind what was sent; only the first counts. @text: one line, may be null. */
void rpc_call_finish(struct rpc_call *call, enum rpc_status status, const char *text);

/* What a request tells its owner. */
struct rpc_receiver {
	void (*message)(void *owner, const void *message, size_t size);
	/* It is over, and the request gone. Not called after rpc_request_cancel(). */
	void (*done)(void *owner, enum rpc_status status, const char *text);
};

/* Calls @method of the server at the socket @path. @timeout_ms: for the whole call, 0: none. */
int rpc_request_new(struct rpc_request **out, struct rpc *rpc, const char *path, const char *method,
		    const void *message, size_t size, unsigned timeout_ms,
		    const struct rpc_receiver *receiver, void *owner);
void rpc_request_cancel(struct rpc_request *request);
