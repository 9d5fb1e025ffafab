/* Which transfers have staging buffers next. Reads end when the test says so; the copy engine is
 * always done. */
#include "loop/copies.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SLOTS   100u
#define READS   512u
#define MIB     ((uint64_t)1 << 20)
#define ADDRESS ((uint64_t)1 << 40)

static struct world {
	struct weir_loop loop;
	struct slot slots[SLOTS];
	struct handle file;
	struct io *reads[READS]; /* begun, in order */
	unsigned begun;
	unsigned answered;
} w;

uint64_t loop_now(void)
{
	return 0;
}

void *gpu_host_alloc(struct gpu *gpu, size_t size)
{
	(void)gpu;
	return malloc(size);
}

void gpu_host_free(void *memory)
{
	free(memory);
}

int gpu_use(const struct gpu *gpu)
{
	(void)gpu;
	return 0;
}

int gpu_copy_in(struct gpu *gpu, CUdeviceptr to, const void *from, size_t size, CUevent event)
{
	(void)gpu;
	(void)to;
	(void)from;
	(void)size;
	(void)event;
	return 0;
}

int gpu_copied(struct gpu *gpu, CUevent event)
{
	(void)gpu;
	(void)event;
	return 0;
}

void loop_submit(struct weir_loop *loop, struct io *io)
{
	(void)loop;
	(void)io;
	fail_msg("not to the engine");
}

void loop_submit_read(struct weir_loop *loop, struct io *io)
{
	io->owner = loop;
	loop->reading++;
	assert_in_range(w.begun, 0, READS - 1);
	w.reads[w.begun++] = io;
}

uint64_t network_take(struct weir_loop *loop, const struct slot *slot, void *to, uint64_t size)
{
	(void)loop;
	(void)slot;
	(void)to;
	(void)size;
	return 0;
}

bool network_answers(struct weir_loop *loop, struct slot *slot)
{
	(void)loop;
	(void)slot;
	return false;
}

void requests_transferred(struct weir_loop *loop, struct slot *slot, int64_t result)
{
	(void)loop;
	assert_int_equal(result, slot->request.size);
	w.answered++;
}

static int begin(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.loop.slots = w.slots;
	w.loop.options = (struct weir_loop_options){.staging = 1, .readers = 1};
	w.loop.rings.parts = calloc(SLOTS, sizeof(uint64_t));
	w.file = (struct handle){.kind = HANDLE_FILE, .fd = -1, .direct = -1};
	return transfers_init(&w.loop, 1);
}

static int end(void **state)
{
	(void)state;
	transfers_deinit(&w.loop);
	free(w.loop.rings.parts);
	return 0;
}

static void ask(uint32_t slot, uint64_t address, uint64_t size)
{
	w.slots[slot].request =
		(struct weir_loop_request){.op = WEIR_LOOP_READ, .address = address, .size = size};
	w.slots[slot].handle = &w.file;
	transfer_begin(&w.loop, &w.slots[slot], 0);
}

static void end_read(struct io *io)
{
	w.loop.reading--;
	io->result = (int64_t)io->size;
	io->finish(io);
	transfers_look(&w.loop);
}

/* The slot whose read is number @n. All before it end. */
static uint32_t slot_of_read(unsigned n)
{
	static unsigned ended;

	for (ended = n ? ended : 0; ended < n; ended++)
		end_read(w.reads[ended]);
	assert_in_range(w.begun, n + 1, READS);
	return ((struct piece *)((char *)w.reads[n] - offsetof(struct piece, io)))->slot;
}

static void assert_order(const uint32_t *slots, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(slot_of_read(i), slots[i]);
}

static void what_follows_on_the_gpu_is_next(void **state)
{
	static const uint32_t order[] = {0, 3, 2, 4, 1};

	(void)state;
	ask(0, ADDRESS, MIB);
	ask(1, ADDRESS + 8 * MIB, MIB);
	ask(2, ADDRESS + 2 * MIB, MIB);
	ask(3, ADDRESS + MIB, MIB);
	ask(4, ADDRESS + 3 * MIB, MIB);
	assert_int_equal(w.begun, 1); /* there is one buffer */
	assert_order(order, 5);
	assert_int_equal(w.answered, 4);
}

/* After 16 MiB it is the turn of the transfer that has waited for the longest. */
static void nobody_waits_for_ever(void **state)
{
	static const uint32_t order[] = {0, 2, 3, 4, 5, 6, 7, 8, 1, 9, 10};

	(void)state;
	ask(0, ADDRESS, 2 * MIB);
	ask(1, ADDRESS + 100 * MIB, MIB);
	for (uint32_t i = 2; i < 11; i++)
		ask(i, ADDRESS + (i - 1) * 2 * MIB, 2 * MIB);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(slot_of_read(2 * i), order[i]);
		assert_int_equal(slot_of_read(2 * i + 1), order[i]);
	}
	for (unsigned i = 8; i < 11; i++)
		assert_int_equal(slot_of_read(2 * i - (i > 8)), order[i]);
}

/* Nobody takes the rest of a buffer that the next transfer waits for: pieces would get shorter. */
static void who_finds_no_room_is_next(void **state)
{
	const uint64_t unit = STAGING_UNIT;

	(void)state;
	ask(0, ADDRESS, 3 * unit);
	ask(1, ADDRESS + 8 * MIB, MIB);
	ask(2, ADDRESS + 3 * unit, unit); /* would follow the first */
	assert_int_equal(slot_of_read(0), 0);
	assert_int_equal(w.begun, 1);
	assert_int_equal(slot_of_read(1), 1);
	assert_int_equal(w.reads[1]->size, MIB);
	assert_int_equal(slot_of_read(2), 2);
}

/* Of the first requests several idle readers read a part each. Then each of the others is one
 * piece, in whatever order pieces end: nobody takes the room of a part. */
static void pieces_stay_long(void **state)
{
	const unsigned readers = 6, buffers = 16;
	uint32_t random = 1;
	unsigned under_way;

	(void)state;
	transfers_deinit(&w.loop);
	w.loop.options = (struct weir_loop_options){.staging = buffers, .readers = readers};
	assert_int_equal(transfers_init(&w.loop, buffers), 0);
	for (uint32_t i = 0; i < SLOTS; i++)
		ask(i, ADDRESS + i * MIB, MIB);
	for (unsigned ended = 0; ended < w.begun; ended++) {
		under_way = w.begun - ended;
		random = random * 1664525u + 1013904223u;
		struct io **read =
			&w.reads[ended +
				 (random >> 16) % (under_way < readers ? under_way : readers)];
		struct io *io = *read;
		*read = w.reads[ended];
		end_read(io);
	}
	assert_int_equal(w.answered, SLOTS);
	assert_in_range(w.begun, SLOTS + 1, SLOTS + 2 * readers);
}

/* Neither buffers nor readers are for what lies behind the end of the file. */
static void reads_end_with_the_file(void **state)
{
	const uint64_t size = 5 * MIB - 100;
	FILE *file = tmpfile();
	uint64_t read = 0;

	(void)state;
	assert_non_null(file);
	w.file.fd = fileno(file);
	assert_int_equal(ftruncate(w.file.fd, (off_t)size), 0);
	ask(0, ADDRESS, 100 * MIB);
	for (unsigned i = 0; read < size; i++) {
		assert_int_equal(slot_of_read(i), 0);
		read += w.reads[i]->size;
	}
	assert_int_equal(read, size);
	assert_int_equal(slot_of_read(w.begun - 1), 0);
	fclose(file);
}

/* A transfer alone goes on, and so does the list when its last one was taken out. */
static void lists_stay_whole(void **state)
{
	static const uint32_t order[] = {0, 2, 1, 3};

	(void)state;
	ask(0, ADDRESS, MIB);
	ask(1, ADDRESS + 8 * MIB, MIB);
	ask(2, ADDRESS + MIB, MIB); /* the last of the list */
	assert_int_equal(slot_of_read(0), 0);
	assert_int_equal(slot_of_read(1), 2);
	ask(3, ADDRESS + 20 * MIB, 2 * MIB);
	for (unsigned i = 2; i < 4; i++)
		assert_int_equal(slot_of_read(i), order[i]);
	assert_int_equal(slot_of_read(4), 3);
	assert_int_equal(w.answered, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_follows_on_the_gpu_is_next), TEST(nobody_waits_for_ever),
		TEST(who_finds_no_room_is_next),       TEST(pieces_stay_long),
		TEST(reads_end_with_the_file),         TEST(lists_stay_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
