/* gRPC over unix sockets, as the kubelet speaks it, on our event loop.
 *
 * gRPC needs a thread that waits in its completion queue. This thread only passes each completion
 * to the loop; everything else, including the callbacks below, runs in the loop's thread. So
 * nothing here blocks, and a server can answer while our own request is running, as the kubelet's
 * Register requires.
 *
 * Messages are bytes; methods are paths like "/v1beta1.DevicePlugin/Allocate". A call has one
 * request and any number of answers: unary calls and server streams work alike.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct loop;
struct rpc;
struct rpc_server;
struct rpc_call;
struct rpc_request;

/* The largest message in both directions: grpc-go's default. */
#define RPC_MESSAGE_MAX (4u << 20)
/* Open calls of a server; more calls wait. */
#define RPC_CALLS_MAX 64u
/* The longest path of a socket, with NUL. */
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
/* Waits until gRPC has released closed servers and cancelled requests. There must be no others. */
struct rpc *rpc_free(struct rpc *rpc);

/* A server's calls to its owner. */
struct rpc_service {
	/* A new call. The owner answers with rpc_call_send() and rpc_call_finish(), now or later.
	 * @request is valid until this returns, @call until ended(). */
	void (*called)(void *owner, struct rpc_call *call, const char *method, const void *request,
		       size_t size);
	/* The call is over: finished, or the peer or the connection is gone. */
	void (*ended)(void *owner, struct rpc_call *call);
	/* After rpc_server_close(): the server is freed. May be NULL. */
	void (*closed)(void *owner);
};

/* Listens on the socket @path; replaces an existing file. -ENAMETOOLONG: @path is too long. */
int rpc_server_new(struct rpc_server **out, struct rpc *rpc, const char *path,
		   const struct rpc_service *service, void *owner);
/* Ends all calls and stops listening. No called() or ended() follows. Accepts NULL. */
void rpc_server_close(struct rpc_server *server);

/* Sends one message. It replaces a message that still waits behind another: a slow peer gets only
 * the newest. */
int rpc_call_send(struct rpc_call *call, const void *message, size_t size);
/* Ends the call after the messages sent so far; only the first call counts. @text: one line, may be
 * NULL. */
void rpc_call_finish(struct rpc_call *call, enum rpc_status status, const char *text);

/* A request's calls to its owner. */
struct rpc_receiver {
	/* NULL: messages are ignored. */
	void (*message)(void *owner, const void *message, size_t size);
	/* The request is over and freed. Not called after rpc_request_cancel(). */
	void (*done)(void *owner, enum rpc_status status, const char *text);
};

/* Calls @method of the server at the socket @path. @timeout_ms: for the whole call; 0: no limit. */
int rpc_request_new(struct rpc_request **out, struct rpc *rpc, const char *path, const char *method,
		    const void *message, size_t size, unsigned timeout_ms,
		    const struct rpc_receiver *receiver, void *owner);
void rpc_request_cancel(struct rpc_request *request);
