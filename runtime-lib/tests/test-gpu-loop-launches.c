/* How long a loop's launches run, on a clock of the test's. */
#include "loop/launches.h"

#include "loop/governed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static uint64_t clock_ns;
static struct weir_loop_report reports[2];
static struct weir_loop loop;
static struct weir_loop_args begun; /* with these the last launch began */

uint64_t loop_now(void)
{
	return clock_ns;
}

void governed_launch(struct weir_loop *unused, struct weir_loop_args *args)
{
	(void)unused;
	(void)args;
}

int gpu_launch(struct gpu *gpu, const struct weir_loop_args *args, void **params)
{
	(void)gpu;
	(void)params;
	begun = *args;
	return 0;
}

static int begin(void **state)
{
	(void)state;
	clock_ns = 5000000;
	memset(reports, 0, sizeof(reports));
	loop = (struct weir_loop){.rings.reports = reports};
	return 0;
}

static struct weir_loop_report *report(void)
{
	return &reports[loop.serial & 1];
}

/* The host sees at once that the kernel has begun, and looks @late ns behind its end. */
static void launch(uint64_t ns, uint64_t late)
{
	assert_int_equal(launches_begin(&loop, NULL), 0);
	clock_ns += 1000;
	report()->begun = loop.serial;
	launches_watch(&loop, clock_ns);
	clock_ns += ns + late;
	launches_watch(&loop, clock_ns);
	report()->ran = ns;
	report()->serial = loop.serial;
	launches_left(&loop, launches_report(&loop));
}

static uint64_t told(void)
{
	return loop.state.ran;
}

static void it_is_what_the_kernel_says(void **state)
{
	(void)state;
	launch(20000, 0);
	assert_int_equal(told(), 20000);
	launch(30000, 0);
	assert_int_equal(told(), 50000);
}

static void a_kernel_that_stays_is_told_of_meanwhile(void **state)
{
	(void)state;
	assert_int_equal(launches_begin(&loop, NULL), 0);
	clock_ns += 1000;
	launches_watch(&loop, clock_ns);
	assert_int_equal(told(), 0);
	report()->begun = loop.serial;
	launches_watch(&loop, clock_ns);
	clock_ns += 700000;
	launches_watch(&loop, clock_ns);
	assert_int_equal(told(), 700000);
}

/* Time in which the kernel was leaving was told, too. The sum is right again after the next one. */
static void what_was_told_too_much_is_not_told_again(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 100; i++) {
		launch(20000, 900);
		assert_int_equal(told(), i * 20000 + 900);
	}
	launch(20000, 0);
	assert_in_range(told(), 101 * 20000, 101 * 20000 + 900);
	launch(20000, 0);
	assert_int_equal(told(), 102 * 20000);
}

static void a_kernel_cannot_have_run_for_longer_than_it_was_there(void **state)
{
	(void)state;
	assert_int_equal(launches_begin(&loop, NULL), 0);
	clock_ns += 40000;
	report()->ran = UINT64_MAX;
	report()->serial = loop.serial;
	launches_left(&loop, launches_report(&loop));
	assert_int_equal(told(), 40000);
}

/* The host works for a while before it sees that the kernel has left. What was wanted meanwhile was
 * wanted at once. */
static void a_kernel_that_is_wanted_while_it_leaves_was_not_away(void **state)
{
	(void)state;
	loop.stay = (struct stay){.most = 100000, .ns = 25000};
	launch(20000, 0);
	launches_back(&loop, clock_ns - 500);
	assert_int_equal(loop.state.blocked_time, 0);
	assert_int_equal(loop.stay.ns, 100000);
	launch(20000, 0);
	launches_back(&loop, clock_ns + 900000);
	assert_int_equal(loop.state.blocked_time, 900000);
	assert_in_range(loop.stay.ns, 50000, 99999);
}

/* A block that polls stands still, and a loop of one block has no other. */
static void a_block_that_is_alone_polls_less_often(void **state)
{
	static const struct {
		uint32_t blocks, ns;
	} cases[] = {{1, 16000}, {2, 8000}, {132, 8000}, {32768, 8000}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(state);
		loop.gpu.blocks = cases[i].blocks;
		assert_int_equal(launches_begin(&loop, NULL), 0);
		assert_int_equal(begun.words_ns, cases[i].ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(it_is_what_the_kernel_says, begin),
		cmocka_unit_test_setup(a_kernel_that_stays_is_told_of_meanwhile, begin),
		cmocka_unit_test_setup(what_was_told_too_much_is_not_told_again, begin),
		cmocka_unit_test_setup(a_kernel_cannot_have_run_for_longer_than_it_was_there,
				       begin),
		cmocka_unit_test_setup(a_kernel_that_is_wanted_while_it_leaves_was_not_away, begin),
		cmocka_unit_test(a_block_that_is_alone_polls_less_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
