/* Minimum rates in the scheduler, on a model of the GPU, with hardware preemption and under MPS. */
#include "gpu-model.h"

#include "scheduler/min-rates.h"

#include <string.h>

#include "weir/base.h"

#define RATE_TEST(name) cmocka_unit_test_setup_teardown(name, model_set_up, world_tear_down)

enum sharing { TIMESLICE, MPS };

static void come_with(unsigned i, uint8_t level, uint32_t rate, enum sharing sharing)
{
	come(i, level, 30);
	world.clients[i].channels.usable = sharing == TIMESLICE;
	world.status[i].flags = sharing == MPS ? WEIR_STATUS_CONCURRENT : 0;
	world.clients[i].bit = (uint8_t)i;
	world.tenants[i].min_rate = rate;
	world.tenants[i].min_rate_holds = true;
	world.status[i].level = level;
	change();
}

/* The client at @i has work, and shows it to those below. */
static void show(unsigned i)
{
	work(i, 50 * MS);
	for (unsigned level = 0; level < world.clients[i].level; level++)
		world.demand[level].word |= 1ull << i;
}

static const struct usage *usage_of(unsigned i)
{
	return tenant_usage(&world.tenants[i], &world.gpu);
}

/* It is above the other one, which gets what is left. Under MPS both run while it is ahead. */
static void beside_one_below(enum sharing sharing)
{
	come_with(0, 2, 500, sharing);
	come_with(1, 0, 0, sharing);
	show(0);
	work(1, 50 * MS);
	for (uint32_t rate = 600; rate <= 900; rate += 100) {
		world.tenants[0].min_rate = rate;
		change();
		run(SECOND);
		uint64_t low = hardware.ran[1];
		assert_in_range(ms_of(0, 4 * SECOND), 4 * rate - 60, 4 * rate + 80);
		assert_in_range((hardware.ran[1] - low) / MS, 4000 - 4 * rate - 200,
				4000 - 4 * rate + 60);
		assert_in_range(usage_of(0)->rate.attained, rate - 20, rate + 20);
		assert_false(usage_of(0)->rate.missed);
	}
}

static void test_below_timeslice(void **state)
{
	(void)state;
	beside_one_below(TIMESLICE);
}

static void test_below_mps(void **state)
{
	(void)state;
	beside_one_below(MPS);
	/* It is never held there. */
	assert_int_equal(usage_of(0)->held, 0);
	/* Beside the other one it is as fast as it must be: nobody waits, but while it learns. */
	world.tenants[0].min_rate = 400;
	change();
	run(SECOND);
	assert_in_range(ms_of(0, 2 * SECOND), 980, 1040);
	while (!world.clients[0].leaves)
		run(MS);
	assert_true(world.control[0].flags & WEIR_CONTROL_LEAVES);
	assert_int_equal(world.demand[0].word, 0);
	assert_int_equal(world.control[1].hold, 0);
}

/* Per mille: what both get, whatever the launches and how late they are reported. Long launches are
 * reported in large lumps. */
static void both_get_theirs(void)
{
	static const uint64_t launches[] = {MS / 2, 2 * MS, 8 * MS}, tells[] = {0, 2 * MS, 5 * MS};

	for (unsigned i = 0; i < countof(launches) * countof(tells); i++) {
		hardware.launch[0] = launches[i % countof(launches)];
		hardware.tells[0] = tells[i / countof(launches)];
		uint64_t slack = hardware.launch[0] > 2 * MS ? 35 : 20;
		for (uint32_t rate = 500; rate <= 900; rate += 100) {
			world.tenants[0].min_rate = rate;
			change();
			run(SECOND);
			uint64_t low = hardware.ran[1];
			assert_in_range(ms_of(0, 4 * SECOND) / 4, rate - slack / 2, rate + slack);
			assert_in_range((hardware.ran[1] - low) / (4 * MS), 1000 - rate - slack,
					1000 - rate + slack / 2);
		}
	}
}

static void begin_beside(enum sharing sharing)
{
	come_with(0, 2, 500, sharing);
	come_with(1, 0, 0, sharing);
	show(0);
	work(1, 50 * MS);
	world.status[0].outstanding = 100;
	world.status[1].outstanding = 25; /* launches of 2 ms */
	both_get_theirs();
}

static void test_both_in_turns(void **state)
{
	(void)state;
	begin_beside(TIMESLICE);
}

/* Beside the one below it gets a fifth of the GPU, and that one's launches go on for a while. */
static void test_both_mps(void **state)
{
	(void)state;
	hardware.weights[0] = 1;
	hardware.weights[1] = 4;
	hardware.leaves[1] = 2 * MS;
	begin_beside(MPS);
}

/* Requests of 3.4 ms, 1.5 ms apart, beside which the one below leaves it 54 % of its speed, as 20
 * blocks beside a training step on an H100. */
#define REQUEST (MS * 34 / 10)

struct requests {
	uint64_t longest, waited, gaps; /* ns */
};

static void begin_requests(uint64_t tells)
{
	come_with(0, 2, 900, MPS);
	come_with(1, 0, 0, MPS);
	world.status[0].busy_period = REQUEST;
	hardware.launch[0] = MS / 6;
	hardware.tells[0] = tells;
	hardware.weights[0] = 54;
	hardware.weights[1] = 46;
	hardware.leaves[1] = MS / 5;
	work(1, 50 * MS);
	world.status[1].outstanding = 250; /* launches of 0.2 ms */
}

static struct requests answer(unsigned n)
{
	struct requests found = {0};

	for (unsigned i = 0; i < n; i++) {
		uint64_t begin = world.now, answered = hardware.ran[0] + REQUEST;
		show(0);
		while (hardware.ran[0] < answered)
			run(MS / 10);
		found.longest = larger(found.longest, world.now - begin);
		found.waited += world.now - begin;
		work(0, 0);
		memset(world.demand, 0, sizeof(world.demand));
		run(MS + MS / 2);
		found.gaps += MS + MS / 2;
	}
	return found;
}

/* None of them is slowed down for the credit of earlier ones, and others have more than the time
 * between them. */
static void test_requests(void **state)
{
	(void)state;
	begin_requests(MS / 5);
	answer(100);
	uint64_t low = hardware.ran[1];
	struct requests found = answer(500);
	assert_in_range(found.longest * 1000 / REQUEST, 1000, 1250);
	assert_in_range(500 * REQUEST * 1000 / found.waited, 870, 945);
	/* What the other one runs between them delays them, and is none of its speed alone. */
	const struct min_rate_speed *alone = &usage_of(0)->rate.alone;
	assert_in_range(alone->work * 1000 / alone->time, 985, 1015);
	/* Without a rate nothing was learned, so it learns anew then. */
	world.tenants[0].min_rate = 0;
	change();
	answer(5);
	world.tenants[0].min_rate = 900;
	change();
	answer(2);
	assert_in_range(alone->time, 0, 2 * REQUEST);
	assert_true(hardware.ran[1] - low > found.gaps + 500 * (MS / 5));
}

/* One that runs on beside requests which need some SMs only is held where these lack their rate. */
static void test_beside_demand(void **state)
{
	(void)state;
	begin_requests(MS / 5);
	world.control[1].flags |= WEIR_CONTROL_SPATIAL;
	answer(100);
	struct requests found = answer(500);
	assert_true(world.control[1].flags & WEIR_CONTROL_SPATIAL);
	assert_in_range(found.longest * 1000 / REQUEST, 1000, 1250);
	assert_in_range(500 * REQUEST * 1000 / found.waited, 870, 945);
}

/* An older libweir reports several requests at once. None of them is slowed down for that. */
static void test_late_reports(void **state)
{
	(void)state;
	begin_requests(20 * MS);
	answer(100);
	struct requests found = answer(500);
	assert_in_range(found.longest * 1000 / REQUEST, 1000, 1250);
	assert_in_range(500 * REQUEST * 1000 / found.waited, 860, 1000);
}

/* What it ran while it had none is no credit. */
static void test_later(void **state)
{
	(void)state;
	come_with(0, 2, 500, MPS);
	come_with(1, 0, 0, MPS);
	show(0);
	work(1, 50 * MS);
	run(SECOND);
	world.tenants[0].min_rate = 0;
	change();
	run(3 * SECOND);
	world.tenants[0].min_rate = 800;
	change();
	assert_in_range(ms_of(0, SECOND), 770, 860);
}

/* Lower-level clients are stopped while it lacks its rate, but not for work that is soon done. */
static void test_stops(void **state)
{
	(void)state;
	come_with(0, 2, 1000, TIMESLICE);
	come_with(1, 0, 0, TIMESLICE);
	show(0);
	work(1, 50 * MS);
	run(2 * MS);
	assert_false(world.clients[1].channels.stopped);
	run(5 * MS);
	assert_true(world.clients[1].channels.stopped);
	work(0, 0);
	run(12 * MS);
	assert_false(world.clients[1].channels.stopped);
}

/* Its demand is taken away and given back, also if the client shows it at the wrong time. */
static void test_demand(void **state)
{
	(void)state;
	come_with(0, 2, 700, MPS);
	show(0);
	/* There is nobody else: it need not report often. */
	assert_false(world.control[0].flags & WEIR_CONTROL_RATED);
	assert_true(look_after(MS) > 50 * MS);
	come_with(1, 0, 0, MPS);
	work(1, 50 * MS);
	assert_true(world.control[0].flags & WEIR_CONTROL_RATED);
	assert_true(world.control[0].flags & WEIR_CONTROL_TELL);
	/* Only the one that may be held has gates that look at its hold word. */
	assert_true(world.control[1].flags & WEIR_CONTROL_HOLDABLE);
	assert_false(world.control[0].flags & WEIR_CONTROL_HOLDABLE);
	run(SECOND);
	while (!world.clients[0].leaves)
		run(MS);
	assert_int_equal(world.demand[0].word, 0);
	show(0);
	while (world.clients[0].leaves)
		run(MS / 2);
	assert_int_equal(world.demand[0].word, 1);
	assert_int_equal(world.control[1].hold, 1);    /* no part of the SMs stays */
	memset(world.demand, 0, sizeof(world.demand)); /* it was told too late */
	look_after(MS / 10);
	assert_int_equal(world.demand[0].word, 1);
	/* Its work ends. */
	work(0, 0);
	memset(world.demand, 0, sizeof(world.demand));
	run(20 * MS);
	assert_int_equal(world.control[1].hold, 0);
	assert_true(ms_of(1, SECOND) > 0);
	/* It has none any more. */
	world.tenants[0].min_rate = 0;
	change();
	assert_false(world.clients[0].leaves || world.clients[1].kept_out);
	assert_false(world.control[0].flags & (WEIR_CONTROL_LEAVES | WEIR_CONTROL_RATED));
}

/* Same-level clients leave it its rate only if that is no more than its share. */
static void among_equals(enum sharing sharing, const char *policy)
{
	scheduler_set_policy(&world.scheduler, policy_find(policy));
	come_with(0, 1, 800, sharing);
	come_with(1, 1, 0, sharing);
	work(0, 50 * MS);
	work(1, 50 * MS);
	run(SECOND);
	uint64_t other = hardware.ran[1];
	assert_in_range(ms_of(0, 4 * SECOND), 3140, 3260);
	assert_in_range((hardware.ran[1] - other) / MS, 600, 860);
	world.tenants[0].min_rate_holds = false;
	change();
	run(SECOND);
	assert_in_range(ms_of(0, 2 * SECOND), 800, 1200);
	run(2 * SECOND);
	assert_int_equal(usage_of(0)->rate.hindered, MIN_RATE_EQUALS);
	assert_true(usage_of(0)->rate.missed);
}

static void test_equals_timeslice(void **state)
{
	(void)state;
	among_equals(TIMESLICE, "ffs");
}

static void test_equals_slices(void **state)
{
	(void)state;
	among_equals(TIMESLICE, "wfq");
}

static void test_equals_mps(void **state)
{
	(void)state;
	among_equals(MPS, "hpf");
}

/* Two of 0.8 and 0.7: neither gets its rate, and both hear why. Two of 0.6 and 0.3 do. */
static void test_two(void **state)
{
	static const enum sharing ways[] = {TIMESLICE, MPS};
	unsigned base = 0;

	(void)state;
	for (unsigned i = 0; i < countof(ways); i++, base += 2) {
		come_with(base, 1, 800, ways[i]);
		come_with(base + 1, 1, 700, ways[i]);
		work(base, 50 * MS);
		work(base + 1, 50 * MS);
		assert_int_equal(min_rates_sum(&world.gpu), 1500);
		run(4 * SECOND);
		for (unsigned c = base; c < base + 2; c++) {
			assert_int_equal(usage_of(c)->rate.hindered, MIN_RATE_CROWDED);
			assert_true(usage_of(c)->rate.missed);
		}
		world.tenants[base].min_rate = 600;
		world.tenants[base + 1].min_rate = 300;
		change();
		run(2 * SECOND);
		uint64_t second = hardware.ran[base + 1], first = ms_of(base, 4 * SECOND);
		second = (hardware.ran[base + 1] - second) / MS;
		assert_in_range(first, 2320, 2900);
		assert_in_range(second, 1140, 1700);
		assert_in_range(first + second, 3800, 4000); /* the GPU does not idle */
		assert_false(usage_of(base)->rate.missed || usage_of(base + 1)->rate.missed);
		work(base, 0);
		work(base + 1, 0);
		world.tenants[base].min_rate = world.tenants[base + 1].min_rate = 0;
		change();
	}
}

/* Higher levels come first, and the container hears of it. */
static void test_above(void **state)
{
	(void)state;
	come_with(0, 1, 800, MPS);
	come_with(1, 2, 0, MPS);
	show(0);
	run(SECOND); /* its speed alone is known then */
	show(1);
	run(3 * SECOND);
	assert_int_equal(world.control[1].hold, 0);
	assert_int_equal(usage_of(0)->rate.hindered, MIN_RATE_ABOVE);
	assert_true(usage_of(0)->rate.missed);
}

/* Whatever a client reports, those below it get a part. */
static void test_silent(void **state)
{
	(void)state;
	come_with(0, 2, 800, MPS);
	come_with(1, 0, 0, MPS);
	show(0);
	work(1, 50 * MS);
	world.status[1].outstanding = 50; /* launches of 1 ms */
	run(2 * SECOND);
	hardware.silent[0] = true;
	run(SECOND);
	assert_in_range(ms_of(1, 4 * SECOND), 70, 2000);
}

/* Its own limit stops it: that is no fault of others, and time that does not count. */
static void test_own_limit(void **state)
{
	(void)state;
	come_with(0, 1, 800, TIMESLICE);
	work(0, 50 * MS);
	run(SECOND);
	world.tenants[0].compute_limit = 30;
	change();
	run(SECOND);
	uint64_t counted = usage_of(0)->rate.time;
	assert_in_range(ms_of(0, 2 * SECOND), 570, 630);
	assert_in_range((usage_of(0)->rate.time - counted) / MS, 500, 900);
	assert_false(usage_of(0)->rate.missed);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		RATE_TEST(test_below_timeslice),
		RATE_TEST(test_below_mps),
		RATE_TEST(test_both_in_turns),
		RATE_TEST(test_both_mps),
		RATE_TEST(test_requests),
		RATE_TEST(test_beside_demand),
		RATE_TEST(test_late_reports),
		RATE_TEST(test_later),
		RATE_TEST(test_stops),
		RATE_TEST(test_demand),
		RATE_TEST(test_equals_timeslice),
		RATE_TEST(test_equals_slices),
		RATE_TEST(test_equals_mps),
		RATE_TEST(test_two),
		RATE_TEST(test_above),
		RATE_TEST(test_silent),
		RATE_TEST(test_own_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
