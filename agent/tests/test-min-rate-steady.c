/* Minimum rates of containers that always have work. */
#include "min-rate-model.h"

/* In each second, whatever the speed beside the other, the clock, the launches and the predictions.
 */
static void meets(void **state)
{
	static const uint64_t besides[] = {0, 300, 480}, clocks[] = {1000, 700},
			      launches[] = {20 * US, 200 * US, 3 * MS}, predictions[] = {800, 1300};

	(void)state;
	for (uint32_t wanted = 500; wanted <= 900; wanted += 100)
		for (unsigned i = 0; i < 36; i++) {
			struct model model = new_model(wanted);
			model.beside = besides[i % 3];
			model.launch = launches[i / 3 % 3];
			model.clock = clocks[i / 9 % 2];
			model.predicted = predictions[i / 18];
			run(&model, 2 * SECOND);
			for (unsigned second = 0; second < 4; second++)
				assert_in_range(had(&model, SECOND), wanted - 20, wanted + 30);
			assert_false(model.rate.missed);
			assert_in_range(model.rate.attained, wanted - 20, wanted + 23);
		}
}

/* A queue of many steps, of which the client hears each few milliseconds: in two seconds. */
static void meets_with_a_long_queue(void **state)
{
	(void)state;
	for (uint32_t wanted = 500; wanted <= 900; wanted += 100)
		for (uint64_t report = MS; report <= 5 * MS; report += MS) {
			struct model model = new_model(wanted);
			model.beside = 60;
			model.report = report;
			model.lag = 2 * MS;
			run(&model, SECOND);
			for (unsigned i = 0; i < 10; i++)
				assert_in_range(had(&model, 2 * SECOND), wanted - 15, wanted + 15);
		}
}

/* A training step whose processor is too slow for the GPU for half a second at a time, as on an
 * H100. What it lacks while it is slow alone it gets when it is fast. */
static void meets_at_uneven_speed(void **state)
{
	(void)state;
	for (uint64_t report = MS; report <= 5 * MS; report += 2 * MS) {
		struct model model = new_model(900);
		model.beside = 60;
		model.report = report;
		uint64_t done = 0;
		for (unsigned half = 0; half < 12; half++) {
			model.clock = half % 2 ? 600 : 1000;
			done = half == 4 ? model.done : done;
			run(&model, SECOND / 2);
		}
		assert_in_range((model.done - done) * 1000 / (4 * SECOND * 8 / 10), 845, 920);
	}
}

/* Launches that are longer than the time in which others are out: over several of them. */
static void meets_with_long_launches(void **state)
{
	(void)state;
	for (uint32_t wanted = 500; wanted <= 900; wanted += 100) {
		struct model model = new_model(wanted);
		model.beside = 200;
		model.launch = 20 * MS;
		run(&model, 4 * SECOND);
		assert_in_range(had(&model, 10 * SECOND), wanted - 20, wanted + 20);
	}
}

/* Others have launches of 8 ms, which only end. */
static void waits_until_others_have_left(void **state)
{
	struct model model = new_model(700);

	(void)state;
	model.lag = 8 * MS;
	model.beside = 100;
	run(&model, 2 * SECOND);
	assert_in_range(had(&model, 4 * SECOND), 680, 730);
}

/* Another program of the container keeps the GPU busy for a quarter of its time. What is known of
 * its speed alone follows at once, so others do not wait for what it cannot do. */
static void follows_another_program(void **state)
{
	struct model model = new_model(900);

	(void)state;
	model.beside = 500;
	run(&model, 3 * SECOND);
	model.predicted = 250;
	model.executed = model.reported = model.done / model.launch * model.launch / 4;
	run(&model, 200 * MS);
	assert_in_range(left(&model, SECOND), 60, 110);
	model.predicted = 1000;
	model.executed = model.reported = model.done / model.launch * model.launch;
	run(&model, 2 * SECOND);
	assert_in_range(had(&model, SECOND), 880, 920);
}

/* It is another process, so the difference need not be large. One that begins processes all the
 * time does not keep others out by that. */
static void follows_another_process(void **state)
{
	struct model model = new_model(900);

	(void)state;
	model.beside = 950;
	run(&model, 3 * SECOND);
	model.predicted = 750;
	model.executed = model.reported = model.done / model.launch * model.launch * 3 / 4;
	model.begins = true;
	run(&model, 100 * MS);
	assert_in_range(model.rate.alone.work * 1000 / model.rate.alone.time, 730, 770);
	uint64_t other = model.other, from = model.now;
	for (unsigned i = 0; i < 500; i++) {
		model.begins = true;
		run(&model, 4 * MS);
	}
	assert_in_range((model.other - other) * 1000 / (model.now - from), 25, 50);
}

/* What is left over goes to others: all of it if it is fast enough beside them. */
static void leaves_the_rest(void **state)
{
	struct model model = new_model(500);

	(void)state;
	model.beside = 700;
	run(&model, SECOND);
	assert_in_range(had(&model, 2 * SECOND), 690, 710);
	assert_in_range(left(&model, SECOND), 290, 300);
	model.beside = 0;
	run(&model, 2 * SECOND);
	assert_in_range(left(&model, SECOND), 470, 520);
	min_rate_set(&model.rate, 900);
	run(&model, SECOND);
	assert_in_range(left(&model, 2 * SECOND), 70, 120);
	min_rate_set(&model.rate, MIN_RATE_ONE);
	run(&model, SECOND);
	assert_in_range(left(&model, SECOND), 0, 2);
}

/* The clock falls, the other one becomes another: it is met again soon. */
static void follows(void **state)
{
	struct model model = new_model(800);

	(void)state;
	model.beside = 100;
	run(&model, 2 * SECOND);
	model.clock = 750;
	run(&model, 3 * SECOND);
	assert_in_range(had(&model, SECOND), 780, 820);
	model.beside = 600;
	run(&model, SECOND);
	assert_in_range(had(&model, SECOND), 780, 820);
}

/* While nobody else wanted the GPU it earned nothing to be slowed down for later. */
static void time_alone_is_no_credit(void **state)
{
	struct model model = new_model(800);

	(void)state;
	model.gone = true;
	run(&model, 20 * SECOND);
	model.gone = false;
	model.beside = 0;
	assert_in_range(had(&model, SECOND), 780, 820);
}

/* Alone for weeks it stays ahead, though it reports nothing. */
static void stays_ahead_alone(void **state)
{
	struct model model = new_model(900);
	struct min_rate_use use = {.time = SECOND, .alone = true};

	(void)state;
	run(&model, SECOND);
	for (unsigned day = 0; day < 70; day++) {
		for (unsigned second = 0; second < 86400; second++)
			min_rate_charge(&model.rate, &use);
		assert_true(model.rate.ahead);
	}
}

/* A client that reports no work, too much, or more by the second, does not keep others out: they
 * have about a quarter of their part. */
static void lies_gain_little(void **state)
{
	(void)state;
	for (uint32_t wanted = 500; wanted <= 900; wanted += 100) {
		struct model model = new_model(wanted);
		run(&model, SECOND); /* honestly at first */
		model.lies = 1;
		run(&model, SECOND);
		assert_in_range(left(&model, 4 * SECOND), (1000 - wanted) / 6, 1000);
		model.lies = 100000;
		run(&model, SECOND);
		assert_in_range(left(&model, 4 * SECOND), (1000 - wanted) / 6, 1000);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(meets),
		cmocka_unit_test(meets_with_a_long_queue),
		cmocka_unit_test(meets_at_uneven_speed),
		cmocka_unit_test(meets_with_long_launches),
		cmocka_unit_test(waits_until_others_have_left),
		cmocka_unit_test(follows_another_program),
		cmocka_unit_test(follows_another_process),
		cmocka_unit_test(leaves_the_rest),
		cmocka_unit_test(follows),
		cmocka_unit_test(time_alone_is_no_credit),
		cmocka_unit_test(stays_ahead_alone),
		cmocka_unit_test(lies_gain_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
