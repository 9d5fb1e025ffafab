/* Staging buffers: which pieces are taken, and which of them are copied together. The copy engine
 * is the test's own. */
#include "loop/copies.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BUFFERS 20u
#define SLOTS   32u
#define BUSY    4u         /* copies of 1 MiB that keep the copy engine busy */
#define FREE    (2 * BUSY) /* slots from here on have none of them */
#define UNIT    ((uint64_t)STAGING_UNIT)
#define MIB     ((uint64_t)1 << 20)
#define ADDRESS ((uint64_t)1 << 40) /* of slot 0's memory; the others' are MIB apart */
#define REFUSED (ADDRESS + (uint64_t)5 * MIB)

struct ended {
	struct piece *piece;
	int error;
};

static struct world {
	struct weir_loop loop;
	uint64_t now;
	struct slot slots[SLOTS];
	struct {
		uint64_t to, size;
		const uint8_t *from;
	} copies[64];
	unsigned begun, finished; /* copies */
	uint64_t refused;         /* an address: copies that reach it are */
	struct ended ended[64];
	unsigned n_ended;
} w;

uint64_t loop_now(void)
{
	return w.now;
}

int gpu_copy_in(struct gpu *gpu, CUdeviceptr to, const void *from, size_t size, CUevent event)
{
	(void)gpu;
	assert_non_null(event);
	if (w.refused && to <= w.refused && w.refused < to + size)
		return -EFAULT;
	w.copies[w.begun].to = to;
	w.copies[w.begun].from = from;
	w.copies[w.begun++].size = size;
	return 0;
}

int gpu_copied(struct gpu *gpu, CUevent event)
{
	(void)gpu;
	(void)event;
	if (!w.finished)
		return -EAGAIN;
	w.finished--;
	return 0;
}

void transfer_copied(struct weir_loop *loop, struct piece *piece, int error)
{
	w.ended[w.n_ended].error = error;
	w.ended[w.n_ended++].piece = piece;
	staging_give(&loop->staging, piece);
}

static int begin(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.loop.slots = w.slots;
	for (unsigned i = 0; i < SLOTS; i++)
		w.slots[i].request.address = ADDRESS + i * MIB;
	w.loop.staged = malloc(staging_size(BUFFERS));
	assert_non_null(w.loop.staged);
	assert_int_equal(staging_init(&w.loop.staging, w.loop.staged, BUFFERS), 0);
	int r = copies_init(&w.loop);
	w.loop.ns_per_mib = 1000000; /* a slow link */
	return r;
}

static int end(void **state)
{
	(void)state;
	copies_deinit(&w.loop);
	staging_deinit(&w.loop.staging);
	free(w.loop.staged);
	return 0;
}

static struct piece *taken(uint64_t bytes, uint64_t got)
{
	struct piece *piece = staging_take(&w.loop.staging, bytes);

	assert_non_null(piece);
	assert_int_equal(piece->units * UNIT, got);
	return piece;
}

static void pieces_follow_each_other(void **state)
{
	static const uint64_t sizes[][2] = {{1, UNIT},
					    {UNIT, UNIT},
					    {UNIT + 1, 2 * UNIT},
					    {3 * UNIT + 1, 4 * UNIT},
					    {UINT64_MAX, 4 * UNIT}};
	const uint8_t *at = w.loop.staged;

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		struct piece *piece = taken(sizes[i][0], sizes[i][1]);
		assert_ptr_equal(piece->buffer, at);
		at += sizes[i][1];
	}
	assert_int_equal(w.loop.staging.idle, 4 * BUFFERS - 12);
}

/* The cursor goes on; a hole that is large enough is found. Smaller ones wait for their neighbours.
 */
static void holes_are_used(void **state)
{
	struct piece *pieces[BUFFERS];

	(void)state;
	for (unsigned i = 0; i < BUFFERS; i++)
		pieces[i] = taken(MIB, MIB);
	assert_null(staging_take(&w.loop.staging, 1));
	staging_give(&w.loop.staging, pieces[3]);
	staging_give(&w.loop.staging, pieces[6]);
	struct piece *small = taken(UNIT, UNIT);
	assert_ptr_equal(small, pieces[3]);
	assert_ptr_equal(taken(MIB, MIB), pieces[6]);
	assert_null(staging_take(&w.loop.staging, MIB));
	assert_int_equal(w.loop.staging.idle, 3);
	staging_give(&w.loop.staging, small);
	assert_ptr_equal(taken(MIB, MIB), small);
	assert_null(staging_take(&w.loop.staging, 1));
}

static void small_pieces_are_apart(void **state)
{
	const uint8_t *begin = (uint8_t *)w.loop.staged + BUFFERS * MIB;
	struct piece *piece = NULL;

	(void)state;
	for (unsigned i = 0; i < 4 * BUFFERS; i++) {
		piece = staging_take_small(&w.loop.staging);
		assert_non_null(piece);
		assert_int_equal(piece->units, 0);
		assert_in_range((uintptr_t)piece->buffer, (uintptr_t)begin,
				(uintptr_t)begin + (4 * BUFFERS - 1) * WEIR_LOOP_PART);
		memset(piece->buffer, 1, WEIR_LOOP_PART);
	}
	assert_null(staging_take_small(&w.loop.staging));
	staging_give(&w.loop.staging, piece);
	assert_ptr_equal(staging_take_small(&w.loop.staging), piece);
	assert_int_equal(w.loop.staging.idle, 4 * BUFFERS);
}

/* A piece of a whole request of 1 MiB. */
static struct piece *read_piece(uint32_t slot)
{
	struct piece *piece = taken(MIB, MIB);

	piece->slot = slot;
	piece->offset = 0;
	piece->size = piece->filled = MIB;
	return piece;
}

static void ready(struct piece *piece)
{
	copies_in(&w.loop, piece);
	copies_begin(&w.loop);
}

static void assert_copy(unsigned n, uint64_t slot, uint64_t size, const struct piece *piece)
{
	assert_in_range(w.begun, n + 1, 64);
	assert_int_equal(w.copies[n].to, ADDRESS + slot * MIB);
	assert_int_equal(w.copies[n].size, size);
	assert_ptr_equal(w.copies[n].from, piece->buffer);
}

/* Four copies of 1 MiB are under way: what is ready now waits. */
static void keep_busy(void)
{
	for (uint32_t i = 0; i < BUSY; i++) {
		ready(read_piece(2 * i));
		assert_int_equal(w.begun, i + 1);
	}
}

static void a_piece_alone_is_copied_at_once(void **state)
{
	(void)state;
	struct piece *piece = read_piece(3);
	ready(piece);
	assert_copy(0, 3, MIB, piece);
	assert_false(copies_look(&w.loop));
	w.finished = 1;
	assert_true(copies_look(&w.loop));
	assert_int_equal(w.n_ended, 1);
	assert_ptr_equal(w.ended[0].piece, piece);
	assert_int_equal(w.ended[0].error, 0);
	assert_int_equal(w.loop.copying, 0);
}

/* In whatever order they become ready; and each ends. */
static void neighbours_are_copied_together(void **state)
{
	struct piece *pieces[3];

	(void)state;
	keep_busy();
	for (uint32_t i = 0; i < 3; i++)
		pieces[i] = read_piece(FREE + i);
	ready(pieces[1]);
	ready(pieces[2]);
	ready(pieces[0]);
	assert_int_equal(w.begun, BUSY);
	w.finished = 1;
	assert_true(copies_look(&w.loop));
	assert_int_equal(w.begun, BUSY + 1);
	assert_copy(BUSY, FREE, 3 * MIB, pieces[0]);
	w.finished = BUSY;
	assert_true(copies_look(&w.loop));
	assert_int_equal(w.n_ended, BUSY + 3);
	for (unsigned i = 0; i < 3; i++)
		assert_ptr_equal(w.ended[BUSY + i].piece, pieces[i]);
	assert_int_equal(w.loop.copying, 0);
	assert_int_equal(w.loop.staging.idle, 4 * BUFFERS);
}

static void what_lies_apart_is_copied_apart(void **state)
{
	struct piece *pieces[4];

	(void)state;
	keep_busy();
	pieces[0] = read_piece(FREE + 1);
	pieces[1] = read_piece(FREE); /* the wrong order on the GPU */
	pieces[2] = read_piece(FREE + 3);
	pieces[3] = read_piece(FREE + 4);
	pieces[2]->filled -= 1; /* the file ends there */
	for (unsigned i = 0; i < 4; i++)
		ready(pieces[i]);
	w.finished = BUSY;
	copies_look(&w.loop);
	assert_int_equal(w.begun, BUSY + 4);
	for (unsigned i = 0; i < 4; i++)
		assert_ptr_equal(w.copies[BUSY + i].from, pieces[i]->buffer);
}

/* Behind a copy of 5 MiB another one waits for the engine, and a third one begins when the first
 * has ended. */
static void the_engine_has_a_copy_next(void **state)
{
	struct piece *pieces[5];

	(void)state;
	keep_busy();
	for (unsigned i = 0; i < 5; i++)
		pieces[i] = read_piece(FREE + i);
	for (unsigned i = 0; i < 5; i++)
		ready(pieces[i]);
	w.finished = BUSY;
	copies_look(&w.loop);
	assert_copy(BUSY, FREE, 5 * MIB, pieces[0]);
	ready(read_piece(0));
	assert_int_equal(w.begun, BUSY + 2);
	ready(read_piece(2));
	assert_int_equal(w.begun, BUSY + 2);
	w.finished = 1;
	copies_look(&w.loop);
	assert_int_equal(w.begun, BUSY + 3);
}

/* While the engine is busy. Then one copy does for both. */
static void a_copy_waits_for_what_is_being_read(void **state)
{
	struct piece *pieces[3];

	(void)state;
	ready(read_piece(0));
	assert_int_equal(w.begun, 1);
	for (unsigned i = 0; i < 3; i++) {
		pieces[i] = read_piece(FREE + i);
		pieces[i]->io.kind = IO_READ_CACHED;
	}
	ready(pieces[1]);
	ready(pieces[0]);
	assert_int_equal(w.begun, 1);
	ready(read_piece(SLOTS - 1)); /* has no neighbour */
	assert_copy(1, SLOTS - 1, MIB, w.loop.in.first->next);
	ready(pieces[2]);
	assert_copy(2, FREE, 3 * MIB, pieces[0]);
}

static void the_engine_waits_for_nobody(void **state)
{
	struct piece *pieces[2];

	(void)state;
	ready(read_piece(0));
	for (unsigned i = 0; i < 2; i++) {
		pieces[i] = read_piece(FREE + i);
		pieces[i]->io.kind = IO_READ_CACHED;
	}
	ready(pieces[0]);
	assert_int_equal(w.begun, 1);
	w.finished = 1;
	copies_look(&w.loop);
	assert_copy(1, FREE, MIB, pieces[0]);
}

static void the_engine_has_a_copy_before_it_stands_still(void **state)
{
	struct piece *pieces[3];

	(void)state;
	ready(read_piece(0));
	for (unsigned i = 0; i < 3; i++) {
		pieces[i] = read_piece(FREE + i);
		pieces[i]->io.kind = IO_READ_CACHED;
	}
	for (unsigned i = 0; i < 2; i++)
		ready(pieces[i]);
	w.now += 900000;
	assert_false(copies_look(&w.loop));
	assert_int_equal(w.begun, 1);
	w.now += 80000;
	assert_false(copies_look(&w.loop));
	assert_copy(1, FREE, 2 * MIB, pieces[0]);
	w.finished = 2;
	assert_true(copies_look(&w.loop));
	assert_int_equal(w.loop.copying, 0);
}

static void copies_show_the_rate(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		ready(read_piece(0));
		w.now += 500000;
		w.finished = 1;
		assert_true(copies_look(&w.loop));
		w.begun = w.n_ended = 0;
	}
	assert_in_range(w.loop.ns_per_mib, 500000, 510000);
}

/* A disk or a client may take long. */
static void only_readers_are_waited_for(void **state)
{
	struct piece *pieces[2];

	(void)state;
	ready(read_piece(0));
	for (unsigned i = 0; i < 2; i++) {
		pieces[i] = read_piece(FREE + i);
		pieces[i]->io.kind = IO_READ;
	}
	ready(pieces[0]);
	assert_copy(1, FREE, MIB, pieces[0]);
}

static void long_copies_do_not_wait(void **state)
{
	struct piece *pieces[9];

	(void)state;
	ready(read_piece(0));
	for (unsigned i = 0; i < 9; i++) {
		pieces[i] = read_piece(FREE + i);
		pieces[i]->io.kind = IO_READ_CACHED;
	}
	for (unsigned i = 0; i < 8; i++)
		ready(pieces[i]);
	assert_copy(1, FREE, 8 * MIB, pieces[0]);
}

static void one_copy_is_limited(void **state)
{
	struct piece *pieces[10];

	(void)state;
	keep_busy();
	for (unsigned i = 0; i < 10; i++)
		pieces[i] = read_piece(FREE + i);
	for (unsigned i = 0; i < 10; i++)
		ready(pieces[9 - i]);
	w.finished = 1;
	copies_look(&w.loop);
	assert_int_equal(w.begun, BUSY + 1);
	assert_copy(BUSY, FREE + 2, 8 * MIB, pieces[2]);
	w.finished = BUSY;
	copies_look(&w.loop);
	assert_int_equal(w.begun, BUSY + 2);
	assert_copy(BUSY + 1, FREE, 2 * MIB, pieces[0]);
}

/* None suffers from another's address. */
static void refused_copies_are_tried_apart(void **state)
{
	struct piece *pieces[3];

	(void)state;
	w.refused = REFUSED;
	keep_busy();
	for (uint32_t i = 0; i < 3; i++) {
		w.slots[FREE + i].request.address = ADDRESS + (4 + i) * MIB;
		pieces[i] = read_piece(FREE + i);
		ready(pieces[i]);
	}
	w.finished = BUSY;
	copies_look(&w.loop);
	assert_int_equal(w.begun, BUSY + 2);
	assert_copy(BUSY, 4, MIB, pieces[0]);
	assert_copy(BUSY + 1, 6, MIB, pieces[2]);
	assert_int_equal(w.n_ended, BUSY + 1);
	assert_ptr_equal(w.ended[BUSY].piece, pieces[1]);
	assert_int_equal(w.ended[BUSY].error, -EFAULT);
	w.finished = 2;
	copies_look(&w.loop);
	assert_int_equal(w.n_ended, BUSY + 3);
	assert_int_equal(w.loop.copying, 0);
}

static void copies_from_the_gpu_are_not_joined(void **state)
{
	struct piece *pieces[2] = {read_piece(8), read_piece(9)};

	(void)state;
	copies_out(&w.loop, pieces[0]);
	copies_out(&w.loop, pieces[1]);
	assert_int_equal(w.begun, 2);
	assert_int_equal(w.loop.copying, 0);
	w.finished = 2;
	assert_true(copies_look(&w.loop));
	assert_int_equal(w.n_ended, 2);
	w.refused = ADDRESS + 8 * MIB;
	copies_out(&w.loop, read_piece(8));
	assert_int_equal(w.ended[2].error, -EFAULT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pieces_follow_each_other),
		TEST(holes_are_used),
		TEST(small_pieces_are_apart),
		TEST(a_piece_alone_is_copied_at_once),
		TEST(neighbours_are_copied_together),
		TEST(what_lies_apart_is_copied_apart),
		TEST(the_engine_has_a_copy_next),
		TEST(one_copy_is_limited),
		TEST(a_copy_waits_for_what_is_being_read),
		TEST(the_engine_waits_for_nobody),
		TEST(the_engine_has_a_copy_before_it_stands_still),
		TEST(copies_show_the_rate),
		TEST(only_readers_are_waited_for),
		TEST(long_copies_do_not_wait),
		TEST(refused_copies_are_tried_apart),
		TEST(copies_from_the_gpu_are_not_joined),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
