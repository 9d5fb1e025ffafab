/* Kernels that those above can wait for run as they are (agent/scheduler/patience.h). */
#include "formed.h"

#include "gates/gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* Somebody above wants the GPU now, so that for a second gates are dense. */
static void somebody_comes(unsigned n)
{
	agent.demand[1]->word = 1;
	launch_call(n, (CUfunction)0x8000, 1);
	usleep(50000);
	assert_true(eventually(gating_of(client)->interval == GATE_INTERVAL_CONTENDED));
	agent.demand[1]->word = 0;
}

/* Those above can wait for so long. */
static void bear(uint32_t ns)
{
	agent.control->max_blocking_time = ns;
	assert_true(eventually(atomic_load(&waiters_of(client)->max_blocking_time) == ns));
}

/* How many of some launches that are measured, each of them. */
static unsigned measured_forms_of(unsigned n, CUfunction kernel)
{
	unsigned forms = 0;

	for (unsigned i = 0; i < 6; i++) {
		measure_next();
		forms += forms_of(n, kernel, 1);
		assert_true(eventually(!sampler_of(client)->armed));
	}
	return forms;
}

static void what_those_above_can_wait_for_stays_native(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(1);

	(void)state;
	somebody_comes(n);
	bear(312500);
	CUfunction kernel = kernel_of(200000, &rewritten);
	assert_int_equal(measured_forms_of(n, kernel), 0);
	assert_null(tuned_for(kernel));

	/* Somebody comes whose work is short: it has its form, */
	bear(6250);
	measured_forms_of(n, kernel);
	assert_true(settles(n, kernel, BLOCKS));
	somebody_comes(n);
	assert_int_equal(forms_of(n, kernel, 5), 5);

	/* but not while he is away. */
	bear(312500);
	somebody_comes(n);
	assert_int_equal(forms_of(n, kernel, 5), 0);
	bear(0);
	somebody_comes(n);
	assert_int_equal(forms_of(n, kernel, 5), 5);

	/* A longer one has its own. */
	bear(312500);
	kernel = kernel_of(400000, &rewritten);
	assert_true(settles(n, kernel, BLOCKS));
	somebody_comes(n);
	assert_int_equal(forms_of(n, kernel, 5), 5);
	agent.control->max_blocking_time = 0;
	gone(n);
}

static void no_form_is_asked_for_that_is_not_needed_any_more(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(1);

	(void)state;
	usleep(50000);
	CUfunction kernel = kernel_of(300000, &rewritten);
	measured_forms_of(n, kernel);
	assert_int_equal(tuned_for(kernel)->tuner.state, AUTOTUNE_WANTED);
	bear(312500);
	somebody_waits(n);
	usleep(20000);
	assert_int_equal(tuned_for(kernel)->tuner.state, AUTOTUNE_WANTED);
	bear(0);
	assert_true(eventually(is_tried(kernel)));
	gone(n);
}

static void equals_who_must_not_wait_have_no_patience(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(1);

	(void)state;
	bear(312500);
	agent.control->flags = WEIR_CONTROL_HOLDABLE | WEIR_CONTROL_CONTENDED | WEIR_CONTROL_URGENT;
	assert_true(eventually(atomic_load(&waiters_of(client)->max_blocking_time) == 0));
	CUfunction kernel = kernel_of(200000, &rewritten);
	assert_true(settles(n, kernel, BLOCKS));
	assert_int_equal(forms_of(n, kernel, 5), 5);

	/* They may come back at any time. */
	agent.control->flags = 0;
	somebody_comes(n);
	assert_int_equal(forms_of(n, kernel, 5), 5);
	agent.control->max_blocking_time = 0;
	gone(n);
}

static void what_the_user_says_counts_alone(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(1);

	(void)state;
	setenv("WEIR_PREEMPT_LATENCY_US", "150", 1);
	tuning_init();
	somebody_comes(n);
	bear(312500);
	CUfunction kernel = kernel_of(200000, &rewritten);
	assert_true(settles(n, kernel, BLOCKS));
	somebody_comes(n);
	assert_int_equal(forms_of(n, kernel, 5), 5);
	kernel = kernel_of(140000, &rewritten);
	assert_int_equal(measured_forms_of(n, kernel), 0);
	assert_null(tuned_for(kernel));
	unsetenv("WEIR_PREEMPT_LATENCY_US");
	tuning_init();
	agent.control->max_blocking_time = 0;
	gone(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_those_above_can_wait_for_stays_native),
		cmocka_unit_test(no_form_is_asked_for_that_is_not_needed_any_more),
		cmocka_unit_test(equals_who_must_not_wait_have_no_patience),
		cmocka_unit_test(what_the_user_says_counts_alone),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
