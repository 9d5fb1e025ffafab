/* A copy engine needs about 3 us between two copies, in which it could move 160 KiB. So pieces
 * that lie side by side in the staging memory and on the GPU are copied together, also those of
 * several requests. While enough is being copied, what has been read is left where it is, and may
 * get neighbours. A piece whose neighbour is still being read waits for it as long as the engine
 * has something to do: if it were copied alone, its memory would be free alone, too, and pieces
 * would lie further and further apart. The next copy begins before the last one ends. */
#include "loop/copies.h"

#include <errno.h>

/* Another copy to the GPU begins while fewer bytes are being copied, or fewer copies are under way:
 * of long ones two are enough. */
#define COPYING (4u << 20)
#define COPIES  2u
#define JOINED  (8u << 20) /* bytes of one copy, at most */
/* Nothing waits for neighbours when the engine has less to do. Until a copy runs, some 10 us pass
 * in which the thread looks at something else, and 10 us in the driver. */
#define AHEAD_NS   30000u
#define NS_PER_MIB 19000u /* until copies have shown it: PCIe 5.0 */
#define STEADY     16u    /* parts of the rate, of which one is that of the last copy */

int copies_init(struct weir_loop *loop)
{
	loop->in.end = &loop->in.first;
	loop->out.end = &loop->out.first;
	loop->ready.end = &loop->ready.first;
	loop->ns_per_mib = NS_PER_MIB;
	for (uint32_t i = 0; i < loop->staging.units; i++)
		if (cuEventCreate(&loop->staging.piece[i].event, CU_EVENT_DISABLE_TIMING) !=
		    CUDA_SUCCESS)
			return -EIO;
	return 0;
}

void copies_deinit(struct weir_loop *loop)
{
	for (uint32_t i = 0; loop->staging.piece && i < loop->staging.units; i++)
		if (loop->staging.piece[i].event)
			cuEventDestroy(loop->staging.piece[i].event);
}

static void append(struct pieces *list, struct piece *piece)
{
	piece->next = NULL;
	*list->end = piece;
	list->end = &piece->next;
}

static struct piece *take(struct pieces *list)
{
	struct piece *piece = list->first;

	if (piece && !(list->first = piece->next))
		list->end = &list->first;
	return piece;
}

static void remove_from(struct pieces *list, const struct piece *piece)
{
	for (struct piece **at = &list->first; *at; at = &(*at)->next) {
		if (*at != piece)
			continue;
		if (!(*at = piece->next))
			list->end = at;
		return;
	}
}

static uint64_t address_of(const struct weir_loop *loop, const struct piece *piece)
{
	return loop->slots[piece->slot].request.address + piece->offset;
}

/* A piece that is ready, or soon will be: readers copy it from the page cache. */
static bool has_data(const struct piece *piece)
{
	return piece->state == PIECE_READY ||
	       (piece->state == PIECE_IO && piece->io.kind == IO_READ_CACHED);
}

/* @b begins where @a ends, in the staging memory and on the GPU. */
static bool adjoins(const struct weir_loop *loop, const struct piece *a, const struct piece *b)
{
	uint64_t bytes = a->state == PIECE_READY ? a->filled : a->size;

	return has_data(a) && has_data(b) && b->buffer == a->buffer + bytes &&
	       address_of(loop, b) == address_of(loop, a) + bytes;
}

static struct piece *next_before(const struct weir_loop *loop, const struct piece *piece)
{
	struct piece *before = staging_before(&loop->staging, piece);

	return before && adjoins(loop, before, piece) ? before : NULL;
}

static struct piece *next_behind(const struct weir_loop *loop, const struct piece *piece)
{
	struct piece *behind = staging_behind(&loop->staging, piece);

	return behind && adjoins(loop, piece, behind) ? behind : NULL;
}

/* @piece and @more, which adjoins others of a copy of @bytes, can be copied together. */
static bool fits(const struct piece *more, uint64_t bytes)
{
	return more && more->state == PIECE_READY && bytes + more->filled <= JOINED;
}

/* The first of the pieces that are copied with @piece, which is ready. They are ready no longer.
 * @bytes: of all of them. */
static struct piece *join(struct weir_loop *loop, struct piece *piece, uint64_t *bytes)
{
	struct piece *first = piece, *last, *more;

	*bytes = piece->filled;
	piece->joined = NULL;
	for (; fits(more = next_before(loop, first), *bytes); first = more) {
		*bytes += more->filled;
		more->joined = first;
	}
	for (last = piece; fits(more = next_behind(loop, last), *bytes); last = more) {
		*bytes += more->filled;
		last->joined = more;
		more->joined = NULL;
	}
	for (struct piece *each = first; each; each = each->joined) {
		remove_from(&loop->ready, each);
		each->state = PIECE_COPY;
	}
	return first;
}

typedef struct piece *neighbour(const struct weir_loop *loop, const struct piece *piece);

/* On one side of @piece one that belongs to its copy is still being read. @bytes: of the copy; it
 * grows by those that are ready. */
static bool awaits(const struct weir_loop *loop, const struct piece *piece, neighbour *next,
		   uint64_t *bytes)
{
	while ((piece = next(loop, piece)) && *bytes + piece->size <= JOINED) {
		if (piece->state != PIECE_READY)
			return true;
		*bytes += piece->size;
	}
	return false;
}

/* A copy of @piece would be longer later. */
static bool is_growing(const struct weir_loop *loop, const struct piece *piece)
{
	uint64_t bytes = piece->filled;

	return awaits(loop, piece, next_behind, &bytes) || awaits(loop, piece, next_before, &bytes);
}

/* Copies to the GPU run one after the other. */
static bool is_busy(const struct weir_loop *loop)
{
	uint64_t takes = loop->copying * loop->ns_per_mib >> 20;

	return loop->in.first && loop->copying_since + takes > loop_now() + AHEAD_NS;
}

/* The piece that has been ready for the longest, of those whose copies do not grow. NULL: there is
 * none, and the copy engine is busy. */
static struct piece *choose(const struct weir_loop *loop)
{
	struct piece *piece = loop->ready.first;

	while (piece && is_growing(loop, piece))
		piece = piece->next;
	return piece || is_busy(loop) ? piece : loop->ready.first;
}

static void end_all(struct weir_loop *loop, struct piece *first, int error)
{
	for (struct piece *piece = first, *next; piece; piece = next) {
		next = piece->joined; /* before the piece is another transfer's */
		transfer_copied(loop, piece, error);
	}
}

static int begin(struct weir_loop *loop, struct piece *first, uint64_t bytes)
{
	int r = gpu_copy_in(&loop->gpu, address_of(loop, first), first->buffer, bytes,
			    first->event);

	if (r)
		return r;
	if (!loop->in.first)
		loop->copying_since = loop_now();
	loop->copying += bytes;
	append(&loop->in, first);
	return 0;
}

/* The driver refuses a copy into two allocations, and one with a wrong address. So what it refuses
 * is copied piece by piece, and no request suffers from another's address. */
static void begin_each(struct weir_loop *loop, struct piece *first)
{
	for (struct piece *piece = first, *next; piece; piece = next) {
		next = piece->joined;
		piece->joined = NULL;
		int r = begin(loop, piece, piece->filled);
		if (r)
			transfer_copied(loop, piece, r);
	}
}

static bool wants_copies(const struct weir_loop *loop)
{
	uint32_t under_way = 0;

	for (const struct piece *at = loop->in.first; at && under_way < COPIES; at = at->next)
		under_way++;
	return loop->copying < COPYING || under_way < COPIES;
}

void copies_begin(struct weir_loop *loop)
{
	struct piece *piece;

	while (wants_copies(loop) && (piece = choose(loop))) {
		uint64_t bytes;
		struct piece *first = join(loop, piece, &bytes);

		if (begin(loop, first, bytes))
			begin_each(loop, first);
	}
}

void copies_in(struct weir_loop *loop, struct piece *piece)
{
	piece->state = PIECE_READY;
	append(&loop->ready, piece);
}

void copies_out(struct weir_loop *loop, struct piece *piece)
{
	int r = gpu_copy_out(&loop->gpu, piece->buffer, address_of(loop, piece), piece->size,
			     piece->event);

	piece->state = PIECE_COPY;
	piece->joined = NULL;
	if (r)
		transfer_copied(loop, piece, r);
	else
		append(&loop->out, piece);
}

/* @bytes of `in` have been copied. Short copies say nothing of the rate. */
static void measure(struct weir_loop *loop, uint64_t bytes)
{
	uint64_t now = loop_now(), took = now - loop->copying_since;

	if (bytes >= STAGING_BYTES)
		loop->ns_per_mib =
			(loop->ns_per_mib * (STEADY - 1) + (took << 20) / bytes) / STEADY;
	loop->copying -= bytes;
	loop->copying_since = now;
}

static bool look(struct weir_loop *loop, struct pieces *list)
{
	uint64_t bytes = 0;
	bool some = false;
	int r;

	while (list->first && (r = gpu_copied(&loop->gpu, list->first->event)) != -EAGAIN) {
		struct piece *first = take(list);

		for (struct piece *piece = first; piece; piece = piece->joined)
			bytes += piece->filled;
		end_all(loop, first, r ? -EFAULT : 0);
		some = true;
	}
	if (list == &loop->in && some)
		measure(loop, bytes);
	return some;
}

bool copies_look(struct weir_loop *loop)
{
	bool in = look(loop, &loop->in), out = look(loop, &loop->out);

	if (loop->ready.first)
		copies_begin(loop);
	return in || out;
}
