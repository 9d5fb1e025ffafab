/* A compute limit, charged at times that are late by chance: the part that is used is right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hardware/limit.h"

#define MS     1000000ull
#define SECOND (1000 * MS)

static unsigned seed = 1;

static uint64_t below(uint64_t n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 8) % n;
}

/* A client that always has work. A look is up to 0.3 ms late. The client stops 0.5 to 0.8 ms after
 * the look that says so, and goes on 0.3 ms after. Returns what it ran until @end. */
struct model {
	struct limit limit;
	uint64_t now, ran;
	bool runs, wanted;
	uint64_t changes; /* when `runs` becomes `wanted` */
};

static uint64_t advance(struct model *model, uint64_t to)
{
	uint64_t ran = 0;

	if (model->runs != model->wanted && model->changes <= to) {
		ran += model->runs ? model->changes - model->now : to - model->changes;
		model->runs = model->wanted;
	} else {
		ran += model->runs ? to - model->now : 0;
	}
	model->now = to;
	model->ran += ran;
	return ran;
}

static uint64_t run(struct model *model, uint64_t end)
{
	uint64_t before = model->ran;

	while (model->now < end) {
		uint64_t next = limit_next(&model->limit, true, model->now) + below(300000);
		struct limit_use use = {0};
		uint64_t from = model->now;
		use.most = use.least = advance(model, next);
		use.waited = model->limit.over ? next - from - use.most : 0;
		limit_charge(&model->limit, &use, next);
		if (model->wanted == model->limit.over) {
			model->wanted = !model->limit.over;
			model->changes = next + (model->wanted ? 300000 : 500000 + below(300000));
		}
	}
	return model->ran - before;
}

static void test_parts(void **state)
{
	const uint32_t parts[] = {1, 10, 30, 70, 99};

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		struct model model = {.now = 77 * SECOND, .runs = true, .wanted = true};
		limit_set(&model.limit, parts[i], model.now);
		run(&model, 78 * SECOND);
		for (uint64_t window = 78; window < 88; window++) {
			uint64_t ms = run(&model, (window + 1) * SECOND) / MS;
			assert_in_range(ms, 10 * parts[i] - 10, 10 * parts[i] + 10);
		}
		assert_true(model.limit.used >= model.ran - 3 * MS);
	}
}

/* What is not used is lost. */
static void test_idle(void **state)
{
	struct model model = {.now = SECOND, .runs = true, .wanted = true};
	struct limit_use none = {0};

	(void)state;
	limit_set(&model.limit, 20, model.now);
	assert_true(limit_next(&model.limit, false, model.now) == UINT64_MAX);
	model.now = 60 * SECOND;
	limit_charge(&model.limit, &none, model.now);
	assert_int_equal(model.limit.left, 20 * MS);
	assert_in_range(run(&model, 61 * SECOND), 195 * MS, 225 * MS);
}

/* A look that is late for half a second takes what was used too much from those that follow. */
static void test_a_late_look(void **state)
{
	struct limit limit = {0};
	struct limit_use use = {.most = 500 * MS, .least = 500 * MS}, none = {0};
	uint64_t now = SECOND, stood = 0;

	(void)state;
	limit_set(&limit, 50, now);
	limit_charge(&limit, &use, now += 500 * MS);
	assert_true(limit.over);
	while (limit.over) {
		uint64_t next = limit_next(&limit, true, now);
		assert_int_equal(next, now + 100 * MS);
		limit_charge(&limit, &none, now = next);
		stood++;
	}
	/* 250 ms too much. */
	assert_int_equal(stood, 5);
	/* Debts end. */
	use.most = use.least = 3600 * SECOND;
	limit_charge(&limit, &use, now);
	assert_true(limit.left >= -LIMIT_DEBT_MAX);
}

/* Others have a part of the GPU, as they report: the limit is on what is left. */
static void test_shared(void **state)
{
	static const struct {
		uint64_t reported; /* of each ms that it ran, in us */
		uint64_t charged;
	} cases[] = {
		{500, 500},
		{300, 300},
		{0, 250} /* half of its part */,
		{9000, 1000},
	};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct limit limit = {0};
		struct limit_use use = {.most = MS, .least = MS / 4};
		uint64_t now = SECOND;
		limit_set(&limit, 99, now);
		for (unsigned ms = 1; ms <= 900; ms++) {
			use.reported = ms % 30 ? 0 : 30 * cases[i].reported * 1000;
			limit_charge(&limit, &use, now += MS);
		}
		assert_int_equal(limit.used / 900000, cases[i].charged);
	}
}

static void test_changes(void **state)
{
	struct limit limit = {0};
	struct limit_use use = {.most = 90 * MS, .least = 90 * MS};

	(void)state;
	limit_charge(&limit, &use, SECOND);
	assert_false(limit.over);
	limit_set(&limit, 10, SECOND);
	limit_charge(&limit, &use, SECOND + 90 * MS);
	assert_true(limit.over);
	limit_set(&limit, 20, SECOND + 91 * MS);
	assert_false(limit.over);
	limit_set(&limit, 100, SECOND + 92 * MS);
	assert_int_equal(limit.percent, 0);
	assert_true(limit_next(&limit, true, SECOND + 92 * MS) == UINT64_MAX);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),       cmocka_unit_test(test_idle),
		cmocka_unit_test(test_a_late_look), cmocka_unit_test(test_shared),
		cmocka_unit_test(test_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
