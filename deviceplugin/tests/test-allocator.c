/* Choosing shares, and checking sets of shares. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"

static const struct node two = {.n_gpus = 2, .numa = {-1, -1}};
static const struct node four = {.n_gpus = 4, .numa = {0, 0, 1, 1}};
static const struct shares none;

static void add(struct shares *shares, unsigned gpu, unsigned first, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		shares_add(shares, gpu, first + i);
}

static void counts_shares_across_the_word_boundary(void **state)
{
	struct shares shares = {0};

	(void)state;
	add(&shares, 1, 60, 10);
	assert_int_equal(shares_count(&shares, 1), 10);
	assert_int_equal(shares_count(&shares, 0), 0);
	assert_true(shares_has(&shares, 1, 63));
	assert_true(shares_has(&shares, 1, 64));
	assert_false(shares_has(&shares, 1, 70));
	assert_int_equal(shares_total(&shares), 10);
}

static void packs_the_fullest_gpu_that_fits(void **state)
{
	struct shares available = {0}, chosen;

	(void)state;
	add(&available, 0, 0, 100);
	add(&available, 1, 40, 60);
	assert_true(allocator_prefer(&chosen, &two, &available, &none, 60));
	assert_int_equal(shares_count(&chosen, 1), 60);
	assert_int_equal(shares_count(&chosen, 0), 0);
}

static void spreads_over_gpus_and_nodes(void **state)
{
	struct node node = four;
	struct shares available = {0}, chosen;

	(void)state;
	node.spread = true;
	for (unsigned gpu = 0; gpu < 4; gpu++)
		add(&available, gpu, gpu == 0 ? 50 : 0, gpu == 0 ? 50 : 100);
	assert_true(allocator_prefer(&chosen, &node, &available, &none, 20));
	assert_int_equal(shares_count(&chosen, 2), 20); /* node 1 has more than node 0 */
	memset(available.bits[2], 0, sizeof(available.bits[2]));
	assert_true(allocator_prefer(&chosen, &node, &available, &none, 20));
	assert_int_equal(shares_count(&chosen, 1), 20);
}

static void one_whole_gpu_leaves_whole_nodes_alone(void **state)
{
	struct shares available = {0}, chosen;

	(void)state;
	for (unsigned gpu = 0; gpu < 4; gpu++)
		add(&available, gpu, gpu == 3 ? 1 : 0, gpu == 3 ? 99 : 100);
	assert_true(allocator_prefer(&chosen, &four, &available, &none, 100));
	assert_int_equal(shares_count(&chosen, 2), 100);
	assert_false(allocator_prefer(&chosen, &two, &none, &none, 100));
}

static void takes_an_emptier_gpu_when_the_fullest_is_too_full(void **state)
{
	struct shares available = {0}, chosen;

	(void)state;
	add(&available, 0, 0, 100);
	add(&available, 1, 40, 60);
	assert_true(allocator_prefer(&chosen, &two, &available, &none, 61));
	assert_int_equal(shares_count(&chosen, 0), 61);
	assert_int_equal(shares_count(&chosen, 1), 0);
}

static void never_mixes_gpus(void **state)
{
	struct shares available = {0}, chosen;

	(void)state;
	add(&available, 0, 0, 30);
	add(&available, 1, 0, 30);
	assert_false(allocator_prefer(&chosen, &two, &available, &none, 60));
}

static void keeps_what_must_be_included(void **state)
{
	struct shares available = {0}, must = {0}, chosen;

	(void)state;
	add(&available, 0, 0, 100);
	add(&available, 1, 40, 60);
	shares_add(&must, 0, 99);
	assert_true(allocator_prefer(&chosen, &two, &available, &must, 10));
	assert_int_equal(shares_count(&chosen, 0), 10);
	assert_true(shares_has(&chosen, 0, 99));
}

static void has_no_choice_when_the_must_are_on_two_gpus(void **state)
{
	struct shares available = {0}, must = {0}, chosen;

	(void)state;
	add(&available, 0, 0, 100);
	add(&available, 1, 0, 100);
	shares_add(&must, 0, 0);
	shares_add(&must, 1, 0);
	assert_false(allocator_prefer(&chosen, &two, &available, &must, 10));
	assert_false(allocator_prefer(&chosen, &two, &available, &must, 1));
}

static void has_no_choice_for_none_or_odd_sizes(void **state)
{
	struct shares available = {0}, chosen;

	(void)state;
	add(&available, 0, 0, 100);
	add(&available, 1, 0, 100);
	assert_false(allocator_prefer(&chosen, &two, &available, &none, 0));
	assert_false(allocator_prefer(&chosen, &two, &available, &none, 150));
	assert_false(allocator_prefer(&chosen, &two, &available, &none, 300));
	assert_false(allocator_prefer(&chosen, &two, &available, &none, 0x80000000u));
}

static void takes_whole_gpus_of_one_numa_node(void **state)
{
	struct shares available = {0}, chosen;

	(void)state;
	add(&available, 0, 1, 99); /* not whole */
	for (unsigned gpu = 1; gpu < 4; gpu++)
		add(&available, gpu, 0, 100);
	assert_true(allocator_prefer(&chosen, &four, &available, &none, 200));
	assert_int_equal(shares_count(&chosen, 2), 100);
	assert_int_equal(shares_count(&chosen, 3), 100);
	assert_int_equal(shares_total(&chosen), 200);
}

static void takes_whole_gpus_of_two_nodes_when_one_has_too_few(void **state)
{
	struct shares available = {0}, must = {0}, chosen;

	(void)state;
	for (unsigned gpu = 0; gpu < 4; gpu++)
		add(&available, gpu, 0, 100);
	shares_add(&must, 3, 5);
	assert_true(allocator_prefer(&chosen, &four, &available, &must, 300));
	assert_int_equal(shares_total(&chosen), 300);
	assert_int_equal(shares_count(&chosen, 3), 100);
}

static void scatters_over_the_fullest_gpus(void **state)
{
	struct shares available = {0}, must = {0}, chosen;

	(void)state;
	add(&available, 0, 0, 40);
	add(&available, 1, 70, 30);
	add(&available, 3, 0, 40);
	shares_add(&must, 3, 5);
	allocator_scatter(&chosen, &four, &available, &must, 50);
	assert_int_equal(shares_total(&chosen), 50);
	assert_int_equal(shares_count(&chosen, 1), 30);
	assert_int_equal(shares_count(&chosen, 3), 1);
	assert_int_equal(shares_count(&chosen, 0), 19);
	allocator_scatter(&chosen, &four, &available, &must, 120);
	assert_int_equal(shares_total(&chosen), 110);
}

static void grants_a_part_of_one_gpu(void **state)
{
	struct shares taken = {0};
	struct grant grant;

	(void)state;
	add(&taken, 1, 0, 99);
	assert_int_equal(allocator_check(&grant, &two, &taken), ALLOCATION_OK);
	assert_int_equal(grant.n_gpus, 1);
	assert_int_equal(grant.gpus[0], 1);
	assert_int_equal(grant.n_shares, 99);
	assert_false(grant.whole);
}

static void grants_whole_gpus(void **state)
{
	struct shares taken = {0};
	struct grant grant;

	(void)state;
	add(&taken, 1, 0, 100);
	assert_int_equal(allocator_check(&grant, &four, &taken), ALLOCATION_OK);
	assert_true(grant.whole);
	add(&taken, 3, 0, 100);
	assert_int_equal(allocator_check(&grant, &four, &taken), ALLOCATION_OK);
	assert_true(grant.whole);
	assert_int_equal(grant.n_gpus, 2);
	assert_int_equal(grant.gpus[1], 3);
}

static void explains_each_refusal(void **state)
{
	struct shares taken = {0};
	struct grant grant;
	char text[256];

	(void)state;
	assert_int_equal(allocator_check(&grant, &four, &taken), ALLOCATION_NONE);

	add(&taken, 0, 0, 40);
	add(&taken, 1, 0, 20);
	assert_int_equal(allocator_check(&grant, &four, &taken), ALLOCATION_SPLIT);
	allocator_explain(text, sizeof(text), ALLOCATION_SPLIT, "weir.dev/gpu-share", &taken);
	assert_string_equal(text, "weir.dev/gpu-share: no GPU of this node had 60 shares free; a "
				  "container's shares must come from one GPU");

	add(&taken, 2, 0, 90);
	assert_int_equal(allocator_check(&grant, &four, &taken), ALLOCATION_TOO_MANY);
	allocator_explain(text, sizeof(text), ALLOCATION_TOO_MANY, "weir.dev/gpu-share", &taken);
	assert_string_equal(text, "weir.dev/gpu-share: 150 shares do not fit on one GPU (at most "
				  "100, or a multiple of 100 for whole GPUs)");

	add(&taken, 3, 0, 50);
	assert_int_equal(allocator_check(&grant, &four, &taken), ALLOCATION_PARTIAL);
	allocator_explain(text, sizeof(text), ALLOCATION_PARTIAL, "weir.dev/gpu-share", &taken);
	assert_non_null(strstr(text, "no 2 whole GPUs free"));
}

static void truncates_explanations(void **state)
{
	struct shares taken = {0};
	char text[256];

	(void)state;
	for (unsigned gpu = 0; gpu < GPUS_MAX; gpu++)
		add(&taken, gpu, 0, 1);
	allocator_explain(text, sizeof(text), ALLOCATION_SPLIT, "weir.dev/gpu-share", &taken);
	assert_in_range(strlen(text), 80, 255);
	allocator_explain(text, 8, ALLOCATION_SPLIT, "weir.dev/gpu-share", &taken);
	assert_string_equal(text, "weir.de");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_shares_across_the_word_boundary),
		cmocka_unit_test(packs_the_fullest_gpu_that_fits),
		cmocka_unit_test(spreads_over_gpus_and_nodes),
		cmocka_unit_test(one_whole_gpu_leaves_whole_nodes_alone),
		cmocka_unit_test(takes_an_emptier_gpu_when_the_fullest_is_too_full),
		cmocka_unit_test(never_mixes_gpus),
		cmocka_unit_test(keeps_what_must_be_included),
		cmocka_unit_test(has_no_choice_when_the_must_are_on_two_gpus),
		cmocka_unit_test(has_no_choice_for_none_or_odd_sizes),
		cmocka_unit_test(takes_whole_gpus_of_one_numa_node),
		cmocka_unit_test(takes_whole_gpus_of_two_nodes_when_one_has_too_few),
		cmocka_unit_test(scatters_over_the_fullest_gpus),
		cmocka_unit_test(grants_a_part_of_one_gpu),
		cmocka_unit_test(grants_whole_gpus),
		cmocka_unit_test(explains_each_refusal),
		cmocka_unit_test(truncates_explanations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
