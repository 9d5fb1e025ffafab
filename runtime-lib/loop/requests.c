/* What each kind of request does. */
#include "loop/address.h"
#include "loop/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The kernel may change its text at any time, the NUL behind it too. */
struct text {
	char text[WEIR_LOOP_INLINE];
};

static void copy_text(struct text *out, const struct weir_loop *loop, const struct slot *slot)
{
	memcpy(out->text, rings_data(&loop->rings, slot_number(loop, slot)), slot->request.size);
	out->text[slot->request.size] = 0;
}

static void finish_plain(struct io *io)
{
	loop_answer(loop_of(io), slot_of(io), io->result);
}

/* -1: there is none. O_NONBLOCK as in start_open(). */
static int open_direct(int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int flags = fcntl(fd, F_GETFL);
	return flags < 0 ? -1 : open(path, (flags & O_ACCMODE) | O_DIRECT | O_CLOEXEC | O_NONBLOCK);
}

/* The library takes a while to start, so only programs that ask for such files wait for it. */
static void make_direct(struct weir_loop *loop, struct handle *handle)
{
	const char *name = loop->options.cufile ? loop->options.cufile : "libcufile.so.0";

	handle->direct = open_direct(handle->fd);
	if (handle->direct < 0)
		return;
	if (!loop->cufile_tried)
		cufile_init(&loop->cufile, name);
	loop->cufile_tried = true;
	handle->gds = cufile_add(&loop->cufile, handle->direct);
}

static void finish_open(struct io *io)
{
	struct weir_loop *loop = loop_of(io);
	struct slot *slot = slot_of(io);
	int fd = (int)io->result;

	if (io->result < 0) {
		loop_answer(loop, slot, io->result);
		return;
	}
	int64_t number = handles_add(&loop->handles, HANDLE_FILE, fd);
	if (number < 0)
		close(fd);
	else if ((int)slot->request.extra & O_DIRECT)
		make_direct(loop, &loop->handles.table[number]);
	loop_answer(loop, slot, number);
	/* The first reads come soon. Later ones find readers as the reads before have left them. */
	if (!loop->opened)
		workers_wake(loop->readers);
	loop->opened = true;
}

/* O_NONBLOCK: a FIFO without a partner must not keep a thread for ever. */
static void start_open(struct weir_loop *loop, struct slot *slot)
{
	int flags = (int)slot->request.extra & ~(O_DIRECT | O_APPEND);

	slot->io.kind = IO_OPEN;
	slot->io.buffer = rings_data(&loop->rings, slot_number(loop, slot));
	slot->io.flags = flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	slot->io.mode = (unsigned)(slot->request.extra >> 32) & 07777;
	slot->io.finish = finish_open;
	loop_submit(loop, &slot->io);
}

static void start_close(struct weir_loop *loop, struct slot *slot)
{
	struct handle *handle = slot->handle;

	slot->handle = NULL;
	if (handle->kind == HANDLE_FILE)
		handles_close(&loop->handles, handle);
	else
		network_close(loop, handle);
	handles_unuse(&loop->handles, handle);
	loop_answer(loop, slot, 0);
}

static void start_transfer(struct weir_loop *loop, struct slot *slot)
{
	transfer_begin(loop, slot, 0);
}

static void start_fsync(struct weir_loop *loop, struct slot *slot)
{
	slot->io.kind = IO_FSYNC;
	slot->io.fd = slot->handle->fd;
	slot->io.finish = finish_plain;
	loop_submit(loop, &slot->io);
}

static void start_size(struct weir_loop *loop, struct slot *slot)
{
	struct stat stat;
	int r = fstat(slot->handle->fd, &stat) < 0 ? -errno : 0;

	loop->rings.values[slot_number(loop, slot)] = r ? 0 : (uint64_t)stat.st_size;
	loop_answer(loop, slot, r);
}

static void start_listen(struct weir_loop *loop, struct slot *slot)
{
	struct text text;
	uint16_t port = 0;

	int backlog = (int)(uint32_t)slot->request.extra, least = (int)(slot->request.extra >> 32);

	copy_text(&text, loop, slot);
	int fd = address_listen(text.text, backlog, least, &port);
	int64_t number = fd < 0 ? fd : handles_add(&loop->handles, HANDLE_LISTENER, fd);

	if (fd >= 0 && number < 0)
		close(fd);
	if (number >= 0)
		loop->handles.table[number].port = port;
	loop_answer(loop, slot, number);
}

static void finish_accept(struct io *io)
{
	struct weir_loop *loop = loop_of(io);

	loop_answer(loop, slot_of(io),
		    io->result < 0 ? io->result : network_add(loop, (int)io->result, HANDLE_NONE));
}

static void start_accept(struct weir_loop *loop, struct slot *slot)
{
	slot->io.kind = IO_ACCEPT;
	slot->io.fd = slot->handle->fd;
	slot->io.flags = 0;
	slot->io.finish = finish_accept;
	loop_submit(loop, &slot->io);
}

static void finish_connect(struct io *io)
{
	struct weir_loop *loop = loop_of(io);
	int64_t result = io->result;

	if (result < 0)
		close(io->fd);
	else
		result = network_add(loop, io->fd, HANDLE_NONE);
	loop_answer(loop, slot_of(io), result);
}

static void start_connect(struct weir_loop *loop, struct slot *slot)
{
	struct text text;
	struct io *io = &slot->io;

	copy_text(&text, loop, slot);
	int r = address_parse(text.text, &io->address, &io->address_size);

	if (!r) {
		io->fd = socket(io->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		r = io->fd < 0 ? -errno : 0;
	}
	if (r) {
		loop_answer(loop, slot, r);
		return;
	}
	io->kind = IO_CONNECT;
	io->flags = 0;
	io->finish = finish_connect;
	loop_submit(loop, io);
}

static void start_receive_any(struct weir_loop *loop, struct slot *slot)
{
	network_ask(loop, slot);
}

static void start_again(struct weir_loop *loop, struct slot *slot)
{
	network_again(loop, slot->handle);
	loop_answer(loop, slot, 0);
}

static void start_timer(struct weir_loop *loop, struct slot *slot)
{
	uint64_t now = loop_now(), ns = slot->request.extra;

	timers_add(loop, slot, ns < UINT64_MAX - now ? now + ns : UINT64_MAX - 1);
}

static int64_t run_call(struct io *io)
{
	struct weir_loop *loop = loop_of(io);
	struct slot *slot = slot_of(io);
	int64_t n = loop->options.functions[slot->request.extra](loop->options.user, io->buffer,
								 slot->request.size);

	return n > WEIR_LOOP_INLINE ? -EMSGSIZE : n;
}

static void start_call(struct weir_loop *loop, struct slot *slot)
{
	if (slot->request.extra >= loop->options.n_functions) {
		loop_answer(loop, slot, -ENOSYS);
		return;
	}
	slot->io.kind = IO_CALL;
	slot->io.buffer = rings_data(&loop->rings, slot_number(loop, slot));
	slot->io.run = run_call;
	slot->io.finish = finish_plain;
	loop_submit(loop, &slot->io);
}

static const struct request_kind {
	void (*start)(struct weir_loop *loop, struct slot *slot);
	enum handle_kind handle; /* that it is about; HANDLE_FREE: none */
	enum waits waits;
} kinds[WEIR_LOOP_OPS] = {
	[WEIR_LOOP_OPEN] = {start_open, HANDLE_FREE, WAITS_FILE},
	[WEIR_LOOP_CLOSE] = {start_close, HANDLE_FREE, WAITS_FILE},
	[WEIR_LOOP_READ] = {start_transfer, HANDLE_FILE, WAITS_FILE},
	[WEIR_LOOP_WRITE] = {start_transfer, HANDLE_FILE, WAITS_FILE},
	[WEIR_LOOP_FSYNC] = {start_fsync, HANDLE_FILE, WAITS_FILE},
	[WEIR_LOOP_SIZE] = {start_size, HANDLE_FILE, WAITS_FILE},
	[WEIR_LOOP_LISTEN] = {start_listen, HANDLE_FREE, WAITS_NET},
	[WEIR_LOOP_ACCEPT] = {start_accept, HANDLE_LISTENER, WAITS_NET},
	[WEIR_LOOP_CONNECT] = {start_connect, HANDLE_FREE, WAITS_NET},
	[WEIR_LOOP_RECEIVE] = {start_transfer, HANDLE_CONNECTION, WAITS_NET},
	[WEIR_LOOP_SEND] = {start_transfer, HANDLE_CONNECTION, WAITS_NET},
	[WEIR_LOOP_RECEIVE_ANY] = {start_receive_any, HANDLE_LISTENER, WAITS_NET},
	[WEIR_LOOP_AGAIN] = {start_again, HANDLE_CONNECTION, WAITS_NET},
	[WEIR_LOOP_TIMER] = {start_timer, HANDLE_FREE, WAITS_TIMER},
	[WEIR_LOOP_CALL] = {start_call, HANDLE_FREE, WAITS_CALL},
};

/* -EBADF: no such handle; -EINVAL: one of another kind. */
static int find_handle(struct weir_loop *loop, struct slot *slot, const struct request_kind *kind)
{
	bool any = slot->request.op == WEIR_LOOP_CLOSE;

	slot->handle = NULL;
	if (kind->handle == HANDLE_FREE && !any)
		return 0;
	struct handle *handle = handles_find(&loop->handles, slot->request.file);
	if (!handle)
		return -EBADF;
	if (!any && handle->kind != kind->handle)
		return -EINVAL;
	slot->handle = handle;
	handles_use(handle);
	return 0;
}

void requests_start(void *context, uint32_t number, const struct weir_loop_request *request)
{
	struct weir_loop *loop = context;
	struct slot *slot = &loop->slots[number];
	const struct request_kind *kind = &kinds[request->op];

	slot->request = *request;
	slot->waits = kind->waits;
	loop_count(&loop->counters.requests, 1);
	atomic_fetch_add_explicit(&loop->state.waiting[kind->waits], 1, memory_order_relaxed);
	int r = find_handle(loop, slot, kind);
	if (r)
		loop_answer(loop, slot, r);
	else
		kind->start(loop, slot);
}

void requests_transferred(struct weir_loop *loop, struct slot *slot, int64_t result)
{
	if (slot->handle->closing && result <= 0)
		result = -ECANCELED;
	if (slot->request.op == WEIR_LOOP_RECEIVE_ANY && network_received(loop, slot, result))
		return;
	if (slot->request.op == WEIR_LOOP_SEND)
		network_again(loop, slot->handle);
	loop_answer(loop, slot, result);
}
