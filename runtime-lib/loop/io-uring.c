/* Input and output by io_uring; host functions run in threads. An eventfd, which is always being
 * read, tells of these threads and of io_wake(). */
#include "loop/io.h"
#include "loop/receive-buffers.h"
#include "loop/workers.h"

#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define ENTRIES      256u
#define ENTRIES_MAX  65536u
#define CALL_THREADS 4u

struct engine {
	struct io_engine base;
	struct io_uring ring;
	struct receive_buffers buffers;
	struct workers *workers;
	bool reading; /* the eventfd */
	uint64_t events;
	struct io *failed; /* not submitted */
};

/* Completions that are no operation of the caller. */
#define EVENT  ((void *)1)
#define CANCEL ((void *)2)

static struct engine *engine_of(struct io_engine *base)
{
	return (struct engine *)base;
}

/* NULL: not even after everything was submitted. */
static struct io_uring_sqe *place(struct engine *engine)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&engine->ring);

	if (!sqe && io_uring_submit(&engine->ring) >= 0)
		sqe = io_uring_get_sqe(&engine->ring);
	return sqe;
}

static void read_event(struct engine *engine)
{
	struct io_uring_sqe *sqe = engine->reading ? NULL : place(engine);

	if (!sqe)
		return;
	io_uring_prep_read(sqe, engine->base.event, &engine->events, sizeof(engine->events), 0);
	io_uring_sqe_set_data(sqe, EVENT);
	engine->reading = true;
}

static bool has_operations(struct io_uring *ring)
{
	static const int needed[] = {IORING_OP_OPENAT,      IORING_OP_READ,   IORING_OP_WRITE,
				     IORING_OP_FSYNC,       IORING_OP_ACCEPT, IORING_OP_CONNECT,
				     IORING_OP_RECV,        IORING_OP_SEND,   IORING_OP_POLL_ADD,
				     IORING_OP_ASYNC_CANCEL};
	struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
	bool all = probe != NULL;

	for (size_t i = 0; all && i < sizeof(needed) / sizeof(needed[0]); i++)
		all = io_uring_opcode_supported(probe, needed[i]);
	if (probe)
		io_uring_free_probe(probe);
	return all;
}

/* The kernel would interrupt the loop's thread for each packet that comes. The thread looks all the
 * time anyway, and takes several at once. Before Linux 5.19 it cannot be told so. */
static int make_ring(struct engine *engine, struct io_uring_params *params)
{
	struct io_uring_params quiet = *params;

	quiet.flags |= IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
	int r = io_uring_queue_init_params(ENTRIES, &engine->ring, &quiet);
	if (r != -EINVAL) {
		*params = quiet;
		return r;
	}
	return io_uring_queue_init_params(ENTRIES, &engine->ring, params);
}

static int begin_ring(struct engine *engine, uint32_t most)
{
	struct io_uring_params params = {.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP};

	params.cq_entries = most < ENTRIES_MAX ? most + ENTRIES : ENTRIES_MAX;
	int r = make_ring(engine, &params);
	if (r)
		return r;
	/* Without NODROP a full completion queue would lose operations. */
	if (!(params.features & IORING_FEAT_NODROP) || !has_operations(&engine->ring)) {
		io_uring_queue_exit(&engine->ring);
		return -ENOSYS;
	}
	return 0;
}

static int engine_new(struct io_engine **out, uint32_t most)
{
	struct engine *engine = calloc(1, sizeof(*engine));
	int r = -ENOMEM;

	if (!engine)
		return r;
	engine->base.type = &io_uring_engine;
	engine->base.event = eventfd(0, EFD_CLOEXEC);
	if (engine->base.event < 0) {
		r = -errno;
		goto free_engine;
	}
	if ((r = workers_new(&engine->workers, CALL_THREADS, 0, 0, engine->base.event)))
		goto close_event;
	if ((r = begin_ring(engine, most)))
		goto free_workers;
	if ((r = receive_buffers_init(&engine->buffers, &engine->ring)))
		goto exit_ring;
	engine->base.ahead = engine->buffers.ring != NULL;
	read_event(engine);
	*out = &engine->base;
	return 0;
exit_ring:
	io_uring_queue_exit(&engine->ring);
free_workers:
	workers_free(engine->workers);
close_event:
	close(engine->base.event);
free_engine:
	free(engine);
	return r;
}

static void engine_free(struct io_engine *base)
{
	struct engine *engine = engine_of(base);

	workers_free(engine->workers);
	io_uring_queue_exit(&engine->ring);
	receive_buffers_deinit(&engine->buffers);
	close(engine->base.event);
	free(engine);
}

static void prepare(struct io_uring_sqe *sqe, struct io *io)
{
	uint8_t *rest = (uint8_t *)io->buffer + io->done;
	uint32_t left = (uint32_t)(io->size - io->done);

	switch (io->kind) {
	case IO_OPEN:
		io_uring_prep_openat(sqe, AT_FDCWD, io->buffer, io->flags, io->mode);
		break;
	case IO_READ:
		io_uring_prep_read(sqe, io->fd, io->buffer, (uint32_t)io->size, io->offset);
		break;
	case IO_WRITE:
		io_uring_prep_write(sqe, io->fd, rest, left, io->offset + io->done);
		break;
	case IO_FSYNC:
		io_uring_prep_fsync(sqe, io->fd, 0);
		break;
	case IO_ACCEPT:
		io_uring_prep_accept(sqe, io->fd, NULL, NULL, SOCK_CLOEXEC);
		break;
	case IO_CONNECT:
		io_uring_prep_connect(sqe, io->fd, (struct sockaddr *)&io->address,
				      io->address_size);
		break;
	case IO_RECEIVE:
		io_uring_prep_recv(sqe, io->fd, io->buffer, io->size, io->flags);
		break;
	case IO_RECEIVE_AHEAD:
		io_uring_prep_recv(sqe, io->fd, NULL, io->size, 0);
		/* With the socket's least size of a message, which a receive itself ignores. */
		sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
		sqe->flags |= IOSQE_BUFFER_SELECT;
		sqe->buf_group = RECEIVE_BUFFERS_GROUP;
		break;
	case IO_SEND:
		io_uring_prep_send(sqe, io->fd, rest, left, MSG_NOSIGNAL);
		break;
	case IO_READABLE:
	case IO_READ_CACHED: /* not here, as the next */
	case IO_CALL:
		io_uring_prep_poll_add(sqe, io->fd, POLLIN | POLLRDHUP);
		break;
	}
	io_uring_sqe_set_data(sqe, io);
}

static void put(struct engine *engine, struct io *io)
{
	struct io_uring_sqe *sqe = place(engine);

	if (sqe) {
		prepare(sqe, io);
		return;
	}
	io->result = -EBUSY;
	io->next = engine->failed;
	engine->failed = io;
}

static void engine_submit(struct io_engine *base, struct io *io)
{
	struct engine *engine = engine_of(base);

	io->done = 0;
	if (io->kind == IO_CALL)
		workers_submit(engine->workers, io);
	else
		put(engine, io);
}

static void engine_kick(struct io_engine *base)
{
	struct engine *engine = engine_of(base);

	if (io_uring_sq_ready(&engine->ring))
		io_uring_submit(&engine->ring);
}

/* False: the rest of it was submitted. */
static bool is_complete(struct engine *engine, struct io *io, int32_t result)
{
	bool all = io->kind == IO_WRITE || io->kind == IO_SEND;

	if (result == -EINTR || (all && result > 0 && io->done + (uint32_t)result < io->size)) {
		io->done += result > 0 ? (uint32_t)result : 0;
		put(engine, io);
		return false;
	}
	if (!all)
		io->result = io->kind == IO_READABLE && result > 0 ? 0 : result;
	else if (result > 0)
		io->result = (int64_t)(io->done + (uint32_t)result);
	else
		io->result = io->done ? (int64_t)io->done : result ? result : -EIO;
	if (all && !io->size)
		io->result = 0;
	return true;
}

/* One that nothing came into is idle at once. */
static void take_buffer(struct engine *engine, struct io *io, int32_t result, uint32_t flags)
{
	io->buffer = receive_buffers_of(&engine->buffers, flags);
	if (result <= 0)
		receive_buffers_give(&engine->buffers, io->buffer);
}

static struct io *reap_ring(struct engine *engine)
{
	struct io_uring_cqe *cqe;

	while (io_uring_peek_cqe(&engine->ring, &cqe) == 0) {
		struct io *io = io_uring_cqe_get_data(cqe);
		int32_t result = cqe->res;
		uint32_t flags = cqe->flags;
		io_uring_cqe_seen(&engine->ring, cqe);
		if ((void *)io == EVENT) {
			engine->reading = false;
			read_event(engine);
		} else if ((void *)io != CANCEL) {
			if (io->kind == IO_RECEIVE_AHEAD)
				take_buffer(engine, io, result, flags);
			if (is_complete(engine, io, result))
				return io;
		}
	}
	return NULL;
}

static struct io *engine_reap(struct io_engine *base)
{
	struct engine *engine = engine_of(base);
	struct io *io = engine->failed;

	if (io) {
		engine->failed = io->next;
		return io;
	}
	io = reap_ring(engine);
	return io ? io : workers_reap(engine->workers);
}

static void engine_wait(struct io_engine *base, uint64_t ns)
{
	struct engine *engine = engine_of(base);
	struct __kernel_timespec limit = {.tv_sec = (long long)(ns / 1000000000u),
					  .tv_nsec = (long long)(ns % 1000000000u)};
	struct io_uring_cqe *cqe;

	if (engine->failed || workers_watch(engine->workers))
		return;
	read_event(engine);
	engine_kick(base);
	io_uring_wait_cqe_timeout(&engine->ring, &cqe, ns == UINT64_MAX ? NULL : &limit);
}

static void engine_cancel(struct io_engine *base, struct io *io)
{
	struct engine *engine = engine_of(base);

	if (io->kind == IO_CALL) {
		workers_cancel(engine->workers, io);
		return;
	}
	struct io_uring_sqe *sqe = place(engine);
	if (!sqe)
		return;
	io_uring_prep_cancel(sqe, io, 0);
	io_uring_sqe_set_data(sqe, CANCEL);
	io_uring_submit(&engine->ring);
}

static void engine_give(struct io_engine *base, void *buffer)
{
	receive_buffers_give(&engine_of(base)->buffers, buffer);
}

const struct io_engine_type io_uring_engine = {
	.name = "io_uring",
	.new = engine_new,
	.free = engine_free,
	.submit = engine_submit,
	.kick = engine_kick,
	.reap = engine_reap,
	.wait = engine_wait,
	.cancel = engine_cancel,
	.give = engine_give,
};
