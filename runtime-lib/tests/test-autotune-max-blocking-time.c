/* Kernels that higher-level clients can wait for run natively
 * (agent/scheduler/max-blocking-time.h). */
#include "formed.h"

#include "gates/gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* A higher-level client shows demand, so gates are dense for a second. */
static void somebody_comes(unsigned n)
{
	agent.demand[1]->word = 1;
	launch_call(n, (CUfunction)0x8000, 1);
	usleep(50000);
	assert_true(eventually(gating_of(client)->interval == GATE_INTERVAL_CONTENDED));
	agent.demand[1]->word = 0;
}

/* Sets how long higher-level clients can wait. */
static void bear(uint32_t ns)
{
	agent.control->max_blocking_time = ns;
	assert_true(eventually(atomic_load(&waiters_of(client)->max_blocking_time) == ns));
}

/* Of six launches, all of them measured. */
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

static void kernels_within_the_max_blocking_time_run_natively(void **state)
{
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	unsigned n = welcomed(1);

	(void)state;
	somebody_comes(n);
	bear(312500);
	CUfunction kernel = kernel_of(200000, &rewritten);
	assert_int_equal(measured_forms_of(n, kernel), 0);
	assert_null(tuned_for(kernel));

	/* A client with short work comes: the kernel runs in its form. */
	bear(6250);
	measured_forms_of(n, kernel);
	assert_true(settles(n, kernel, BLOCKS));
	somebody_comes(n);
	assert_int_equal(forms_of(n, kernel, 5), 5);

	/* It goes. */
	bear(312500);
	somebody_comes(n);
	assert_int_equal(forms_of(n, kernel, 5), 0);
	bear(0);
	somebody_comes(n);
	assert_int_equal(forms_of(n, kernel, 5), 5);

	/* A longer kernel has its own form. */
	bear(312500);
	kernel = kernel_of(400000, &rewritten);
	assert_true(settles(n, kernel, BLOCKS));
	somebody_comes(n);
	assert_int_equal(forms_of(n, kernel, 5), 5);
	agent.control->max_blocking_time = 0;
	gone(n);
}

static void no_form_is_requested_while_the_kernel_is_within_the_max_blocking_time(void **state)
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

static void urgent_same_level_clients_have_no_max_blocking_time(void **state)
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

	/* They may come back within 10 s. */
	agent.control->flags = 0;
	somebody_comes(n);
	assert_int_equal(forms_of(n, kernel, 5), 5);
	agent.control->max_blocking_time = 0;
	gone(n);
}

static void the_latency_of_the_user_replaces_the_max_blocking_time(void **state)
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
		cmocka_unit_test(kernels_within_the_max_blocking_time_run_natively),
		cmocka_unit_test(
			no_form_is_requested_while_the_kernel_is_within_the_max_blocking_time),
		cmocka_unit_test(urgent_same_level_clients_have_no_max_blocking_time),
		cmocka_unit_test(the_latency_of_the_user_replaces_the_max_blocking_time),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
