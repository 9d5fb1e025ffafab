/* What a client without weir.dev/yield finds out, right in at least 99 of 100 runs, and what that
 * costs it, on synthetic times: steady and noisy ones, two modes, heavy tails, lower levels with
 * phases, waits. SEED=N repeats a run. */
#include "gates/need-probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define RUNS     100u
#define RIGHT    99u
#define HOUR     (3600 * NS_PER_S)
#define WHOLE_NS 40000.0
#define EVERY    (500 * NS_PER_US)    /* from one request to the next */
#define RESTING  200                  /* requests that are told as one while nothing is measured */
#define BOUND    (1.05 * NEED_BUDGET) /* the last try may end above it */

static uint64_t seed;

/* In 0 .. 1. */
static double chance(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(seed >> 11) / (double)(1ull << 53);
}

/* Times without a mean of their own: around 1. */
static double steady(uint64_t now)
{
	(void)now;
	return 0.99 + 0.02 * chance();
}

static double noisy(uint64_t now)
{
	(void)now;
	return 0.8 + 0.4 * chance();
}

/* One request in five takes twice as long. */
static double two_modes(uint64_t now)
{
	return steady(now) * (chance() < 0.2 ? 2 : 1);
}

/* Pareto with an infinite variance; one in 10^4 takes 100 times as long. */
static double heavy_tail(uint64_t now)
{
	double u = chance() + 1e-9, tail = 1;

	for (int i = 0; i < 8 && u < 0.06; i++, u *= 4)
		tail *= 2;
	return steady(now) * tail;
}

/* A training step of 30 ms below, with phases. */
static double phases(uint64_t now)
{
	return steady(now) * (now / (5 * NS_PER_MS) % 6 < 2 ? 1.15 : 1);
}

typedef double (*times_fn)(uint64_t now);
static const struct {
	const char *name;
	times_fn of;
} shapes[] = {
	{"steady", steady},         {"noisy", noisy},   {"two modes", two_modes},
	{"heavy tail", heavy_tail}, {"phases", phases},
};

/* How many times as long work takes in each way. */
struct work {
	const char *name;
	double ways[NEED_WAYS];
	enum need_way right;
};

static const struct work works[] = {
	{"as fast", {[NEED_PLACES] = 1, [NEED_APART] = 1, [NEED_WHOLE] = 1}, NEED_PLACES},
	{"faster with SMs of its own",
	 {[NEED_PLACES] = 1.2, [NEED_APART] = 0.97, [NEED_WHOLE] = 1},
	 NEED_APART},
	{"slower by 7 %",
	 {[NEED_PLACES] = 1.07, [NEED_APART] = 1.07, [NEED_WHOLE] = 1},
	 NEED_WHOLE},
	{"slower by a tenth",
	 {[NEED_PLACES] = 1.1, [NEED_APART] = 1.1, [NEED_WHOLE] = 1},
	 NEED_WHOLE},
	{"slower by half", {[NEED_PLACES] = 1.5, [NEED_APART] = 1.3, [NEED_WHOLE] = 1}, NEED_WHOLE},
	{"much slower", {[NEED_PLACES] = 5, [NEED_APART] = 3, [NEED_WHOLE] = 1}, NEED_WHOLE},
};

static struct need_probe probe;
static struct need_budget budget;
static uint64_t now;

static bool company, able;
static uint64_t waits; /* ns, for which each return to the whole GPU makes a request wait */

static struct tally {
	double total, lost; /* ns of the work, and of these, because of the way */
	uint64_t launches, tried;
	bool over; /* there is a result */
} tally;

static void begin(bool known, enum need_way usual)
{
	now = NS_PER_S;
	company = able = true;
	waits = 0;
	budget = (struct need_budget){0};
	tally = (struct tally){0};
	need_probe_begin(&probe, known, usual, now);
}

/* A request of @launches, in a way that other work may have made the whole GPU. */
static void request_in(enum need_way way, const struct work *work, times_fn times,
		       uint64_t launches)
{
	uint64_t like_it = probe.phase == NEED_RESTS ? RESTING : 1;
	enum need_phase before = probe.phase;
	double usual = WHOLE_NS * times(now), ns = usual * work->ways[way];

	launches *= like_it;
	now += larger(like_it * EVERY, (uint64_t)(ns * (double)launches) + 10 * NS_PER_US);
	tally.total += ns * (double)launches;
	tally.launches += launches;
	tally.lost += (ns - usual) * (double)launches;
	tally.tried += way == NEED_WHOLE ? 0 : launches;
	const struct need_period period = {way, launches, (uint64_t)ns};
	tally.over |= need_probe_learn(&probe, &budget, &period, now);
	if (before == NEED_TRIES && probe.phase == NEED_RETURNS && waits) {
		const struct need_period waiting = {NEED_WHOLE, 1, waits};
		now += waits;
		tally.lost += (double)waits;
		need_probe_learn(&probe, &budget, &waiting, now);
	}
	need_probe_work(&probe, &budget, company, able, now);
}

static void request(const struct work *work, times_fn times, uint64_t launches)
{
	request_in(need_probe_way(&probe), work, times, launches);
}

static void find(const struct work *work, times_fn times, uint64_t launches)
{
	tally.over = false;
	while (!tally.over && now < 6 * HOUR)
		request(work, times, launches);
}

/* Of all runs. */
struct costs {
	unsigned right;
	double lost, tried; /* the worst, as parts of all */
	double slowest;     /* s until it was known */
};

static void add_run(struct costs *costs, bool right)
{
	double lost = tally.lost / tally.total, s = (double)(now - NS_PER_S) / 1e9;
	double tried = (double)tally.tried / (double)tally.launches;

	costs->right += right;
	costs->lost = lost > costs->lost ? lost : costs->lost;
	costs->tried = tried > costs->tried ? tried : costs->tried;
	costs->slowest = s > costs->slowest ? s : costs->slowest;
}

static struct costs costs_of(const struct work *work, times_fn times, uint64_t waiting)
{
	struct costs costs = {0};

	for (unsigned run = 0; run < RUNS; run++) {
		begin(false, NEED_WHOLE);
		waits = waiting;
		find(work, times, 1 + run % 3);
		add_run(&costs, tally.over && probe.usual == work->right);
	}
	return costs;
}

static void show(const struct work *work, const char *shape, const struct costs *costs)
{
	printf("%s, %s: right in %u of %u; at most %.2f %% of launches, %.2f %% of time, %.0f s\n",
	       work->name, shape, costs->right, RUNS, 100 * costs->tried, 100 * costs->lost,
	       costs->slowest);
}

static void what_is_found_is_right_and_costs_little(void **state)
{
	(void)state;
	for (size_t w = 0; w < countof(works); w++) {
		for (size_t s = 0; s < countof(shapes); s++) {
			struct costs costs = costs_of(&works[w], shapes[s].of, 0);
			show(&works[w], shapes[s].name, &costs);
			assert_true(costs.right >= RIGHT);
			assert_true(costs.tried <= BOUND && costs.lost <= BOUND);
		}
	}
}

/* Lower levels had launched kernels that cannot leave, as places were enough. */
static void waits_after_a_try_are_paid_for(void **state)
{
	struct costs costs = costs_of(&works[0], noisy, 50 * NS_PER_MS);

	(void)state;
	show(&works[0], "waits", &costs);
	assert_true(costs.right >= RIGHT);
	assert_true(costs.tried <= BOUND && costs.lost <= 1.5 * NEED_BUDGET);
}

static void it_begins_with_the_whole_gpu(void **state)
{
	(void)state;
	begin(false, NEED_WHOLE);
	for (unsigned i = 0; i < 1600 / RESTING; i++) {
		assert_int_equal(need_probe_way(&probe), NEED_WHOLE);
		assert_false(need_probe_asks(&probe));
		request(&works[0], steady, 1);
	}
}

/* Lower levels are told before anything is tried. */
static void lower_levels_have_time_to_get_ready(void **state)
{
	uint64_t asked = 0;

	(void)state;
	begin(false, NEED_WHOLE);
	while (need_probe_way(&probe) == NEED_WHOLE) {
		asked = need_probe_asks(&probe) ? asked ? asked : now : 0;
		request(&works[0], steady, 1);
	}
	assert_true(asked && now - asked >= 100 * NS_PER_MS);
}

static void nothing_is_tried_without_lower_levels_or_if_it_needs_all(void **state)
{
	(void)state;
	for (int missing = 0; missing < 2; missing++) {
		begin(false, NEED_WHOLE);
		company = missing;
		able = !missing;
		for (unsigned i = 0; i < 4000; i++) {
			request(&works[0], steady, 1);
			assert_false(need_probe_asks(&probe));
		}
	}
}

static void long_work_is_left_alone(void **state)
{
	(void)state;
	begin(false, NEED_WHOLE);
	for (unsigned i = 0; i < 5000; i++) {
		request(&works[0], steady, 3000);
		assert_int_equal(need_probe_way(&probe), NEED_WHOLE);
	}
}

/* The next launch of each request needs the whole GPU. */
static void work_of_which_a_part_needs_all_is_left_alone(void **state)
{
	unsigned asks = 0;

	(void)state;
	begin(false, NEED_WHOLE);
	while (now < HOUR) {
		asks += need_probe_way(&probe) != NEED_WHOLE;
		request_in(NEED_WHOLE, &works[0], steady, 1);
	}
	assert_false(tally.over);
	assert_in_range(asks, 1, tally.launches / 500);
}

/* A pod whose program is known. */
static void what_an_earlier_process_found_is_used_at_once(void **state)
{
	(void)state;
	begin(true, NEED_APART);
	assert_int_equal(need_probe_way(&probe), NEED_APART);
	find(&works[0], noisy, 1);
	assert_int_equal(probe.usual, NEED_APART);
	begin(true, NEED_WHOLE);
	for (unsigned i = 0; i < 4000; i++) {
		request(&works[0], steady, 1);
		assert_int_equal(need_probe_way(&probe), NEED_WHOLE);
	}
}

static void what_is_wrong_by_now_is_given_up_soon(void **state)
{
	(void)state;
	for (unsigned run = 0; run < RUNS; run++) {
		begin(true, NEED_APART);
		while (probe.usual != NEED_WHOLE && now < HOUR)
			request(&works[4], noisy, 1);
		assert_true(now < 4 * NS_PER_S);
		find(&works[4], noisy, 1);
		assert_int_equal(probe.usual, NEED_WHOLE);
	}
}

/* Twice as long after each check that finds the same. */
static void a_result_is_checked_rarely(void **state)
{
	unsigned checks = 0;

	(void)state;
	begin(false, NEED_WHOLE);
	find(&works[0], steady, 1);
	for (uint64_t until = now + 4 * HOUR; now < until;) {
		enum need_phase before = probe.phase;
		request(&works[0], steady, 1);
		checks += before == NEED_RESTS && probe.phase != NEED_RESTS;
	}
	assert_int_equal(probe.usual, NEED_PLACES);
	assert_in_range(checks, 3, 5);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_found_is_right_and_costs_little),
		cmocka_unit_test(waits_after_a_try_are_paid_for),
		cmocka_unit_test(it_begins_with_the_whole_gpu),
		cmocka_unit_test(lower_levels_have_time_to_get_ready),
		cmocka_unit_test(nothing_is_tried_without_lower_levels_or_if_it_needs_all),
		cmocka_unit_test(long_work_is_left_alone),
		cmocka_unit_test(work_of_which_a_part_needs_all_is_left_alone),
		cmocka_unit_test(what_an_earlier_process_found_is_used_at_once),
		cmocka_unit_test(what_is_wrong_by_now_is_given_up_soon),
		cmocka_unit_test(a_result_is_checked_rarely),
	};
	const char *chosen = getenv("SEED");

	seed = chosen ? strtoull(chosen, NULL, 10) : 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
