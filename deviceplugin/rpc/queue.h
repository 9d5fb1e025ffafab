/* gRPC's completion queue and its thread, and what servers and requests need of gRPC besides.
 *
 * A completion is a struct event, embedded in the object that waits for it; its address is gRPC's
 * tag. gRPC must return every tag before the object may be freed. So calls and requests count their
 * pending batches and free themselves after the last one. */
#pragma once

#include "rpc/rpc.h"

#include <grpc/grpc.h>
#include <pthread.h>
#include <stdbool.h>

#include "weir/loop.h"

struct event {
	void (*happened)(void *owner, bool ok); /* NULL: nothing to do */
	void (*delivered)(void *owner);         /* then; may free @owner */
	void *owner;                            /* the object that has this event */
	bool ok;
	struct event *next;
};

struct rpc {
	grpc_completion_queue *queue;
	struct loop_io wake; /* an eventfd */
	pthread_t thread;
	bool running;
	pthread_mutex_t lock;
	struct event *first, **last; /* under the lock: completions, oldest first */
	unsigned live;               /* servers and requests that gRPC still uses */
};

/* A buffer with a copy of @bytes. */
grpc_byte_buffer *rpc_buffer(const void *bytes, size_t size);
/* Destroys it and sets it to NULL. NULL is fine. */
void rpc_buffer_drop(grpc_byte_buffer **buffer);
/* Copies @buffer into one slice, which the caller unrefs. False: @buffer is corrupt. */
bool rpc_buffer_read(grpc_byte_buffer *buffer, grpc_slice *out);

/* Room for the address of a socket. */
#define RPC_ADDRESS_MAX (RPC_PATH_MAX + sizeof("unix:"))

/* The socket @path in gRPC's spelling. -ENAMETOOLONG: @path is too long. */
int rpc_address(char out[RPC_ADDRESS_MAX], const char *path);

/* A channel's or server's setting. */
grpc_arg rpc_setting(const char *key, int value);

/* Starts a batch of @n operations that completes with @event, and counts it in @pending. */
bool rpc_start(grpc_call *call, const grpc_op *ops, size_t n, struct event *event,
	       unsigned *pending);
