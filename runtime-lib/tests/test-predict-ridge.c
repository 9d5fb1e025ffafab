/* The regression of kernel times, on numbers that are known: closed forms computed by hand, laws
 * with and without noise, and what hostile programs may launch. */
#include "measure/predict-ridge.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct ridge ridge;
static struct ridge_model model;

static int fresh(void **state)
{
	(void)state;
	ridge.n = 0;
	return 0;
}

/* A launch of @blocks blocks of 256 threads with one scalar. */
static const double *launch(double blocks, double scalar)
{
	static double x[RIDGE_FEATURES];

	memset(x, 0, sizeof(x));
	x[0] = blocks;
	x[1] = 256;
	x[3] = scalar;
	return x;
}

static double predict(double blocks, double scalar)
{
	return ridge_predict(&model, launch(blocks, scalar));
}

static void learn(double blocks, double scalar, double ns)
{
	ridge_learn(&ridge, launch(blocks, scalar), ns);
}

static void near(double is, double want, double relative)
{
	if (!(fabs(is - want) <= relative * fabs(want)))
		fail_msg("%.9g, not %.9g", is, want);
}

static void logarithms_are_those_of_libm(void **state)
{
	(void)state;
	for (int i = -65; i < 130; i++) {
		double x = pow(1.37, i);
		assert_true(fabs(ridge_log2(x) - log2(x)) < 1e-9);
		near(ridge_exp2(log2(x)), x, 1e-9);
	}
	assert_true(ridge_log2(1) == 0);
	near(ridge_exp2(-0.5), 0.70710678118654752, 1e-12);
	near(ridge_exp2(1000), exp2(1000), 1e-9);
}

/* By hand: x = 0, 1, 2 with times of 20, 24, 30 and weights of 1/ns^2, that is 36, 25, 16 of 77.
 * Means: x 57/77, y 1800/77. Deviations in 77ths: x -57, 20, 97, y -260, 48, 510. Weighted sums:
 * xx 36*57*57 + 25*20*20 + 16*97*97 = 277508, xy 36*57*260 + 25*20*48 + 16*97*510 = 1349040. The
 * slope is xy / (xx * 1.001). */
static void three_points_have_the_slope_computed_by_hand(void **state)
{
	double slope = 1349040.0 / 277508 / 1.001;

	(void)state;
	learn(0, 0, 20);
	learn(1, 0, 24);
	learn(2, 0, 30);
	assert_true(ridge_fit(&ridge, &model));
	assert_int_equal(model.shape, RIDGE_LINEAR);
	near(model.weights[0], slope, 1e-9);
	near(predict(2, 0), 1800.0 / 77 + slope * (2 - 57.0 / 77), 1e-9);
}

static void a_line_with_an_overhead_is_found(void **state)
{
	(void)state;
	for (int n = 100; n <= 1600; n *= 2)
		learn(n, 0, 5000 + 30 * n);
	assert_true(ridge_fit(&ridge, &model));
	assert_int_equal(model.shape, RIDGE_LINEAR);
	near(predict(300, 0), 14000, 0.01);
	near(predict(3000, 0), 95000, 0.01);
	assert_true(model.error < 0.01);
}

/* As a matrix product: blocks * depth. No line fits that. */
static void a_product_of_sizes_is_found(void **state)
{
	(void)state;
	for (int n = 64; n <= 1024; n *= 2) {
		learn(n, 1000, 2.0 * n * 1000);
		learn(n, 3000, 2.0 * n * 3000);
	}
	assert_true(ridge_fit(&ridge, &model));
	assert_int_equal(model.shape, RIDGE_POWER);
	near(predict(200, 2000), 800000, 0.02);
}

/* Deterministic noise of 3 % and less. */
static void noise_is_averaged(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		double n = 100 * pow(1.2, i);
		learn(n, 0, (2000 + 100 * n) * (1 + 0.03 * sin(7.0 * i)));
	}
	assert_true(ridge_fit(&ridge, &model));
	for (int n = 110; n < 3000; n += n / 3)
		near(predict(n, 0), 2000 + 100 * n, 0.03);
	assert_true(model.error > 0.005 && model.error < 0.04);
}

static void arguments_that_do_not_matter_get_no_weight(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++)
		learn(100 + 50 * i, (i * 7919) % 1000, 3000 + 20 * (100 + 50 * i));
	assert_true(ridge_fit(&ridge, &model));
	near(predict(400, 0), 11000, 0.01);
	near(predict(400, 999), 11000, 0.01);
}

/* Blocks and elements always vary together; the matrix is singular without the penalty. */
static void features_that_say_the_same_do_no_harm(void **state)
{
	(void)state;
	for (int n = 10; n <= 320; n *= 2)
		learn(n, n * 256, 1000 * n);
	assert_true(ridge_fit(&ridge, &model));
	near(predict(100, 25600), 100000, 0.01);
}

static void few_sizes_or_one_are_no_model(void **state)
{
	(void)state;
	assert_false(ridge_fit(&ridge, &model));
	learn(10, 0, 1000);
	learn(10, 0, 1100);
	learn(10, 0, 1050);
	learn(20, 0, 2000);
	assert_int_equal(ridge.n, 2);
	assert_false(ridge_fit(&ridge, &model));
	assert_int_equal(model.shape, RIDGE_NONE);
	assert_true(predict(10, 0) == 0);
}

static void times_without_a_law_are_no_model(void **state)
{
	static const double ns[] = {100, 90000, 300, 70000, 200, 80000};

	(void)state;
	for (int i = 0; i < 6; i++)
		learn(100 + i, 0, ns[i]);
	assert_false(ridge_fit(&ridge, &model));
}

static void sizes_far_from_all_seen_are_not_predicted(void **state)
{
	(void)state;
	for (int n = 100; n <= 400; n += 100)
		learn(n, 1000, 10 * n);
	assert_true(ridge_fit(&ridge, &model));
	assert_true(predict(1600, 1000) > 0);
	assert_true(predict(1700, 1000) == 0);
	assert_true(predict(24, 1000) == 0);
	assert_true(predict(200, 0) == 0);
	assert_true(predict(NAN, 1000) == 0);
}

static void the_most_redundant_point_makes_room(void **state)
{
	(void)state;
	for (size_t i = 0; i < RIDGE_POINTS; i++)
		learn(exp2((double)i), 0, 1000);
	for (int i = 0; i < 100; i++)
		learn(100 + i, 0, 1000);
	assert_int_equal(ridge.n, RIDGE_POINTS);
	double least = INFINITY, most = 0;
	for (size_t i = 0; i < ridge.n; i++) {
		least = fmin(least, ridge.points[i].x[0]);
		most = fmax(most, ridge.points[i].x[0]);
	}
	assert_true(least <= 2);
	assert_true(most >= exp2(RIDGE_POINTS - 2));
}

static void a_shorter_time_counts_for_more(void **state)
{
	(void)state;
	learn(10, 0, 1000);
	assert_false(ridge_learn(&ridge, launch(10, 0), 1008));
	near(ridge.points[0].ns, 1001, 1e-9);
	assert_true(ridge_learn(&ridge, launch(10, 0), 500));
	near(ridge.points[0].ns, 500, 1e-9);
}

static void hostile_numbers_are_ignored_or_harmless(void **state)
{
	double x[RIDGE_FEATURES] = {1};
	unsigned most[3] = {~0u, ~0u, ~0u};
	uint64_t scalars[RIDGE_SCALARS];

	(void)state;
	assert_false(ridge_learn(&ridge, x, 0));
	assert_false(ridge_learn(&ridge, x, NAN));
	assert_false(ridge_learn(&ridge, x, INFINITY));
	x[5] = -1;
	assert_false(ridge_learn(&ridge, x, 1000));
	x[5] = NAN;
	assert_false(ridge_learn(&ridge, x, 1000));
	assert_int_equal(ridge.n, 0);

	memset(scalars, 0xff, sizeof(scalars));
	ridge_describe(x, most, most, ~0u, scalars);
	assert_true(x[3] == 0);
	scalars[0] = 1000;
	ridge_describe(x, (unsigned[3]){2, 3, 4}, (unsigned[3]){5, 6, 7}, 8, scalars);
	assert_true(x[0] == 24 && x[1] == 210 && x[2] == 8 && x[3] == 1000 && x[4] == 0);

	/* The largest and smallest of everything, in all features at once. */
	uint64_t seed = 1;
	for (int i = 0; i < 200; i++) {
		for (size_t j = 0; j < RIDGE_FEATURES; j++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			x[j] = seed >> 62 ? RIDGE_MOST / (double)((seed >> 33) + 1) : 0;
		}
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		ridge_learn(&ridge, x, seed >> 63 ? RIDGE_NS_MOST : 1);
		ridge_fit(&ridge, &model);
		double ns = ridge_predict(&model, x);
		assert_true(ns >= 0 && ns <= 8 * RIDGE_NS_MOST);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(logarithms_are_those_of_libm, fresh),
		cmocka_unit_test_setup(three_points_have_the_slope_computed_by_hand, fresh),
		cmocka_unit_test_setup(a_line_with_an_overhead_is_found, fresh),
		cmocka_unit_test_setup(a_product_of_sizes_is_found, fresh),
		cmocka_unit_test_setup(noise_is_averaged, fresh),
		cmocka_unit_test_setup(arguments_that_do_not_matter_get_no_weight, fresh),
		cmocka_unit_test_setup(features_that_say_the_same_do_no_harm, fresh),
		cmocka_unit_test_setup(few_sizes_or_one_are_no_model, fresh),
		cmocka_unit_test_setup(times_without_a_law_are_no_model, fresh),
		cmocka_unit_test_setup(sizes_far_from_all_seen_are_not_predicted, fresh),
		cmocka_unit_test_setup(the_most_redundant_point_makes_room, fresh),
		cmocka_unit_test_setup(a_shorter_time_counts_for_more, fresh),
		cmocka_unit_test_setup(hostile_numbers_are_ignored_or_harmless, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
