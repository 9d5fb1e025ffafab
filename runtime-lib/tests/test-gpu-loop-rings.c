/* The memory that a loop shares with its kernel: what the kernel may write there, and what comes
 * out. */
#include "loop/rings.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BLOCKS    2u
#define CALLBACKS 4u
#define SLOTS     (BLOCKS * CALLBACKS)

struct world {
	struct rings rings;
	void *memory;
	uint32_t rung;        /* doorbells */
	uint32_t started[64]; /* slots, in order */
	uint32_t n_started;
	struct weir_loop_request last;
};

static int begin(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	size_t size = rings_size(SLOTS, rings_places(SLOTS));

	w->memory = aligned_alloc(4096, size);
	memset(w->memory, 0, size);
	*state = w;
	return rings_init(&w->rings, w->memory, BLOCKS, CALLBACKS);
}

static int end(void **state)
{
	struct world *w = *state;

	rings_deinit(&w->rings);
	free(w->memory);
	free(w);
	return 0;
}

static void on_start(void *context, uint32_t slot, const struct weir_loop_request *request)
{
	struct world *w = context;

	w->started[w->n_started++] = slot;
	w->last = *request;
}

/* As the kernel does. */
static void ask(struct world *w, uint32_t slot, uint16_t op, uint64_t size, uint16_t next)
{
	w->rings.requests[slot] =
		(struct weir_loop_request){.op = op, .size = size, .next = next, .file = 3};
}

static void ring(struct world *w, uint32_t slot)
{
	w->rings.doorbells[w->rung & (w->rings.ring - 1)] = WEIR_LOOP_DOORBELL(slot, w->rung + 1);
	w->rung++;
}

static bool take(struct world *w)
{
	w->n_started = 0;
	return rings_take(&w->rings, on_start, w);
}

/* The @n-th answer, from 0 on; 0: there is none yet. */
static uint64_t answer(const struct world *w, uint32_t n)
{
	uint64_t found = w->rings.answers[n & (w->rings.ring - 1)];

	return found >> 48 == (uint16_t)(n / w->rings.ring + 1) ? found : 0;
}

static void assert_answer(const struct world *w, uint32_t n, uint32_t slot, int32_t result)
{
	assert_int_equal((answer(w, n) >> 32) & 0xffff, slot);
	assert_int_equal((int32_t)answer(w, n), result);
}

static void batches_are_taken_in_order(void **state)
{
	struct world *w = *state;

	assert_false(take(w));
	ask(w, 3, WEIR_LOOP_READ, 10, 1);
	ask(w, 1, WEIR_LOOP_WRITE, 20, WEIR_LOOP_NO_SLOT);
	ring(w, 3);
	ask(w, 5, WEIR_LOOP_TIMER, 0, WEIR_LOOP_NO_SLOT);
	ring(w, 5);
	assert_true(take(w));
	assert_int_equal(w->n_started, 2);
	assert_int_equal(w->started[0], 3);
	assert_int_equal(w->started[1], 1);
	assert_true(take(w));
	assert_int_equal(w->started[0], 5);
	assert_false(take(w));
	assert_int_equal(w->rings.refused, 0);
}

static void rings_go_round(void **state)
{
	struct world *w = *state;

	for (uint32_t i = 0; i < 10 * w->rings.ring; i++) {
		ask(w, i % SLOTS, WEIR_LOOP_TIMER, 0, WEIR_LOOP_NO_SLOT);
		ring(w, i % SLOTS);
		assert_true(take(w));
		assert_int_equal(answer(w, i), 0);
		rings_answer(&w->rings, i % SLOTS, -(int32_t)i);
		assert_answer(w, i, i % SLOTS, -(int32_t)i);
	}
	rings_close(&w->rings, WEIR_LOOP_ASKED);
	assert_answer(w, 10 * w->rings.ring, WEIR_LOOP_NO_SLOT, WEIR_LOOP_ASKED);
}

static void bad_requests_are_answered(void **state)
{
	static const struct {
		uint16_t op;
		uint64_t size, offset;
		int error;
		uint64_t extra;
	} cases[] = {
		{0, 0, 0, -ENOSYS},
		{WEIR_LOOP_OPS, 0, 0, -ENOSYS},
		{0xffff, 0, 0, -ENOSYS},
		{WEIR_LOOP_OPEN, WEIR_LOOP_INLINE, 0, -ENAMETOOLONG},
		{WEIR_LOOP_LISTEN, UINT64_MAX, 0, -ENAMETOOLONG},
		{WEIR_LOOP_LISTEN, 1, 0, -EINVAL, (WEIR_LOOP_INLINE + 1ull) << 32},
		{WEIR_LOOP_CONNECT, WEIR_LOOP_INLINE, 0, -ENAMETOOLONG},
		{WEIR_LOOP_CALL, WEIR_LOOP_INLINE + 1, 0, -EINVAL},
		{WEIR_LOOP_READ, WEIR_LOOP_SIZE_MAX + 1ull, 0, -EINVAL},
		{WEIR_LOOP_WRITE, UINT64_MAX, 0, -EINVAL},
		{WEIR_LOOP_READ, 1, UINT64_MAX, -EINVAL},
		{WEIR_LOOP_WRITE, 1, INT64_MAX, -EINVAL},
		{WEIR_LOOP_SEND, WEIR_LOOP_SIZE_MAX + 1ull, 0, -EINVAL},
		{WEIR_LOOP_RECEIVE, UINT64_MAX, 0, -EINVAL},
		{WEIR_LOOP_RECEIVE_ANY, UINT64_MAX, 0, -EINVAL},
	};
	struct world *w = *state;

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ask(w, 2, cases[i].op, cases[i].size, WEIR_LOOP_NO_SLOT);
		w->rings.requests[2].offset = cases[i].offset;
		w->rings.requests[2].extra = cases[i].extra;
		ring(w, 2);
		assert_true(take(w));
		assert_int_equal(w->n_started, 0);
		assert_answer(w, i, 2, cases[i].error);
		assert_int_equal(w->rings.refused, i + 1);
	}
}

static void text_ends_where_it_should(void **state)
{
	struct world *w = *state;

	memset(rings_data(&w->rings, 1), 'x', WEIR_LOOP_INLINE);
	ask(w, 1, WEIR_LOOP_OPEN, WEIR_LOOP_INLINE - 1, WEIR_LOOP_NO_SLOT);
	ring(w, 1);
	assert_true(take(w));
	assert_int_equal(strlen((char *)rings_data(&w->rings, 1)), WEIR_LOOP_INLINE - 1);
}

static void slots_that_do_not_exist_are_ignored(void **state)
{
	static const uint32_t slots[] = {SLOTS, 0xfffe, 0xffff, 0x10000, UINT32_MAX};
	struct world *w = *state;

	for (uint32_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		ring(w, slots[i]);
		assert_true(take(w));
		assert_int_equal(w->n_started, 0);
		assert_int_equal(w->rings.refused, i + 1);
	}
	assert_int_equal(answer(w, 0), 0);
}

static void a_busy_slot_is_not_asked_twice(void **state)
{
	struct world *w = *state;

	ask(w, 4, WEIR_LOOP_TIMER, 0, WEIR_LOOP_NO_SLOT);
	ring(w, 4);
	assert_true(take(w));
	ring(w, 4);
	assert_true(take(w));
	assert_int_equal(w->n_started, 0);
	assert_int_equal(w->rings.refused, 1);
	rings_answer(&w->rings, 4, 0);
	ring(w, 4);
	assert_true(take(w));
	assert_int_equal(w->n_started, 1);
}

static void a_batch_in_a_circle_ends(void **state)
{
	struct world *w = *state;

	ask(w, 0, WEIR_LOOP_TIMER, 0, 1);
	ask(w, 1, WEIR_LOOP_TIMER, 0, 2);
	ask(w, 2, WEIR_LOOP_TIMER, 0, 0);
	ring(w, 0);
	assert_true(take(w));
	assert_int_equal(w->n_started, 3);
	assert_int_equal(w->rings.refused, 1);
}

static void a_batch_of_refused_requests_ends(void **state)
{
	struct world *w = *state;

	/* Answered at once, so its slot is free, and it is next to itself. */
	ask(w, 0, 0, 0, 0);
	ring(w, 0);
	assert_true(take(w));
	assert_int_equal(w->n_started, 0);
	assert_true(w->rings.given <= SLOTS);
}

static void a_request_is_read_once(void **state)
{
	struct world *w = *state;

	ask(w, 0, WEIR_LOOP_READ, 100, WEIR_LOOP_NO_SLOT);
	ring(w, 0);
	assert_true(take(w));
	w->rings.requests[0].size = UINT64_MAX;
	assert_int_equal(w->last.size, 100);
}

static void sizes_are_limited(void **state)
{
	struct rings rings;

	(void)state;
	assert_int_equal(rings_init(&rings, NULL, 0, 1), -EINVAL);
	assert_int_equal(rings_init(&rings, NULL, 1, 0), -EINVAL);
	assert_int_equal(rings_init(&rings, NULL, 1, WEIR_LOOP_CALLBACKS_MAX + 1), -EINVAL);
	assert_int_equal(rings_init(&rings, NULL, WEIR_LOOP_SLOTS_MAX + 1, 1), -EINVAL);
	assert_int_equal(rings_init(&rings, NULL, UINT32_MAX, 2), -EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(batches_are_taken_in_order),
		TEST(rings_go_round),
		TEST(bad_requests_are_answered),
		TEST(text_ends_where_it_should),
		TEST(slots_that_do_not_exist_are_ignored),
		TEST(a_busy_slot_is_not_asked_twice),
		TEST(a_batch_in_a_circle_ends),
		TEST(a_batch_of_refused_requests_ends),
		TEST(a_request_is_read_once),
		cmocka_unit_test(sizes_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
