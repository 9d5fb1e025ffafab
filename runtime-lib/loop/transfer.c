/* Data of requests. Up to WEIR_LOOP_INLINE bytes lie beside the slot, where the kernel copies them
 * itself; also if it asked for more, and no more came. More goes through pinned staging buffers.
 * The kernel reads up to WEIR_LOOP_PART bytes from there, as a copy engine takes at least 4 us for
 * each copy. The rest is for copy engines, piece by piece:
 *
 *   read, receive:  file or socket -> buffer -> GPU
 *   write, send:    GPU -> buffer -> file or socket
 *
 * Files opened with O_DIRECT need no buffer where there is GPUDirect Storage (cufile.h).
 * Pieces of files are in flight together. Those of sockets follow each other, since order matters.
 * A receive ends with what has come, unless it asks for all.
 */
#include "loop/copies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TOGETHER  4u          /* pieces of one transfer in flight, at least */
#define FOLLOWING 64u         /* transfers among which the one that follows is searched */
#define ALIGNED   4096u       /* what O_DIRECT wants */
#define READER    (32u << 10) /* readers get more; waking one takes longer than reading this */
/* Bytes that one of several transfers is given buffers for at a time. */
#define TURN (16u << 20)

static bool is_in(const struct slot *slot)
{
	return slot->request.op != WEIR_LOOP_WRITE && slot->request.op != WEIR_LOOP_SEND;
}

static bool is_file(const struct slot *slot)
{
	return slot->request.op == WEIR_LOOP_READ || slot->request.op == WEIR_LOOP_WRITE;
}

/* It ends when all bytes are there, or nothing more can come. */
static bool wants_all(const struct slot *slot)
{
	return is_file(slot) || (slot_receives(slot) && slot->request.extra);
}

static enum io_kind kind_of(const struct slot *slot)
{
	if (is_file(slot))
		return is_in(slot) ? IO_READ : IO_WRITE;
	return is_in(slot) ? IO_RECEIVE : IO_SEND;
}

static struct piece *piece_of(struct io *io)
{
	return (struct piece *)((char *)io - offsetof(struct piece, io));
}

int transfers_init(struct weir_loop *loop, uint32_t buffers)
{
	loop->wanting = (struct slot_list){NO_SLOT, NO_SLOT};
	loop->staged = gpu_host_alloc(&loop->gpu, staging_size(buffers));
	if (!loop->staged)
		return -EIO;
	int r = staging_init(&loop->staging, loop->staged, buffers);
	return r ? r : copies_init(loop);
}

void transfers_deinit(struct weir_loop *loop)
{
	copies_deinit(loop);
	staging_deinit(&loop->staging);
	gpu_host_free(loop->staged);
}

static void end_early(struct slot *slot, uint64_t at, int64_t error)
{
	if (at >= slot->end)
		return;
	slot->end = at;
	slot->error = error;
}

/* Of one transfer: half of the buffers stay for others. */
static uint32_t together(const struct weir_loop *loop, const struct slot *slot)
{
	uint32_t half = loop->options.staging / 2;

	return !is_file(slot) ? 1 : half > TOGETHER ? half : TOGETHER;
}

static bool has_more(const struct weir_loop *loop, const struct slot *slot)
{
	return slot->issued < slot->request.size && slot->end == UINT64_MAX &&
	       slot->pieces < together(loop, slot);
}

static void want(struct weir_loop *loop, struct slot *slot)
{
	if (slot->listed || !has_more(loop, slot))
		return;
	slot->listed = true;
	slot_list_add(loop, &loop->wanting, slot_number(loop, slot));
}

/* The same; it has more. */
static void want_first(struct weir_loop *loop, struct slot *slot)
{
	slot->listed = true;
	slot_list_add_first(loop, &loop->wanting, slot_number(loop, slot));
}

static void fill_buffers(struct weir_loop *loop);

/* Answers, if no piece of the transfer is under way and none wants a buffer. */
static void end_if_done(struct weir_loop *loop, struct slot *slot)
{
	if (slot->pieces || slot->listed)
		return;
	uint64_t bytes = slot->end < slot->issued ? slot->end : slot->issued;
	requests_transferred(loop, slot, bytes || !slot->error ? (int64_t)bytes : slot->error);
}

/* The piece's part of the transfer is over. */
static void end_piece(struct weir_loop *loop, struct piece *piece)
{
	struct slot *slot = &loop->slots[piece->slot];

	staging_give(&loop->staging, piece);
	slot->pieces--;
	if (is_in(slot) && !wants_all(slot))
		end_early(slot, piece->offset + piece->filled, 0);
	want(loop, slot);
	end_if_done(loop, slot);
}

/* All of the transfer. The block says when it has copied it. */
static void give(struct weir_loop *loop, struct piece *piece)
{
	struct slot *slot = &loop->slots[piece->slot];

	rings_put_part(&loop->rings, piece->slot, piece->buffer);
	loop_count(&loop->counters.bytes_in, piece->filled);
	piece->next = loop->given;
	loop->given = piece;
	slot->pieces--;
	end_early(slot, piece->filled, 0);
	end_if_done(loop, slot);
}

/* Small pieces that blocks have copied from are idle again. */
static void take_back(struct weir_loop *loop)
{
	struct piece **at = &loop->given;

	while (*at) {
		struct piece *piece = *at;
		if (rings_has_part(&loop->rings, piece->slot, piece->buffer)) {
			at = &piece->next;
			continue;
		}
		*at = piece->next;
		staging_give(&loop->staging, piece);
	}
}

/* What to read or write @size bytes at @offset with. Only whole, aligned pieces go around the page
 * cache. */
static int fd_for(const struct slot *slot, uint64_t offset, uint64_t size)
{
	const struct handle *handle = slot->handle;
	bool is_whole = size && size % ALIGNED == 0 && offset % ALIGNED == 0;

	return is_file(slot) && handle->direct >= 0 && is_whole ? handle->direct : handle->fd;
}

/* A read may be short in the middle of a file: the rest of the piece comes from the page cache. */
static void submit(struct weir_loop *loop, struct piece *piece, int flags)
{
	struct slot *slot = &loop->slots[piece->slot];
	uint64_t offset = slot->request.offset + piece->offset + piece->filled;
	int plain = slot->handle->fd;

	piece->state = PIECE_IO;
	piece->io.kind = kind_of(slot);
	piece->io.fd = piece->filled ? plain : fd_for(slot, offset, piece->size);
	piece->io.buffer = (char *)piece->buffer + piece->filled;
	piece->io.size = piece->size - piece->filled;
	piece->io.offset = offset;
	piece->io.flags = flags;
	piece->io.at_end = false;
	if (piece->io.kind == IO_READ && piece->io.fd == plain && piece->io.size > READER)
		loop_submit_read(loop, &piece->io);
	else
		loop_submit(loop, &piece->io);
}

static void finish_in(struct weir_loop *loop, struct piece *piece, int64_t result)
{
	struct slot *slot = &loop->slots[piece->slot];

	if (result > 0)
		piece->filled += (uint64_t)result;
	if (result > 0 && piece->filled < piece->size && wants_all(slot) && !piece->io.at_end) {
		submit(loop, piece, 0);
		return;
	}
	if (piece->filled < piece->size && (wants_all(slot) || result < 0))
		end_early(slot, piece->offset + piece->filled, result);
	if (!piece->offset && piece->filled <= WEIR_LOOP_INLINE) {
		memcpy(rings_data(&loop->rings, piece->slot), piece->buffer, piece->filled);
		loop_count(&loop->counters.bytes_in, piece->filled);
		end_piece(loop, piece);
	} else if (!piece->filled) {
		end_piece(loop, piece);
	} else if (piece->units) {
		copies_in(loop, piece);
		copies_begin(loop);
	} else {
		give(loop, piece);
	}
}

static void finish(struct io *io)
{
	struct weir_loop *loop = loop_of(io);
	struct piece *piece = piece_of(io);
	struct slot *slot = &loop->slots[piece->slot];

	if (is_in(slot)) {
		finish_in(loop, piece, io->result);
	} else {
		if (io->result < (int64_t)piece->size)
			end_early(slot, piece->offset + (io->result > 0 ? (uint64_t)io->result : 0),
				  io->result < 0 ? io->result : -EIO);
		end_piece(loop, piece);
	}
	fill_buffers(loop);
}

/* Readers that have nothing to do share what is left of a read, if no other transfer is there for
 * them. */
static uint64_t size_of_piece(const struct weir_loop *loop, const struct slot *slot)
{
	uint64_t left = slot->request.size - slot->issued, size = STAGING_BYTES;

	if (slot->request.op == WEIR_LOOP_READ && slot->handle->direct < 0 &&
	    loop->wanting.first == NO_SLOT && loop->reading < loop->options.readers)
		size = left / (loop->options.readers - loop->reading) / STAGING_UNIT * STAGING_UNIT;
	if (size < STAGING_UNIT)
		size = STAGING_UNIT;
	if (size > STAGING_BYTES)
		size = STAGING_BYTES;
	return left < size ? left : size;
}

static void begin_piece(struct weir_loop *loop, struct slot *slot, struct piece *piece,
			uint64_t size)
{
	piece->slot = slot_number(loop, slot);
	piece->offset = slot->issued;
	piece->size = size;
	piece->filled = network_take(loop, slot, piece->buffer, size);
	piece->io.finish = finish;
	slot->issued += piece->size;
	slot->pieces++;
	if (is_in(slot))
		submit(loop, piece, piece->offset ? 0 : slot->io.flags);
	else
		copies_out(loop, piece);
}

/* Pieces of one transfer that follow each other are likely to lie side by side. False: there is no
 * room for the next one. */
static bool take_turn(struct weir_loop *loop, struct slot *slot, uint64_t bytes)
{
	uint64_t end = slot->issued + bytes;

	while (slot->issued < end && has_more(loop, slot)) {
		uint64_t size = size_of_piece(loop, slot);
		struct piece *piece = staging_take(&loop->staging, size);
		if (!piece)
			return false;
		begin_piece(loop, slot, piece, size);
	}
	return true;
}

/* The transfer to the GPU whose next piece belongs to @address, if it is one of the first few that
 * want buffers. It is taken from the list. NO_SLOT: there is none. */
static uint32_t take_following(struct weir_loop *loop, uint64_t address)
{
	struct slot_list *list = &loop->wanting;
	uint32_t before = NO_SLOT, at = list->first;

	for (uint32_t n = 0; n < FOLLOWING && at != NO_SLOT;
	     n++, before = at, at = loop->slots[at].next) {
		const struct slot *slot = &loop->slots[at];
		if (!is_in(slot) || slot->request.address + slot->issued != address)
			continue;
		if (before == NO_SLOT)
			return slot_list_take(loop, list);
		loop->slots[before].next = slot->next;
		if (list->last == at)
			list->last = before;
		return at;
	}
	return NO_SLOT;
}

/* Transfers take buffers by turns. One that waited for a buffer may have ended meanwhile. A turn
 * goes on with the transfer that follows on the GPU, for their pieces can be copied together. One
 * that finds no room is the first when there is some. */
static void fill_buffers(struct weir_loop *loop)
{
	bool room = true;

	while (room && loop->staging.idle && loop->wanting.first != NO_SLOT) {
		uint32_t number = loop->turn ? take_following(loop, loop->follows) : NO_SLOT;
		if (number == NO_SLOT) {
			number = slot_list_take(loop, &loop->wanting);
			loop->turn = TURN;
		}
		struct slot *slot = &loop->slots[number];
		slot->listed = false;
		if (!has_more(loop, slot)) {
			end_if_done(loop, slot);
			continue;
		}
		uint64_t before = slot->issued;
		room = take_turn(loop, slot, loop->turn);
		uint64_t taken = slot->issued - before;
		loop->turn -= taken < loop->turn ? taken : loop->turn;
		loop->follows = slot->request.address + slot->issued;
		if (room)
			want(loop, slot);
		else
			want_first(loop, slot);
	}
}

void transfer_copied(struct weir_loop *loop, struct piece *piece, int error)
{
	struct slot *slot = &loop->slots[piece->slot];

	if (error) {
		end_early(slot, piece->offset, error);
		end_piece(loop, piece);
	} else if (is_in(slot)) {
		loop_count(&loop->counters.bytes_in, piece->filled);
		end_piece(loop, piece);
	} else {
		loop_count(&loop->counters.bytes_out, piece->size);
		submit(loop, piece, 0);
	}
}

bool transfers_look(struct weir_loop *loop)
{
	bool some = copies_look(loop);

	if (some)
		fill_buffers(loop);
	return some;
}

bool transfers_copying(const struct weir_loop *loop)
{
	return loop->in.first || loop->out.first;
}

static void finish_inline(struct io *io)
{
	struct weir_loop *loop = loop_of(io);
	struct slot *slot = slot_of(io);
	uint64_t bytes = io->result > 0 ? (uint64_t)io->result : 0;

	loop_count(is_in(slot) ? &loop->counters.bytes_in : &loop->counters.bytes_out, bytes);
	slot->issued += bytes;
	if (bytes && bytes < io->size && !is_file(slot) && wants_all(slot)) {
		io->buffer = (char *)io->buffer + bytes;
		io->size -= bytes;
		io->flags = 0; /* the rest may come later */
		loop_submit(loop, io);
		return;
	}
	requests_transferred(loop, slot, slot->issued ? (int64_t)slot->issued : io->result);
}

/* False: the transfer is none for a small piece, or blocks still copy from all of them. */
static bool begin_small(struct weir_loop *loop, struct slot *slot)
{
	struct piece *piece;

	if (!is_in(slot) || slot->request.size > WEIR_LOOP_PART)
		return false;
	if (!loop->staging.small)
		take_back(loop);
	piece = staging_take_small(&loop->staging);
	if (piece)
		begin_piece(loop, slot, piece, slot->request.size);
	return piece != NULL;
}

/* Buffers are not for what lies behind the end of the file. Some files do not tell their size. What
 * goes around the page cache stays aligned. */
static void limit_to_file(struct slot *slot)
{
	struct weir_loop_request *request = &slot->request;
	struct stat file;

	if (request->op != WEIR_LOOP_READ || request->size <= WEIR_LOOP_PART ||
	    slot->handle->direct >= 0 || fstat(slot->handle->fd, &file) < 0 ||
	    !S_ISREG(file.st_mode) || (uint64_t)file.st_size <= request->offset)
		return;
	uint64_t left = (uint64_t)file.st_size - request->offset;
	if (request->size > left)
		request->size = left;
}

static void begin_staged(struct weir_loop *loop, struct slot *slot)
{
	limit_to_file(slot);
	slot->issued = slot->pieces = 0;
	slot->end = UINT64_MAX;
	slot->error = 0;
	slot->listed = false;
	if (begin_small(loop, slot))
		return;
	want(loop, slot);
	fill_buffers(loop);
}

/* A thread of the engine. */
static int64_t run_gds(struct io *io)
{
	const struct weir_loop *loop = loop_of(io);
	const struct slot *slot = slot_of(io);
	const struct weir_loop_request *request = &slot->request;
	void *address = (void *)(uintptr_t)request->address;
	off_t offset = (off_t)request->offset;

	if (gpu_use(&loop->gpu))
		return -EIO;
	return is_in(slot)
		       ? loop->cufile.read(slot->handle->gds, address, request->size, offset, 0)
		       : loop->cufile.write(slot->handle->gds, address, request->size, offset, 0);
}

/* What was refused is done again through buffers, and so is a read of few bytes, which the kernel
 * expects beside the slot. */
static void finish_gds(struct io *io)
{
	struct weir_loop *loop = loop_of(io);
	struct slot *slot = slot_of(io);

	if (io->result < 0 || (is_in(slot) && io->result <= WEIR_LOOP_INLINE)) {
		begin_staged(loop, slot);
		return;
	}
	loop_count(&loop->counters.gds, 1);
	loop_count(is_in(slot) ? &loop->counters.bytes_in : &loop->counters.bytes_out,
		   (uint64_t)io->result);
	requests_transferred(loop, slot, io->result);
}

static void begin_large(struct weir_loop *loop, struct slot *slot)
{
	if (!is_file(slot) || !slot->handle->gds || slot->request.offset % ALIGNED) {
		begin_staged(loop, slot);
		return;
	}
	slot->io.kind = IO_CALL;
	slot->io.run = run_gds;
	slot->io.finish = finish_gds;
	loop_submit(loop, &slot->io);
}

void transfer_begin(struct weir_loop *loop, struct slot *slot, int flags)
{
	if (network_answers(loop, slot))
		return;
	slot->io.flags = flags;
	if (slot->request.size > WEIR_LOOP_INLINE) {
		/* A block that had no place for the last part has left it there. */
		rings_put_part(&loop->rings, slot_number(loop, slot), NULL);
		begin_large(loop, slot);
		return;
	}
	uint8_t *data = rings_data(&loop->rings, slot_number(loop, slot));

	slot->issued = network_take(loop, slot, data, slot->request.size);
	loop_count(&loop->counters.bytes_in, slot->issued);
	slot->io.kind = kind_of(slot);
	slot->io.fd = fd_for(slot, slot->request.offset, slot->request.size);
	slot->io.buffer = data + slot->issued;
	slot->io.size = slot->request.size - slot->issued;
	slot->io.offset = slot->request.offset;
	slot->io.finish = finish_inline;
	loop_submit(loop, &slot->io);
}
