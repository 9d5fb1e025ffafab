/* Input and output where io_uring is forbidden: a few threads for files, epoll for sockets. */
#include "loop/io.h"
#include "loop/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define THREADS 16u
#define EVENTS  64

/* Operations that wait for one descriptor, the oldest first. */
struct waiting {
	struct io *first;
	bool watched; /* by epoll */
};

struct engine {
	struct io_engine base;
	struct workers *workers;
	int epoll;
	struct waiting *waiting; /* by descriptor */
	size_t waiting_size;
	struct io *done, **done_end;
};

static struct engine *engine_of(struct io_engine *base)
{
	return (struct engine *)base;
}

static void finish(struct engine *engine, struct io *io, int64_t result)
{
	io->result = result;
	io->next = NULL;
	*engine->done_end = io;
	engine->done_end = &io->next;
}

static int begin(struct engine *engine)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = -1};

	engine->base.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	engine->epoll = engine->base.event < 0 ? -1 : epoll_create1(EPOLL_CLOEXEC);
	if (engine->epoll < 0 ||
	    epoll_ctl(engine->epoll, EPOLL_CTL_ADD, engine->base.event, &event) < 0)
		return -errno;
	return workers_new(&engine->workers, THREADS, 0, 0, engine->base.event);
}

static void engine_free(struct io_engine *base)
{
	struct engine *engine = engine_of(base);

	workers_free(engine->workers);
	if (engine->epoll >= 0)
		close(engine->epoll);
	if (engine->base.event >= 0)
		close(engine->base.event);
	free(engine->waiting);
	free(engine);
}

static int engine_new(struct io_engine **out, uint32_t most)
{
	struct engine *engine = calloc(1, sizeof(*engine));
	int r;

	(void)most;
	if (!engine)
		return -ENOMEM;
	engine->base.type = &io_pool_engine;
	engine->done_end = &engine->done;
	engine->epoll = engine->base.event = -1;
	if ((r = begin(engine))) {
		engine_free(&engine->base);
		return r;
	}
	*out = &engine->base;
	return 0;
}

static int64_t connect_again(struct io *io)
{
	int error = 0;
	socklen_t size = sizeof(error);

	if (!io->done) {
		io->done = 1;
		return connect(io->fd, (struct sockaddr *)&io->address, io->address_size);
	}
	if (getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		return -1;
	errno = error;
	return error ? -1 : 0;
}

static int64_t send_more(struct io *io)
{
	const uint8_t *bytes = io->buffer;
	ssize_t n = 0;

	while (io->done < io->size) {
		n = send(io->fd, bytes + io->done, io->size - io->done,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		io->done += (uint64_t)n;
	}
	if (n < 0 && (errno == EAGAIN || !io->done))
		return -1;
	return (int64_t)io->done;
}

static int64_t attempt_once(struct io *io)
{
	switch (io->kind) {
	case IO_ACCEPT:
		return accept4(io->fd, NULL, NULL, SOCK_CLOEXEC);
	case IO_CONNECT:
		return connect_again(io);
	case IO_RECEIVE:
		return recv(io->fd, io->buffer, io->size, io->flags | MSG_DONTWAIT);
	case IO_SEND:
		return send_more(io);
	case IO_READABLE:
		/* A look by recv() would take an error that the receive is to tell. */
		errno = EAGAIN;
		return poll(&(struct pollfd){.fd = io->fd, .events = POLLIN | POLLRDHUP}, 1, 0) > 0
			       ? 0
			       : -1;
	default:
		errno = ENOSYS;
		return -1;
	}
}

/* True: it is finished. */
static bool attempt(struct engine *engine, struct io *io)
{
	int64_t result;

	do
		result = attempt_once(io);
	while (result < 0 && errno == EINTR);
	if (result < 0 && (errno == EINPROGRESS || (errno == EAGAIN && io->kind != IO_CONNECT &&
						    !(io->flags & MSG_DONTWAIT))))
		return false;
	finish(engine, io, result < 0 ? -errno : result);
	return true;
}

static bool make_room(struct engine *engine, int fd)
{
	size_t size = engine->waiting_size ? engine->waiting_size : 64;

	while (size <= (size_t)fd)
		size *= 2;
	if (size == engine->waiting_size)
		return true;
	struct waiting *more = realloc(engine->waiting, size * sizeof(*more));
	if (!more)
		return false;
	for (size_t i = engine->waiting_size; i < size; i++)
		more[i] = (struct waiting){0};
	engine->waiting = more;
	engine->waiting_size = size;
	return true;
}

static uint32_t wanted(const struct waiting *waiting)
{
	uint32_t events = EPOLLONESHOT;

	for (const struct io *io = waiting->first; io; io = io->next)
		events |= io->kind == IO_SEND || io->kind == IO_CONNECT ? EPOLLOUT
									: EPOLLIN | EPOLLRDHUP;
	return events;
}

/* Without operations the descriptor is not watched: it may be closed. */
static void watch(struct engine *engine, int fd)
{
	struct waiting *waiting = &engine->waiting[fd];
	struct epoll_event event = {.events = wanted(waiting), .data.fd = fd};
	int what = !waiting->first    ? EPOLL_CTL_DEL
		   : waiting->watched ? EPOLL_CTL_MOD
				      : EPOLL_CTL_ADD;

	if (what == EPOLL_CTL_DEL && !waiting->watched)
		return;
	int r = epoll_ctl(engine->epoll, what, fd, &event);
	int error = r < 0 ? -errno : 0;
	waiting->watched = waiting->first && !r;
	while (error && waiting->first) {
		struct io *io = waiting->first;
		waiting->first = io->next;
		finish(engine, io, error);
	}
}

static void await(struct engine *engine, struct io *io)
{
	if (!make_room(engine, io->fd)) {
		finish(engine, io, -ENOMEM);
		return;
	}
	struct io **at = &engine->waiting[io->fd].first;
	while (*at)
		at = &(*at)->next;
	io->next = NULL;
	*at = io;
	watch(engine, io->fd);
}

static bool is_of_workers(const struct io *io)
{
	return io->kind == IO_OPEN || io->kind == IO_READ || io->kind == IO_WRITE ||
	       io->kind == IO_FSYNC || io->kind == IO_CALL;
}

static void engine_submit(struct io_engine *base, struct io *io)
{
	struct engine *engine = engine_of(base);

	io->done = 0;
	if (is_of_workers(io)) {
		workers_submit(engine->workers, io);
		return;
	}
	if (io->fd < 0) {
		finish(engine, io, -EBADF);
		return;
	}
	if (io->kind == IO_ACCEPT || io->kind == IO_CONNECT)
		fcntl(io->fd, F_SETFL, fcntl(io->fd, F_GETFL) | O_NONBLOCK);
	if (!attempt(engine, io))
		await(engine, io);
}

static void engine_kick(struct io_engine *base)
{
	(void)base;
}

static void serve(struct engine *engine, int fd)
{
	struct io **at = &engine->waiting[fd].first;

	while (*at) {
		struct io *io = *at, *next = io->next;
		if (attempt(engine, io))
			*at = next;
		else
			at = &io->next;
	}
	watch(engine, fd);
}

static void look(struct engine *engine, int ms)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(engine->epoll, events, EVENTS, ms);

	for (int i = 0; i < n; i++) {
		eventfd_t count;
		if (events[i].data.fd < 0)
			(void)!read(engine->base.event, &count, sizeof(count));
		else
			serve(engine, events[i].data.fd);
	}
}

static struct io *engine_reap(struct io_engine *base)
{
	struct engine *engine = engine_of(base);

	if (!engine->done)
		look(engine, 0);
	struct io *io = engine->done;
	if (!io)
		return workers_reap(engine->workers);
	if (!(engine->done = io->next))
		engine->done_end = &engine->done;
	return io;
}

static void engine_wait(struct io_engine *base, uint64_t ns)
{
	struct engine *engine = engine_of(base);
	uint64_t ms = ns / 1000000u;

	if (engine->done || workers_watch(engine->workers))
		return;
	if (!ms) {
		struct timespec nap = {.tv_nsec = (long)(ns % 1000000u)};
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	}
	look(engine, ns == UINT64_MAX ? -1 : ms > 60000 ? 60000 : (int)ms);
}

static void engine_cancel(struct io_engine *base, struct io *io)
{
	struct engine *engine = engine_of(base);

	if (is_of_workers(io)) {
		workers_cancel(engine->workers, io);
		return;
	}
	if (io->fd < 0 || (size_t)io->fd >= engine->waiting_size)
		return;
	for (struct io **at = &engine->waiting[io->fd].first; *at; at = &(*at)->next) {
		if (*at != io)
			continue;
		*at = io->next;
		finish(engine, io, -ECANCELED);
		watch(engine, io->fd);
		return;
	}
}

const struct io_engine_type io_pool_engine = {
	.name = "pool",
	.new = engine_new,
	.free = engine_free,
	.submit = engine_submit,
	.kick = engine_kick,
	.reap = engine_reap,
	.wait = engine_wait,
	.cancel = engine_cancel,
};
