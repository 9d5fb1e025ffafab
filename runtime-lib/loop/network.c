/* receive_any(): a listener accepts by itself and watches its connections. One with data is ready
 * until a slot asks for one. Then it is taken, and not watched, until the program sends, says
 * again(), or closes it.
 *
 * To watch a connection is to receive ahead, where messages are small and the engine has buffers:
 * one operation in place of two. So what has come may be in a buffer, and a slot that asks for less
 * leaves a part of it for the next receive. */
#include "loop/inside.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

_Static_assert(IO_AHEAD_MOST <= WEIR_LOOP_INLINE, "it goes beside the slot");

#define RETRY_NS 10000000u /* accept again after an error, mostly that descriptors ran out */

static struct handle *handle_at(struct weir_loop *loop, uint32_t number)
{
	return &loop->handles.table[number];
}

static struct handle *handle_of(struct io *io)
{
	return (struct handle *)((char *)io - offsetof(struct handle, io));
}

static void add_ready(struct weir_loop *loop, struct handle *listener, struct handle *connection)
{
	uint32_t number = handles_number(&loop->handles, connection);

	connection->turn = TURN_READY;
	connection->next = HANDLE_NONE;
	if (listener->ready == HANDLE_NONE)
		listener->ready = number;
	else
		handle_at(loop, listener->ready_end)->next = number;
	listener->ready_end = number;
}

static struct handle *take_ready(struct weir_loop *loop, struct handle *listener)
{
	struct handle *connection = handle_at(loop, listener->ready);

	listener->ready = connection->next;
	connection->next = HANDLE_NONE;
	connection->turn = TURN_TAKEN;
	return connection;
}

static void remove_ready(struct weir_loop *loop, struct handle *connection)
{
	struct handle *listener = handle_at(loop, connection->listener);
	uint32_t number = handles_number(&loop->handles, connection), before = HANDLE_NONE;

	for (uint32_t at = listener->ready; at != number; at = handle_at(loop, at)->next)
		before = at;
	if (before == HANDLE_NONE)
		listener->ready = connection->next;
	else
		handle_at(loop, before)->next = connection->next;
	if (listener->ready_end == number)
		listener->ready_end = before;
	connection->next = HANDLE_NONE;
}

/* Lists of slots that ask are in the handle as two numbers, so that an empty handle needs no slot.
 */
static void ask(struct weir_loop *loop, struct handle *listener, struct slot *slot)
{
	struct slot_list list = {listener->asking, listener->asking_end};

	slot_list_add(loop, &list, slot_number(loop, slot));
	listener->asking = list.first;
	listener->asking_end = list.last;
}

static struct slot *take_asking(struct weir_loop *loop, struct handle *listener)
{
	struct slot_list list = {listener->asking, listener->asking_end};
	struct slot *slot = &loop->slots[slot_list_take(loop, &list)];

	listener->asking = list.first;
	listener->asking_end = list.last;
	return slot;
}

static void give_buffer(struct weir_loop *loop, struct handle *connection)
{
	if (connection->buffer)
		loop->engine->type->give(loop->engine, connection->buffer);
	connection->buffer = NULL;
	connection->left = 0;
}

uint64_t network_take(struct weir_loop *loop, const struct slot *slot, void *to, uint64_t size)
{
	struct handle *connection = slot->handle;
	uint32_t left = slot_receives(slot) ? connection->left : 0;
	uint32_t n = size < left ? (uint32_t)size : left;

	if (!n)
		return 0;
	memcpy(to, (const uint8_t *)connection->buffer + connection->came, n);
	connection->came += n;
	connection->left -= n;
	if (!connection->left)
		give_buffer(loop, connection);
	return n;
}

bool network_answers(struct weir_loop *loop, struct slot *slot)
{
	uint64_t left = slot_receives(slot) ? slot->handle->left : 0;

	if (!left || (slot->request.extra && left < slot->request.size))
		return false;
	uint8_t *data = rings_data(&loop->rings, slot_number(loop, slot));
	uint64_t n = network_take(loop, slot, data, slot->request.size);
	loop_count(&loop->counters.bytes_in, n);
	requests_transferred(loop, slot, (int64_t)n);
	return true;
}

/* The slot has its connection. */
static void receive_taken(struct weir_loop *loop, struct slot *slot)
{
	struct handle *connection = slot->handle;

	if (connection->io.kind == IO_READABLE)
		transfer_begin(loop, slot, MSG_DONTWAIT);
	else if (connection->left)
		transfer_begin(loop, slot, 0);
	else
		requests_transferred(loop, slot, connection->io.result);
}

static void match(struct weir_loop *loop, struct handle *listener)
{
	while (listener->ready != HANDLE_NONE && listener->asking != NO_SLOT) {
		struct handle *connection = take_ready(loop, listener);
		struct slot *slot = take_asking(loop, listener);
		slot->handle = connection;
		handles_use(connection);
		receive_taken(loop, slot);
	}
}

static void begin_watch(struct weir_loop *loop, struct handle *connection, enum io_kind kind);

static void finish_watch(struct io *io)
{
	struct weir_loop *loop = loop_of(io);
	struct handle *connection = handle_of(io);

	if (io->kind == IO_RECEIVE_AHEAD && io->result > 0) {
		connection->buffer = io->buffer;
		connection->came = 0;
		connection->left = (uint32_t)io->result;
	}
	if (connection->closing) {
		give_buffer(loop, connection);
	} else if (io->result == -ENOBUFS) {
		begin_watch(loop, connection, IO_READABLE);
	} else {
		struct handle *listener = handle_at(loop, connection->listener);
		/* An error is told by the receive. */
		add_ready(loop, listener, connection);
		match(loop, listener);
	}
	handles_unuse(&loop->handles, connection);
}

static void begin_watch(struct weir_loop *loop, struct handle *connection, enum io_kind kind)
{
	connection->turn = TURN_WAITS;
	connection->io.kind = kind;
	connection->io.fd = connection->fd;
	connection->io.size = handle_at(loop, connection->listener)->wanted;
	connection->io.flags = 0;
	connection->io.finish = finish_watch;
	handles_use(connection);
	loop_submit(loop, &connection->io);
}

/* What is left of a buffer is there at once. */
static void watch(struct weir_loop *loop, struct handle *connection)
{
	struct handle *listener = handle_at(loop, connection->listener);
	bool small = listener->wanted && listener->wanted <= IO_AHEAD_MOST;

	if (connection->left) {
		add_ready(loop, listener, connection);
		match(loop, listener);
	} else {
		begin_watch(loop, connection,
			    small && loop->engine->ahead ? IO_RECEIVE_AHEAD : IO_READABLE);
	}
}

int64_t network_add(struct weir_loop *loop, int fd, uint32_t listener)
{
	int64_t number = handles_add(&loop->handles, HANDLE_CONNECTION, fd);
	int one = 1;

	if (number < 0) {
		close(fd);
		return number;
	}
	/* Fails for Unix sockets. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	handle_at(loop, (uint32_t)number)->listener = listener;
	if (listener != HANDLE_NONE)
		watch(loop, handle_at(loop, (uint32_t)number));
	return number;
}

static void accept_next(struct weir_loop *loop, struct handle *listener);

static void finish_accept(struct io *io)
{
	struct weir_loop *loop = loop_of(io);
	struct handle *listener = handle_of(io);
	int64_t fd = io->result;

	listener->accepting = false;
	if (fd >= 0 && listener->closing)
		close((int)fd);
	else if (fd >= 0)
		network_add(loop, (int)fd, handles_number(&loop->handles, listener));
	else if (fd != -ECONNABORTED && !listener->closing)
		loop->retry = loop_now() + RETRY_NS;
	if (!listener->closing)
		accept_next(loop, listener);
	handles_unuse(&loop->handles, listener);
}

static void accept_next(struct weir_loop *loop, struct handle *listener)
{
	if (listener->accepting)
		return;
	if (loop->handles.open == loop->handles.size || loop->retry) {
		loop->starved = true;
		return;
	}
	listener->accepting = true;
	listener->io.kind = IO_ACCEPT;
	listener->io.fd = listener->fd;
	listener->io.flags = 0;
	listener->io.finish = finish_accept;
	handles_use(listener);
	loop_submit(loop, &listener->io);
}

void network_ask(struct weir_loop *loop, struct slot *slot)
{
	struct handle *listener = slot->handle;

	listener->wanted = (uint32_t)slot->request.size;
	ask(loop, listener, slot);
	accept_next(loop, listener);
	match(loop, listener);
}

void network_again(struct weir_loop *loop, struct handle *connection)
{
	if (connection->turn == TURN_TAKEN && !connection->closing &&
	    !handle_at(loop, connection->listener)->closing)
		watch(loop, connection);
}

bool network_received(struct weir_loop *loop, struct slot *slot, int64_t result)
{
	struct handle *connection = slot->handle;
	/* The slot uses it, so its number is no other's. */
	struct handle *listener = handle_at(loop, (uint32_t)slot->request.file);

	if (result == -EAGAIN && !connection->closing && !listener->closing) {
		watch(loop, connection);
		handles_unuse(&loop->handles, connection);
		slot->handle = listener;
		ask(loop, listener, slot);
		match(loop, listener);
		return true;
	}
	loop->rings.values[slot_number(loop, slot)] = handles_number(&loop->handles, connection);
	if (result <= 0 && !connection->closing)
		network_close(loop, connection);
	/* The listener was in use by this slot, too. */
	handles_unuse(&loop->handles, listener);
	return false;
}

static void close_connection(struct weir_loop *loop, struct handle *connection)
{
	if (connection->turn == TURN_READY)
		remove_ready(loop, connection);
	give_buffer(loop, connection);
	shutdown(connection->fd, SHUT_RDWR);
	handles_close(&loop->handles, connection);
}

/* A Unix socket that is shut down does not end an accept. */
void network_end_accepts(struct weir_loop *loop, struct handle *listener)
{
	if (listener->accepting)
		loop->engine->type->cancel(loop->engine, &listener->io);
	for (uint32_t i = 0; i < loop->rings.slots; i++)
		if (loop->slots[i].handle == listener &&
		    loop->slots[i].request.op == WEIR_LOOP_ACCEPT)
			loop->engine->type->cancel(loop->engine, &loop->slots[i].io);
}

/* With the connections that the program does not have. */
static void close_listener(struct weir_loop *loop, struct handle *listener)
{
	uint32_t number = handles_number(&loop->handles, listener);

	for (uint32_t i = 0; i < loop->handles.size; i++) {
		struct handle *other = handle_at(loop, i);
		if (other->kind != HANDLE_CONNECTION || other->closing || other->listener != number)
			continue;
		if (other->turn == TURN_TAKEN) {
			other->turn = TURN_NONE;
			other->listener = HANDLE_NONE;
		} else {
			close_connection(loop, other);
		}
	}
	while (listener->asking != NO_SLOT)
		loop_answer(loop, take_asking(loop, listener), -ECANCELED);
	shutdown(listener->fd, SHUT_RDWR);
	network_end_accepts(loop, listener);
	handles_close(&loop->handles, listener);
}

void network_close(struct weir_loop *loop, struct handle *handle)
{
	if (handle->kind == HANDLE_LISTENER)
		close_listener(loop, handle);
	else
		close_connection(loop, handle);
}

void network_retry(struct weir_loop *loop, uint64_t now)
{
	if (!loop->starved || now < loop->retry || loop->handles.open == loop->handles.size)
		return;
	loop->starved = false;
	loop->retry = 0;
	for (uint32_t i = 0; i < loop->handles.size; i++) {
		struct handle *handle = handle_at(loop, i);
		if (handle->kind == HANDLE_LISTENER && !handle->closing &&
		    handle->asking != NO_SLOT)
			accept_next(loop, handle);
	}
}
