/* Launches that may begin before the launch in front of them is finished, and launches that record
 * programmatic events. */
#include "formed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#define ATTRIBUTES_MANY 20u

static CUlaunchAttribute attributes[ATTRIBUTES_MANY];

static void launch_with(unsigned n, CUfunction kernel, unsigned count)
{
	CUlaunchConfig config = {.gridDimX = BLOCKS,
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = 64,
				 .blockDimY = 1,
				 .blockDimZ = 1,
				 .hStream = STREAM(n, 1),
				 .attrs = attributes,
				 .numAttrs = count};

	driver->n_ops = 0;
	assert_int_equal(cuLaunchKernelEx(&config, kernel, params, NULL), CUDA_SUCCESS);
	land(0);
}

static void set_dependent(unsigned at, int allowed)
{
	attributes[at] =
		(CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
				    .value.programmaticStreamSerializationAllowed = allowed};
}

/* Checks the launches among the recorded driver calls. */
static void all_launches(bool in_form, unsigned count)
{
	unsigned launches = 0;

	for (size_t i = 0; i < driver->n_ops; i++) {
		const struct null_op *op = &driver->ops[i];
		if (op->kind != NULL_LAUNCH)
			continue;
		assert_int_equal(is_form(op), in_form);
		assert_int_equal(op->attributes, count);
		launches++;
	}
	assert_true(in_form ? launches > 1 : launches == 1);
}

static void forms_wait_for_the_launch_before(void **state)
{
	unsigned n = welcomed(1);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(2000000, &rewritten);

	(void)state;
	/* Such launches are measured, too. */
	set_dependent(0, 1);
	for (int i = 0; i < 400 && !in_form(); i++) {
		launch_with(n, kernel, 1);
		usleep(2000);
	}
	assert_true(settles(n, kernel, BLOCKS));

	launch_with(n, kernel, 1);
	all_launches(true, 0);
	attributes[1] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_IGNORE};
	set_dependent(2, 1);
	launch_with(n, kernel, 3);
	all_launches(true, 1);

	/* Others stay as they are. */
	attributes[1].id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
	launch_with(n, kernel, 3);
	all_launches(false, 3);
	for (unsigned i = 1; i < ATTRIBUTES_MANY; i++)
		attributes[i].id = CU_LAUNCH_ATTRIBUTE_IGNORE;
	launch_with(n, kernel, ATTRIBUTES_MANY);
	all_launches(false, ATTRIBUTES_MANY);
	gone(n);
}

/* Nobody can preempt the top level, so its launches keep their overlap. */
static void the_top_level_is_not_measured(void **state)
{
	unsigned n = welcomed(3);
	struct rewritten rewritten = in_forms(0);
	CUfunction kernel = kernel_of(2000000, &rewritten);

	(void)state;
	set_dependent(0, 1);
	int recorded = driver->events_recorded;
	for (int i = 0; i < 20; i++)
		launch_with(n, kernel, 1);
	assert_int_equal(driver->events_recorded, recorded);
	set_dependent(0, 0);
	for (int i = 0; i < 20; i++)
		launch_with(n, kernel, 1);
	assert_true(driver->events_recorded > recorded);
	gone(n);
}

/* A kernel behind such an event may wait for it by itself. The last test: this stays so. */
static void programmatic_events_end_the_forms(void **state)
{
	unsigned n = welcomed(1);
	struct rewritten rewritten = in_forms(1u << WEIR_PERSISTENT);
	CUfunction kernel = kernel_of(2000000, &rewritten);

	(void)state;
	assert_true(settles(n, kernel, BLOCKS));
	ops_of(n, kernel, BLOCKS);
	assert_true(in_form());
	attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
	launch_with(n, kernel, 1);
	all_launches(false, 1);
	ops_of(n, kernel, BLOCKS);
	assert_false(in_form());
	gone(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms_wait_for_the_launch_before),
		cmocka_unit_test(the_top_level_is_not_measured),
		cmocka_unit_test(programmatic_events_end_the_forms),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
