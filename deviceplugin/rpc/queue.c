/* gRPC's thread appends completions to a list and wakes the loop; the two threads share only this
 * list. */
#include "rpc/queue.h"

#include <errno.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/support/log.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "weir/base.h"
#include "weir/error.h"
#include "weir/log.h"

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

grpc_byte_buffer *rpc_buffer(const void *bytes, size_t size)
{
	grpc_slice slice = grpc_slice_from_copied_buffer(bytes, size);
	grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);

	grpc_slice_unref(slice);
	return buffer;
}

void rpc_buffer_drop(grpc_byte_buffer **buffer)
{
	if (*buffer)
		grpc_byte_buffer_destroy(*buffer);
	*buffer = NULL;
}

bool rpc_buffer_read(grpc_byte_buffer *buffer, grpc_slice *out)
{
	grpc_byte_buffer_reader reader;

	if (!grpc_byte_buffer_reader_init(&reader, buffer))
		return false;
	*out = grpc_byte_buffer_reader_readall(&reader);
	grpc_byte_buffer_reader_destroy(&reader);
	return true;
}

int rpc_address(char out[RPC_ADDRESS_MAX], const char *path)
{
	if (strlen(path) >= RPC_PATH_MAX)
		return -ENAMETOOLONG;
	snprintf(out, RPC_ADDRESS_MAX, "unix:%s", path);
	return 0;
}

grpc_arg rpc_setting(const char *key, int value)
{
	return (grpc_arg){.type = GRPC_ARG_INTEGER, .key = (char *)key, .value.integer = value};
}

bool rpc_start(grpc_call *call, const grpc_op *ops, size_t n, struct event *event,
	       unsigned *pending)
{
	if (grpc_call_start_batch(call, ops, n, event, NULL) != GRPC_CALL_OK)
		return false;
	++*pending;
	return true;
}
