/* What scheduling points, looks and polls of a loop cost: accesses and instructions of one block.
 */
#include "one-block.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* A look at device memory may come by time. That is rare. */
#define RARE (POINTS / 10)

static uint64_t touched(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < PARTS; i++)
		sum += w.touched[i];
	return sum;
}

static const char *const points[] = {"points_post", "points_look"};

/* Two slots in shared memory do for tasks that post the next one. */
static void points_touch_shared_memory_only(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		begin(state);
		must_leave(points[i], 1, 0);
		uint64_t few = touched();
		begin(state);
		must_leave(points[i], POINTS + 1, 0);
		assert_in_range(touched() - few, 0, RARE);
	}
}

static void must_take(const char *kernel, uint32_t threads, uint64_t least, uint64_t most)
{
	for (int i = 0; i < 2; i++) {
		begin(NULL);
		w.threads = threads;
		assert_int_equal(launch(kernel, POINTS, POINTS * (i ? most : least)),
				 i ? 0 : -ETIME);
	}
}

/* Of both warps: 148 and 30 with nvcc 13.0. */
static void points_take_few_instructions(void **state)
{
	(void)state;
	must_take("points_post", THREADS, 10, 160);
	must_take("points_look", THREADS, 10, 40);
}

/* Of 16 warps: 696. The first one alone knows the callbacks; each of the others takes 39. */
static void other_warps_do_less(void **state)
{
	(void)state;
	must_take("points_post", 512, 10, 730);
}

/* A loop that has come back runs in callbacks. */
static void points_of_callbacks_cost_no_more(void **state)
{
	begin(state);
	w.host.hold = 1;
	must_leave("points_look", POINTS, WEIR_LOOP_EVICTED | WEIR_LOOP_READY);
	w.host.hold = 0;
	assert_int_equal(launch("points_look", POINTS, POINTS * 40), 0);
	assert_int_equal(w.host.report.ended, 1);
}

/* A poll takes microseconds, and a loop that takes turns with others comes back hundreds of times a
 * second. */
static void a_kernel_that_comes_back_does_not_poll_first(void **state)
{
	begin(state);
	w.host.hold = 1;
	must_leave("points_look", POINTS, WEIR_LOOP_EVICTED | WEIR_LOOP_READY);
	uint32_t polls = w.host.report.polls;
	w.host.hold = 0;
	must_leave("points_look", POINTS, 0);
	assert_int_equal(w.host.report.ended, 1);
	assert_int_equal(w.host.report.polls, polls);
}

static char *read_kernels(void)
{
	const size_t room = 8 << 20;
	FILE *file = fopen(LOOP_KERNELS, "r");
	char *text = malloc(room);

	assert_non_null(file);
	assert_non_null(text);
	size_t n = fread(text, 1, room - 1, file);
	fclose(file);
	assert_in_range(n, 1, room - 2);
	text[n] = '\0';
	return text;
}

/* A loop in local memory would be written and read by every warp at each point. Only a poll has a
 * variable there: the slots of its answers. */
static void loops_are_in_registers(void **state)
{
	const char *slots = "[64];";
	char *text = read_kernels();
	unsigned n = 0;

	(void)state;
	for (const char *at = text; (at = strstr(at, "__local_depot")); n++) {
		at += strcspn(at, "[\n");
		assert_true(*at != '[' || strncmp(at, slots, strlen(slots)) == 0);
	}
	assert_true(n >= 3);
	free(text);
}

/* Each of POINTS points looks. A look reads a word of the loop and one of the block. */
static void a_look_reads_two_words(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		begin(state);
		w.params.args.check_cycles = 0;
		w.params.args.poll_ns = w.params.args.words_ns = 2000000000;
		must_leave(points[i], POINTS, 0);
		/* A few: to begin, to poll at first, and to leave. */
		assert_in_range(w.touched[DEVICE], POINTS, POINTS + RARE);
		assert_in_range(w.touched[BLOCK], POINTS, POINTS + RARE);
		assert_in_range(w.touched[HOST], 3, RARE);
	}
}

/* Each of POINTS points polls. Demand, hold and answers are one read each. */
static void a_poll_reads_three_words_of_the_host(void **state)
{
	begin(state);
	w.params.args.check_cycles = 0;
	must_leave("points_look", POINTS, 0);
	assert_in_range(w.touched[HOST], 3 * POINTS - RARE, 3 * POINTS + RARE);
	assert_in_range(w.host.report.polls, POINTS - RARE, POINTS + RARE);
	assert_in_range(w.touched[DEVICE], POINTS, 8 * POINTS + RARE);
}

/* The block that polls stands still meanwhile, so busy ones poll only as often as they must. */
static void busy_blocks_poll_for_demand_alone(void **state)
{
	begin(state);
	w.params.args.check_cycles = 0;
	w.params.args.words_ns = 2000000000;
	must_leave("points_look", POINTS, 0);
	assert_in_range(w.host.report.polls, 0, RARE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(points_touch_shared_memory_only),
		cmocka_unit_test(points_take_few_instructions),
		cmocka_unit_test(other_warps_do_less),
		cmocka_unit_test(points_of_callbacks_cost_no_more),
		cmocka_unit_test(a_kernel_that_comes_back_does_not_poll_first),
		cmocka_unit_test(loops_are_in_registers),
		cmocka_unit_test(a_look_reads_two_words),
		cmocka_unit_test(a_poll_reads_three_words_of_the_host),
		cmocka_unit_test(busy_blocks_poll_for_demand_alone),
	};

	return cmocka_run_group_tests(tests, one_block_begin, one_block_end);
}
