/* The only file that knows gRPC's C core.
 *
 * A completion is a struct event, embedded in the object that waits for it; its address is gRPC's
 * tag. gRPC must return every tag before the object may be freed. So calls and requests count their
 * pending batches and free themselves after the last one. gRPC's thread appends completions to a
 * list and wakes the loop; the two threads share only this list.
 */
#include "rpc.h"

#include <errno.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <grpc/support/log.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"
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

static void *run(void *argument)
{
	struct rpc *rpc = argument;
	const gpr_timespec forever = gpr_inf_future(GPR_CLOCK_REALTIME);

	for (;;) {
		grpc_event completion = grpc_completion_queue_next(rpc->queue, forever, NULL);
		if (completion.type == GRPC_QUEUE_SHUTDOWN)
			return NULL;
		if (completion.type != GRPC_OP_COMPLETE)
			continue;
		struct event *event = completion.tag;
		event->ok = completion.success;
		event->next = NULL;
		pthread_mutex_lock(&rpc->lock);
		*rpc->last = event;
		rpc->last = &event->next;
		pthread_mutex_unlock(&rpc->lock);
		eventfd_write(rpc->wake.fd, 1);
	}
}

static void drain(struct rpc *rpc)
{
	eventfd_t ignored;

	if (eventfd_read(rpc->wake.fd, &ignored) < 0)
		return;
	pthread_mutex_lock(&rpc->lock);
	struct event *event = take(rpc->first);
	rpc->last = &rpc->first;
	pthread_mutex_unlock(&rpc->lock);
	while (event) {
		struct event *next = event->next; /* the event's object may be freed */
		if (event->happened)
			event->happened(event->owner, event->ok);
		event->delivered(event->owner);
		event = next;
	}
}

static void woken(struct loop_io *io)
{
	drain(container_of(io, struct rpc, wake));
}

static void log_grpc(gpr_log_func_args *args)
{
	if (args->severity == GPR_LOG_SEVERITY_ERROR)
		log_warning("grpc: %s", args->message);
	else
		log_debug("grpc: %s", args->message);
}

int rpc_new(struct rpc **out, struct loop *loop)
{
	struct rpc *rpc = calloc(1, sizeof(*rpc));
	if (!rpc)
		return error_origin(-ENOMEM);
	rpc->last = &rpc->first;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int r = fd < 0 ? -errno : loop_io_init(&rpc->wake, loop, fd, EPOLLIN, woken);
	if (r < 0) {
		closep(&fd);
		free(rpc);
		return error_origin(r);
	}

	gpr_set_log_function(log_grpc);
	grpc_init();
	rpc->queue = grpc_completion_queue_create_for_next(NULL);
	pthread_mutex_init(&rpc->lock, NULL);
	r = pthread_create(&rpc->thread, NULL, run, rpc);
	rpc->running = !r;
	if (r) {
		rpc_free(rpc);
		return error_origin(-r);
	}
	*out = rpc;
	return 0;
}

struct rpc *rpc_free(struct rpc *rpc)
{
	if (!rpc)
		return NULL;
	int fd = rpc->wake.fd;
	while (rpc->live) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		poll(&ready, 1, -1);
		drain(rpc);
	}
	grpc_completion_queue_shutdown(rpc->queue);
	if (rpc->running)
		pthread_join(rpc->thread, NULL);
	grpc_completion_queue_destroy(rpc->queue);
	grpc_shutdown();
	pthread_mutex_destroy(&rpc->lock);
	loop_io_deinit(&rpc->wake);
	close(fd);
	free(rpc);
	return NULL;
}

static grpc_byte_buffer *buffer_from(const void *bytes, size_t size)
{
	grpc_slice slice = grpc_slice_from_copied_buffer(bytes, size);
	grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);

	grpc_slice_unref(slice);
	return buffer;
}

static void buffer_drop(grpc_byte_buffer **buffer)
{
	if (*buffer)
		grpc_byte_buffer_destroy(*buffer);
	*buffer = NULL;
}

/* Copies @buffer into one slice, which the caller unrefs. False: @buffer is corrupt. */
static bool buffer_read(grpc_byte_buffer *buffer, grpc_slice *out)
{
	grpc_byte_buffer_reader reader;

	if (!grpc_byte_buffer_reader_init(&reader, buffer))
		return false;
	*out = grpc_byte_buffer_reader_readall(&reader);
	grpc_byte_buffer_reader_destroy(&reader);
	return true;
}

static int address_of(char *out, size_t size, const char *path)
{
	if (strlen(path) >= RPC_PATH_MAX)
		return -ENAMETOOLONG;
	snprintf(out, size, "unix:%s", path);
	return 0;
}

static grpc_arg argument(const char *key, int value)
{
	return (grpc_arg){.type = GRPC_ARG_INTEGER, .key = (char *)key, .value.integer = value};
}

/* Starts a batch of @n operations that completes with @event, and counts it in @pending. */
static bool start(grpc_call *call, const grpc_op *ops, size_t n, struct event *event,
		  unsigned *pending)
{
	if (grpc_call_start_batch(call, ops, n, event, NULL) != GRPC_CALL_OK)
		return false;
	++*pending;
	return true;
}

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
	buffer_drop(&call->request);
	buffer_drop(&call->sending);
	buffer_drop(&call->next);
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
		if (!start(call->call, ops, n, &call->sent, &call->pending))
			buffer_drop(&call->sending);
		call->greeted = true;
	} else if (call->finish) {
		ops[n] = (grpc_op){.op = GRPC_OP_SEND_STATUS_FROM_SERVER};
		ops[n].data.send_status_from_server.status = (grpc_status_code)call->status;
		ops[n].data.send_status_from_server.status_details = &call->text;
		start(call->call, ops, n + 1, &call->finished, &call->pending);
		call->finishing = true;
	}
}

int rpc_call_send(struct rpc_call *call, const void *message, size_t size)
{
	if (size > RPC_MESSAGE_MAX)
		return -EMSGSIZE;
	if (call->over || call->finish)
		return -EPIPE;
	buffer_drop(&call->next);
	call->next = buffer_from(message, size);
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
	buffer_drop(&call->sending);
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
	} else if (!call->request || !buffer_read(call->request, &bytes)) {
		rpc_call_finish(call, RPC_INVALID_ARGUMENT, "no readable request");
	} else {
		char *method = grpc_slice_to_c_string(call->details.method);
		call->announced = true;
		server->service->called(server->owner, call, method, GRPC_SLICE_START_PTR(bytes),
					GRPC_SLICE_LENGTH(bytes));
		gpr_free(method);
		grpc_slice_unref(bytes);
	}
	buffer_drop(&call->request);
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
		start(call->call, &close, 1, &call->closed, &call->pending);
		start(call->call, &receive, 1, &call->received, &call->pending);
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
		argument(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, RPC_MESSAGE_MAX),
		argument(GRPC_ARG_MAX_CONCURRENT_STREAMS, RPC_CALLS_MAX),
	};
	const grpc_channel_args args = {countof(arguments), arguments};
	char address[RPC_PATH_MAX + 8];

	int r = address_of(address, sizeof(address), path);
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
	buffer_drop(&request->message);
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

	start(request->call, &receive, 1, &request->received, &request->pending);
}

static void request_received(void *owner, bool ok)
{
	struct rpc_request *request = owner;
	grpc_slice bytes;

	/* NULL: there are no more messages. */
	if (ok && request->message) {
		if (request->receiver->message && !request->cancelled &&
		    buffer_read(request->message, &bytes)) {
			request->receiver->message(request->owner, GRPC_SLICE_START_PTR(bytes),
						   GRPC_SLICE_LENGTH(bytes));
			grpc_slice_unref(bytes);
		}
		buffer_drop(&request->message);
		request_receive(request);
	}
}

/* Each request has its own connection, so that it does not inherit another one's reconnection
 * delay. */
static grpc_channel *connect_to(const char *address)
{
	grpc_arg arguments[] = {
		argument(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1),
		argument(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, RPC_MESSAGE_MAX),
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
	grpc_byte_buffer *body = buffer_from(message, size);
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

	start(request->call, opening, countof(opening), &request->started, &request->pending);
	start(request->call, &status, 1, &request->finished, &request->pending);
	request_receive(request);
	grpc_byte_buffer_destroy(body); /* gRPC has its own reference */
}

int rpc_request_new(struct rpc_request **out, struct rpc *rpc, const char *path, const char *method,
		    const void *message, size_t size, unsigned timeout_ms,
		    const struct rpc_receiver *receiver, void *owner)
{
	char address[RPC_PATH_MAX + 8];
	gpr_timespec deadline = gpr_inf_future(GPR_CLOCK_MONOTONIC);

	int r = address_of(address, sizeof(address), path);
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
