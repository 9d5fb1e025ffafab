/* The autotuner alone: its thresholds. */
#include "autotune/autotune.h"
#include "autotune/autotune-candidates.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* A kernel that is launched for ever, with a persistent form. */
struct model {
	struct autotuner *tuner;
	struct autotune_situation at;
	uint64_t native; /* ns */
	double ratio;    /* of the form */
	bool impossible; /* no launch in the form can be made */
	unsigned natives, forms;
};

static const struct autotune_settings usual = {.latency = LATENCY_NS, .forced = WEIR_FORM_COUNT};

static void model_begin(struct model *m, enum waiting waiting, uint64_t native, double ratio)
{
	static const unsigned grid[3] = {100000, 1, 1};
	struct kernel_facts facts = {.sms = 4, .resident = 32};

	facts.builds[WEIR_PERSISTENT][0].resident = 32;
	*m = (struct model){.tuner = calloc(1, sizeof(*m->tuner)),
			    .at = {.now = 1, .waiting = waiting, .lowest_level = true},
			    .native = native,
			    .ratio = ratio};
	assert_non_null(m->tuner);
	autotune_init(m->tuner, &usual, grid, native, 1);
	autotune_forms(m->tuner, &m->at, &facts);
}

static void model_launch(struct model *m)
{
	struct autotune_launch launch = {.native = m->native};
	struct launch_decision d = autotune_decide(m->tuner, &m->at, &launch);
	bool form = d.config && !m->impossible;

	if (d.config && m->impossible)
		autotune_not_launched(m->tuner);
	m->natives += !form;
	m->forms += form;
	struct autotune_sample sample = {.candidate = form ? d.candidate : 0, .ns = m->native};
	if (form)
		sample.ns = (uint64_t)((double)m->native * m->ratio);
	m->at.now += sample.ns;
	autotune_sample(m->tuner, &m->at, &sample);
}

static void model_settle(struct model *m)
{
	while (m->tuner->state == AUTOTUNE_COMPARING)
		model_launch(m);
	assert_int_equal(m->tuner->state, AUTOTUNE_SETTLED);
}

static void the_median_decides_and_the_smaller_of_two(void **state)
{
	static const uint64_t times[] = {7, 3, 5};
	struct candidate candidate = {0};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		static const uint64_t wants[] = {7, 3, 5};
		candidate_add(&candidate, &(struct autotune_sample){.ns = times[i]});
		assert_int_equal(candidate_time(&candidate), wants[i]);
	}
}

static void overheads_have_limits(void **state)
{
	static const struct {
		enum waiting waiting;
		double ratio;
		bool used;
	} cases[] = {
		{WAITING_NOBODY, 1.015, true},    {WAITING_NOBODY, 1.025, false},
		{WAITING_SAME_LEVEL, 1.24, true}, {WAITING_SAME_LEVEL, 1.26, false},
		{WAITING_URGENT, 1.24, true},     {WAITING_URGENT, 1.26, false},
	};
	struct model m;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		model_begin(&m, cases[i].waiting, 5000000, cases[i].ratio);
		model_settle(&m);
		assert_int_equal(m.tuner->in_use[cases[i].waiting] != 0, cases[i].used);
		free(m.tuner);
	}
}

static void a_hopeless_candidate_is_launched_once(void **state)
{
	struct model m;

	(void)state;
	for (unsigned hopeless = 0; hopeless < 2; hopeless++) {
		model_begin(&m, WAITING_NOBODY, 5000000, hopeless ? 1.55 : 1.45);
		while (m.tuner->in_use[WAITING_NOBODY] == 1)
			model_launch(&m);
		assert_true((m.forms == 1) == hopeless);
		free(m.tuner);
	}
}

/* Each of its native launches is what a higher-level client may find. */
static void hopeless_candidates_are_compared_with_few_native_launches_below_others(void **state)
{
	struct model m;

	(void)state;
	model_begin(&m, WAITING_URGENT, 5000000, 3);
	assert_true(m.tuner->n > 2);
	model_settle(&m);
	assert_in_range(m.natives, 1, 2);
	assert_true(m.at.now >= m.natives * NATIVE_URGENT_NS);
	free(m.tuner);
}

static void a_form_that_is_never_launched_is_given_up(void **state)
{
	struct model m;

	(void)state;
	model_begin(&m, WAITING_NOBODY, 5000000, 1);
	m.impossible = true;
	model_settle(&m);
	assert_int_equal(m.natives, 400);
	assert_int_equal(m.tuner->in_use[WAITING_NOBODY], 0);
	free(m.tuner);
}

/* Three samples within at least 0.2 s. */
static void a_kernel_that_stays_slower_is_tuned_again(void **state)
{
	struct model m;

	(void)state;
	model_begin(&m, WAITING_NOBODY, 5000000, 1.4);
	model_settle(&m);
	m.native = 150000000;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(m.tuner->state, AUTOTUNE_SETTLED);
		model_launch(&m);
	}
	assert_int_equal(m.tuner->state, AUTOTUNE_WANTED);
	free(m.tuner);
}

static void a_chain_that_was_too_short_is_long_for_eight_launches(void **state)
{
	struct model m;

	(void)state;
	model_begin(&m, WAITING_NOBODY, 5000000, 1);
	autotune_evicted(m.tuner, 3, 3);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(m.tuner->chain, 51);
		autotune_evicted(m.tuner, 0, 51);
	}
	assert_in_range(m.tuner->chain, 4, 15);
	free(m.tuner);
}

/* Records are used again for other kernels. */
static void a_reused_record_resumes_nothing(void **state)
{
	static const unsigned grid[3] = {1000, 1, 1};
	const struct autotune_situation at = {.now = 1};
	struct autotuner *tuner = calloc(1, sizeof(*tuner));

	(void)state;
	assert_non_null(tuner);
	autotune_init(tuner, &usual, grid, 1000000, 1);
	tuner->postponed = 3;
	autotune_init(tuner, &usual, grid, 1000000, 1);
	autotune_no_forms(tuner, "the test says so");
	assert_int_equal(autotune_need(tuner, &at), AUTOTUNE_NEEDS_NOTHING);
	free(tuner);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_median_decides_and_the_smaller_of_two),
		cmocka_unit_test(overheads_have_limits),
		cmocka_unit_test(a_hopeless_candidate_is_launched_once),
		cmocka_unit_test(
			hopeless_candidates_are_compared_with_few_native_launches_below_others),
		cmocka_unit_test(a_form_that_is_never_launched_is_given_up),
		cmocka_unit_test(a_kernel_that_stays_slower_is_tuned_again),
		cmocka_unit_test(a_chain_that_was_too_short_is_long_for_eight_launches),
		cmocka_unit_test(a_reused_record_resumes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
