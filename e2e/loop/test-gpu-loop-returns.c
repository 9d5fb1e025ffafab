/* What the device side of a loop does, access by access, in one block without a host: when the
 * kernel leaves, that it comes back to where it was, and that nothing waits for a host that is
 * gone. */
#include "one-block.h"

/* Demand and hold: the kernel leaves at its next look, and goes on later. */
static void a_busy_kernel_leaves_when_it_must(void **state)
{
	uint64_t n = POINTS;

	for (size_t i = 0; i < 2; i++) {
		begin(state);
		w.params.args.check_cycles = 0;
		w.host.demand = i ? 0 : 2;
		w.host.hold = i ? 1 : 0;
		must_leave("spinner", n, WEIR_LOOP_EVICTED | WEIR_LOOP_READY);
		assert_int_equal(w.host.report.ended, 0);
		assert_in_range(w.out[0], 1, 2);
		w.host.demand = 1; /* of a level that is none of the kernel's business */
		w.host.hold = 0;
		must_leave("spinner", n, 0);
		assert_int_equal(w.host.report.ended, 1);
		assert_int_equal(w.out[0], n);
	}
}

/* A block that leaves in the middle of its chunk comes back to the rest of it. */
static void numbers_drawn_are_kept(void **state)
{
	static const char *const kernels[] = {"shared_out", "shared_out_by_four",
					      "shared_out_alone"};
	static const uint32_t chunks[] = {1, 4, 4};

	for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
		uint64_t n = 22;
		begin(state);
		w.params.args.check_cycles = 0;
		w.host.hold = 1;
		must_leave(kernels[i], n, WEIR_LOOP_EVICTED | WEIR_LOOP_READY);
		assert_int_equal(w.out[0], 1);
		assert_int_equal(w.out[3], 0);
		assert_int_equal(w.host.report.ended, 0);
		w.host.hold = 0;
		must_leave(kernels[i], n, 0);
		assert_int_equal(w.host.report.ended, 1);
		assert_int_equal(w.out[0], n);
		assert_int_equal(w.out[1], (n - 1) * n / 2);
		assert_int_equal(w.out[2], (n / chunks[i] + 1) * chunks[i]);
		assert_int_equal(w.out[3], i < 2);
	}
}

/* A block draws before its body. If it leaves behind the body, it comes back to the number that is
 * drawn and not done. */
static void a_number_drawn_ahead_is_next(void **state)
{
	const uint64_t n = 20;

	begin(state);
	w.params.args.check_cycles = 0;
	w.host.hold = 1;
	for (uint64_t done = 1; done <= n; done++) {
		bool ends = done == n;
		must_leave("drawn_ahead", n, WEIR_LOOP_EVICTED | (ends ? 0 : WEIR_LOOP_READY));
		assert_int_equal(w.host.report.ended, ends);
		assert_int_equal(w.out[0], done);
		assert_int_equal(w.out[1], done + 1);
	}
	for (uint64_t i = 0; i < n; i++) {
		assert_int_equal(w.out[16 + 2 * i], i);
		assert_int_equal(w.out[17 + 2 * i], i + 2);
	}
}

/* Warps stop at different places, and each goes on from its own. */
static void a_body_that_stopped_goes_on(void **state)
{
	const uint64_t bodies = 5, steps = 10 * (THREADS / 32);
	uint64_t before = 0;

	begin(state);
	w.params.args.check_cycles = 0;
	w.host.hold = 1;
	for (int i = 0; i < 3; i++) {
		must_leave("long_bodies", bodies, WEIR_LOOP_EVICTED | WEIR_LOOP_READY);
		assert_int_equal(w.host.report.ended, 0);
		assert_in_range(w.out[0], before + 1, before + steps);
		before = w.out[0];
	}
	w.host.hold = 0;
	must_leave("long_bodies", bodies, 0);
	assert_int_equal(w.host.report.ended, 1);
	assert_int_equal(w.out[0], bodies * steps);
}

/* Accesses between the moment when a kernel finds that it must leave and its report. */
static void leaving_is_short(void **state)
{
	begin(state);
	w.params.args.check_cycles = 0;
	w.host.hold = 1;
	must_leave("spinner", POINTS, WEIR_LOOP_EVICTED | WEIR_LOOP_READY);
	/* A warp copies two slots; then bits, counters, the report. */
	assert_in_range(w.touched[BLOCK], 1, 24);
	assert_in_range(w.touched[DEVICE], 1, 32);
	assert_in_range(w.touched[HOST], 1, 12);
}

/* Neither loading the state nor storing it is time that callbacks could use. */
static void the_time_of_a_launch_is_that_of_its_callbacks(void **state)
{
	begin(state);
	w.params.args.check_cycles = 0;
	w.host.hold = 1;
	for (int i = 0; i < 3; i++) {
		must_leave("spinner", POINTS, WEIR_LOOP_EVICTED | WEIR_LOOP_READY);
		assert_int_equal(w.loaded != 0, i > 0);
		assert_true(w.device.began >= w.loaded);
		assert_true(w.stored && w.device.began + w.host.report.ran <= w.stored);
		assert_true(w.host.report.ran > 0);
		assert_int_equal(w.host.report.begun, w.params.args.serial);
	}
}

/* Nobody takes requests, nobody answers. */
static void a_kernel_whose_host_is_gone_leaves(void **state)
{
	static const char *const kernels[] = {"timers", "round_trips"};

	for (size_t i = 0; i < 2; i++) {
		begin(state);
		must_leave(kernels[i], 1, WEIR_LOOP_BLOCKED);
		assert_int_equal(w.host.report.ended, 0);
		assert_true(w.host.doorbells[0] != 0);
		/* Again, as if it had been launched without an answer. */
		must_leave(kernels[i], 1, WEIR_LOOP_BLOCKED);
	}
}

/* Places of the ring that the host has not written in this lap. */
static void answers_of_another_lap_are_none(void **state)
{
	begin(state);
	for (uint32_t i = 0; i < RING; i++)
		w.host.answers[i] = WEIR_LOOP_ANSWER(0, 2, 0);
	must_leave("round_trips", 1, WEIR_LOOP_BLOCKED);
	assert_int_equal(w.host.report.answers, 0);
}

/* Answers that came while the kernel was away: both of one access, and one of the next. */
static void answers_are_taken_together(void **state)
{
	uint32_t n = 3; /* timers */

	begin(state);
	must_leave("timers", 0, WEIR_LOOP_BLOCKED);
	for (uint32_t i = 0; i < n; i++)
		w.host.answers[i] = WEIR_LOOP_ANSWER(i, 1, 0);
	must_leave("timers", 0, 0);
	assert_int_equal(w.host.report.answers, n);
	assert_int_equal(w.host.report.ended, 1);
	assert_int_equal(w.out[0], 2 | 4 | 8);
}

/* Two slots are in shared memory, the others in device memory. */
static void full_slots_are_an_error(void **state)
{
	begin(state);
	must_leave("spill", CALLBACKS + 3, 0);
	assert_int_equal(w.out[0], CALLBACKS);
	assert_int_equal(w.out[1], 3);
}

/* There is no slot for what would go on later: the callback is not cut, and the kernel leaves
 * behind it. */
static void a_block_without_room_does_not_yield(void **state)
{
	begin(state);
	w.params.args.check_cycles = 0;
	w.host.hold = 1;
	must_leave("crowded", POINTS, WEIR_LOOP_EVICTED | WEIR_LOOP_READY);
	assert_int_equal(w.out[0], POINTS);
	assert_int_equal(w.out[1], 0);
	w.host.hold = 0;
	must_leave("crowded", POINTS, 0);
	assert_int_equal(w.out[0], POINTS);
	assert_int_equal(w.out[1], CALLBACKS);
	assert_int_equal(w.out[2], 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_busy_kernel_leaves_when_it_must),
		cmocka_unit_test(numbers_drawn_are_kept),
		cmocka_unit_test(a_number_drawn_ahead_is_next),
		cmocka_unit_test(a_body_that_stopped_goes_on),
		cmocka_unit_test(leaving_is_short),
		cmocka_unit_test(the_time_of_a_launch_is_that_of_its_callbacks),
		cmocka_unit_test(a_kernel_whose_host_is_gone_leaves),
		cmocka_unit_test(answers_of_another_lap_are_none),
		cmocka_unit_test(answers_are_taken_together),
		cmocka_unit_test(full_slots_are_an_error),
		cmocka_unit_test(a_block_without_room_does_not_yield),
	};

	return cmocka_run_group_tests(tests, one_block_begin, one_block_end);
}
