/* The simulated GPU where launches of two clients overlap under MPS. */
#include "sim-play.h"

/* For how long two clients ran at the same time. */
static uint64_t shared(const char *text, struct sim_options options)
{
	struct sim_result result = play(text, options);
	uint64_t ns = result.shared;

	sim_result_deinit(&result);
	return ns;
}

/* A launch begins each 80 us, the last one 10 us before the end. */
static void test_ends_of_two(void **unused)
{
	(void)unused;
	struct sim_result result =
		play("client a copies=2 always work=10ms launch=100us overlap=20us\nend 79930us",
		     options_for("levels"));
	assert_int_equal(result.ran, 79930 * US);
	assert_int_equal(result.switches, 1000);
	assert_int_equal(result.shared, 998 * 20 * US + 10 * US);
	assert_int_equal(result.clients[0].ran, 50 * MS - 10 * US);
	assert_int_equal(result.clients[1].ran, 50 * MS - 90 * US);
	for (size_t i = 0; i < result.n; i++)
		assert_int_equal(result.clients[i].starved, i == 0 ? 60 * US : 80 * US);
	sim_result_deinit(&result);
}

/* Each end leaves the room of its own client's `overlap`. */
static void test_ends_that_differ(void **unused)
{
	(void)unused;
	assert_int_equal(shared("client a always work=10ms launch=100us overlap=20us\n"
				"client b always work=10ms launch=100us\nend 180ms",
				options_for("levels")),
			 1000 * 20 * US);
}

static void test_not_of_one(void **unused)
{
	(void)unused;
	assert_int_equal(shared("client a always launch=100us overlap=20us\nend 80ms",
				options_for("levels")),
			 0);
}

static void test_not_time_sliced(void **unused)
{
	struct sim_options options = options_for("levels");

	(void)unused;
	options.mps = false;
	struct sim_result result =
		play("client a copies=2 always launch=100us overlap=20us\nend 80ms", options);
	uint64_t slice = options.slice + options.switching;
	assert_int_equal(result.switches, 80 * MS / slice + 1);
	assert_int_equal(result.shared, 0);
	sim_result_deinit(&result);
}

/* The parts of two clients that have slices of the agent's; others may be in front of them. */
static void assert_parts(const char *policy, const char *text, double first, uint64_t switches)
{
	struct sim_options options = options_for(policy);

	options.mps = false;
	options.hardware = true;
	struct sim_result result = play(text, options);
	const struct sim_client *two = &result.clients[result.n - 2];
	double ran = (double)two[0].ran, sum = ran + (double)two[1].ran;
	assert_float_equal(100 * ran / sum, first, 0.2);
	assert_in_range(result.switches, switches - switches / 100, switches + switches / 100);
	sim_result_deinit(&result);
}

/* As the agent does it (slices.h): no client is held, and slices have the policy's length. */
static void test_slices_by_weight(void **unused)
{
	static const char two[] = "client a always share=40\nclient b always share=20\nend 100s";
	const uint64_t pause = sim_defaults.switching;

	(void)unused;
	/* 12, 10 and 20 ms on average. */
	assert_parts("ffs", two, 66.67, 100000 * MS / (12 * MS + pause));
	assert_parts("wfq", two, 66.67, 100000 * MS / (10 * MS + pause));
	assert_parts("levels", two, 66.67, 100000 * MS / (10 * MS + pause));
	assert_parts("whpf", "client a always work=1ms copies=2\nend 100s", 50,
		     100000 * MS / (20 * MS + pause));
	/* Below others the driver's slice remains: nobody takes turns under this policy. */
	assert_parts("levels",
		     "client c level=high every=1h work=1ms\n"
		     "client a always share=40\nclient b always share=20\nend 10s",
		     50, 10000 * MS / (sim_defaults.slice + pause));
}

static void test_no_slices_with_objectives(void **unused)
{
	struct sim_options options = options_for("ffs");

	(void)unused;
	options.mps = false;
	options.hardware = true;
	struct sim_result result =
		play("client a always\nclient b always slo=100ms\nend 1s", options);
	assert_true(result.holds > 10);
	sim_result_deinit(&result);
}

/* Runs of 1 ms: of ten launches the last overlaps another client's; launches behind it are held. */
static void test_ends_of_runs(void **unused)
{
	struct sim_options options = options_for("ffs");

	(void)unused;
	options.settings.cost = 30 * US;
	struct sim_result result = play("client a copies=2 always work=10ms launch=100us "
					"overlap=20us evict=never\nend 100ms",
					options);
	assert_int_equal(result.switches, 102);
	assert_int_equal(result.evictions, 0);
	assert_int_equal(result.shared, (result.switches - 1) * 20 * US);
	sim_result_deinit(&result);
}

/* A launch that is evicted leaves no room: the run is over 30 us after it began. */
static void test_not_of_evicted(void **unused)
{
	struct sim_options options = options_for("wfq");

	(void)unused;
	options.settings.quantum = options.settings.min_quantum = 130 * US;
	struct sim_result result =
		play("client a always launch=100us overlap=20us evict=10us\n"
		     "client b always launch=100us overlap=20us evict=10us\nend 200us",
		     options);
	assert_int_equal(result.evictions, 1);
	assert_int_equal(result.shared, 0);
	assert_int_equal(result.clients[1].ran, 60 * US);
	sim_result_deinit(&result);
}

/* A client whose launch still ends begins no other, though two others are done meanwhile. */
static void test_own_order(void **unused)
{
	(void)unused;
	struct sim_result result =
		play("client a always work=10ms launch=100us overlap=50us\nclient b\nclient c\n"
		     "work 20us b 10us\nwork 20us c 10us\nend 100us",
		     options_for("levels"));
	assert_int_equal(result.clients[0].ran, 100 * US);
	assert_int_equal(result.clients[1].turnaround, 40 * US);
	assert_int_equal(result.clients[2].turnaround, 50 * US);
	assert_int_equal(result.shared, 20 * US);
	assert_int_equal(result.wasted, 0);
	sim_result_deinit(&result);
}

/* Launches shorter than the overlap run concurrently, one of each client in alternation. */
static void test_short_launches(void **unused)
{
	(void)unused;
	struct sim_result result =
		play("client a copies=3 always work=10ms launch=100us overlap=1ms\nend 75ms",
		     options_for("levels"));
	assert_int_equal(result.shared, 75 * MS);
	for (size_t i = 0; i < result.n; i++)
		assert_int_equal(result.clients[i].ran, 50 * MS);
	sim_result_deinit(&result);
}

/* A third client waits for one of the two. */
static void test_no_third(void **unused)
{
	static const uint64_t turnarounds[] = {100 * US, 100 * US, 200 * US, 80 * US};

	(void)unused;
	struct sim_result result = play("client a copies=3 overlap=1ms\nclient b\n"
					"work 0us a.0 100us\nwork 0us a.1 100us\n"
					"work 0us a.2 100us\nwork 30us b 10us\nend 1ms",
					options_for("levels"));
	for (size_t i = 0; i < result.n; i++)
		assert_int_equal(result.clients[i].turnaround, turnarounds[i]);
	sim_result_deinit(&result);
}

/* A gate below is closed until the demand above is gone. No client is held for a higher level. */
static void test_levels(void **unused)
{
	(void)unused;
	struct sim_result result = play("client low always launch=100us overlap=20us evict=never\n"
					"client high level=high launch=100us overlap=20us\n"
					"work 50us high 200us\nend 300us",
					options_for("levels"));
	assert_int_equal(result.clients[1].turnaround, 230 * US);
	assert_int_equal(result.clients[0].ran, 120 * US);
	assert_int_equal(result.shared, 20 * US);
	sim_result_deinit(&result);
}

#define LOW  "client low always work=10ms launch=1ms evict=100us\n"
#define HIGH "client high level=high evict=100us "
#define WORK "\nwork 500us high 2ms\nend 3600us"

/* A launch on a part of the SMs loses up to 1 ns at each event. */
static void assert_ran(const struct sim_client *client, uint64_t ns)
{
	assert_in_range(client->ran, ns - 10, ns);
}

/* LOW leaves a quarter of the SMs, which takes a moment, and goes on on the others. */
static void assert_runs_beside(void)
{
	struct sim_result result = play(LOW HIGH "sms=33 yield=needed" WORK, options_for("levels"));
	assert_int_equal(result.clients[1].turnaround, 2100 * US);
	assert_ran(&result.clients[0], 3100 * US);
	assert_int_equal(result.shared, 2000 * US);
	assert_int_equal(result.evictions, 0);
	assert_int_equal(result.wasted, 0);
	sim_result_deinit(&result);
}

/* ns that LOW ran beside HIGH, and the evictions. */
static void assert_low_ran(const char *high, uint64_t ns, uint64_t evictions, bool mps)
{
	struct sim_options options = options_for("levels");
	char text[256];

	options.mps = mps;
	options.switching = 0;
	snprintf(text, sizeof(text), LOW HIGH "%s" WORK, high);
	struct sim_result result = play(text, options);
	assert_int_equal(result.clients[1].turnaround, 2100 * US);
	assert_ran(&result.clients[0], 1600 * US + ns);
	assert_int_equal(result.evictions, evictions);
	sim_result_deinit(&result);
}

static void test_what_is_left(void **unused)
{
	(void)unused;
	assert_runs_beside();
	assert_low_ran("", 0, 1, true);
	assert_low_ran("sms=33", 1500 * US, 0, true);
	assert_low_ran("sms=33 yield=auto", 1500 * US, 0, true);
	assert_low_ran("sms=33 yield=whole", 0, 1, true);
	assert_low_ran("yield=needed", 0, 1, true);
	assert_low_ran("sms=33 yield=needed+100%", 1000 * US, 0, true);
	assert_low_ran("sms=99 yield=needed", 500 * US, 0, true);
	assert_low_ran("sms=100 yield=needed", 0, 1, true); /* above 3/4 */
	assert_low_ran("sms=33 yield=66", 1000 * US, 0, true);
	assert_low_ran("sms=33 yield=132", 0, 1, true);
	assert_low_ran("sms=33 yield=needed", 0, 1, false); /* time-sliced */
}

/* A launch may begin in the room, and ends there; then the next client's does. */
static void test_begins_beside(void **unused)
{
	(void)unused;
	struct sim_result result = play("client a copies=2\n" HIGH "sms=66 yield=needed\n"
					"work 0us high 3ms\nwork 1ms a.0 500us\n"
					"work 1ms a.1 1ms\nend 5ms",
					options_for("levels"));
	assert_int_equal(result.clients[2].turnaround, 3000 * US);
	assert_int_equal(result.clients[0].turnaround, 1000 * US);
	/* In the room until 3 ms, then on all SMs. */
	assert_int_equal(result.clients[1].turnaround, 1000 * US + 1000 * US + 500 * US);
	sim_result_deinit(&result);
}

/* Somebody comes who needs the whole GPU; two levels need a part each. */
static void test_several_above(void **unused)
{
	(void)unused;
	struct sim_result result =
		play(LOW HIGH "sms=33 yield=needed\nclient top level=critical\n"
			      "work 500us high 4ms\nwork 1100us top 1ms\nend 2600us",
		     options_for("levels"));
	/* LOW's first launch ends beside HIGH, and the next may not begin before TOP is done.
	 * At 1.2 ms HIGH has left, at 2.2 ms both go on. */
	assert_int_equal(result.clients[2].turnaround, 1100 * US);
	assert_int_equal(result.clients[0].ran, 600 * US + 400 * US + 300 * US);
	sim_result_deinit(&result);
	result = play(LOW "client mid level=normal always sms=33 yield=needed\n"
			  "client top level=critical always sms=66 yield=needed\nend 10ms",
		      options_for("levels"));
	/* Both above have work all the time; one client at most runs beside another. */
	assert_int_equal(result.clients[2].ran, 10 * MS);
	assert_int_equal(result.clients[1].ran, 5 * MS);
	assert_int_equal(result.clients[0].ran, 0);
	sim_result_deinit(&result);
}

/* @first and @second have work all the time. What the first has of the GPU, in thousandths. */
static uint64_t first_has(const char *policy, bool mps, const char *first, const char *second)
{
	struct sim_options options = options_for(policy);
	char text[256];

	options.mps = mps;
	snprintf(text, sizeof(text),
		 "client a always work=4ms launch=500us %s\n"
		 "client b always work=4ms launch=500us %s\nend 4s",
		 first, second);
	struct sim_result result = play(text, options);
	assert_true(result.clients[1].ran > 0);
	assert_in_range(result.clients[0].ran + result.clients[1].ran, 3650 * MS, 4000 * MS);
	uint64_t has = result.clients[0].ran / (4 * MS);
	sim_result_deinit(&result);
	return has;
}

/* One above keeps its minimum rate, and the one below gets the rest; so do two of a level. */
static void test_min_rates(void **unused)
{
	(void)unused;
	for (unsigned mps = 0; mps < 2; mps++) {
		assert_in_range(first_has("hpf", mps, "level=high min-rate=0.5", ""), 480, 530);
		assert_in_range(first_has("hpf", mps, "level=high min-rate=0.9", ""), 880, 930);
		assert_in_range(first_has("wfq", mps, "min-rate=0.7", ""), 680, 730);
		assert_in_range(first_has("whpf", mps, "min-rate=0.6", "min-rate=0.2"), 580, 820);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends_of_two),
		cmocka_unit_test(test_ends_that_differ),
		cmocka_unit_test(test_not_of_one),
		cmocka_unit_test(test_not_time_sliced),
		cmocka_unit_test(test_ends_of_runs),
		cmocka_unit_test(test_not_of_evicted),
		cmocka_unit_test(test_slices_by_weight),
		cmocka_unit_test(test_no_slices_with_objectives),
		cmocka_unit_test(test_own_order),
		cmocka_unit_test(test_no_third),
		cmocka_unit_test(test_short_launches),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_what_is_left),
		cmocka_unit_test(test_begins_beside),
		cmocka_unit_test(test_several_above),
		cmocka_unit_test(test_min_rates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
