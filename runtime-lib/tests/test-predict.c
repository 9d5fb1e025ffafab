/* What is predicted of launches that the driver is told to have taken so and so long: on the null
 * driver. */
#include "fake-agent.h"
#include "null-driver.h"

#include "client/client.h"
#include "measure/sample.h"
#include "preempt/function.h"
#include "measure/predict.h"

#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define CONTEXT   ((CUcontext)(uintptr_t)0x10100)
#define STREAM    ((CUstream)(uintptr_t)0x10108)
#define KERNEL(n) ((CUfunction)(uintptr_t)(0x9000 + 0x10 * (n)))

/* Bindings and pages are kept for the life of the process by intent; see client.c. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static struct fake_agent agent;
static struct null_driver *driver;
static unsigned kernels;

/* The program's parameters: a pointer and a number. */
static uint64_t pointer = 0x7f1122334455, number;
static void *params[] = {&pointer, &number};

static struct kernel_call call_of(CUfunction kernel, unsigned blocks)
{
	return (struct kernel_call){.geometry = {kernel, {blocks, 1, 1}, {64, 1, 1}, 0},
				    .params = params};
}

static struct kernel_time *time_of(CUfunction kernel, unsigned blocks)
{
	struct kernel_call call = call_of(kernel, blocks);

	return kernel_find(kernel_key(&call.geometry));
}

static uint64_t predicted(CUfunction kernel, unsigned blocks, uint64_t n)
{
	struct kernel_call call = call_of(kernel, blocks);

	number = n;
	return predict(time_of(kernel, blocks), &call);
}

static void launch(CUfunction kernel, unsigned blocks, uint64_t n)
{
	number = n;
	cuLaunchKernel(kernel, blocks, 1, 1, 64, 1, 1, 0, STREAM, params, NULL);
}

/* As the launch path has it: of each kernel one in so many is sampled. */
static uint32_t every(const struct kernel_time *time)
{
	return kernel_varies(time) ? 16 : time->mean && time->mean < 300000 ? 512 : 128;
}

/* A launch that is sampled. */
static void takes(CUfunction kernel, unsigned blocks, uint64_t n, uint64_t ns)
{
	struct kernel_time *time = time_of(kernel, blocks);
	uint32_t samples = time->samples;

	/* Samples of earlier launches have been read. */
	assert_true(eventually(!sampler_of(client_find(CONTEXT))->armed));
	driver->elapsed_ns = ns;
	for (int i = 0; i < 512 && time->samples == samples; i++) {
		/* Only samples that are due by count. */
		atomic_store(&sampler_of(client_find(CONTEXT))->due, 0);
		uint32_t before = time->launches;
		bool sampled = before < 4 || (before + 1) % every(time) == 0;
		launch(kernel, blocks, n);
		if (sampled)
			assert_true(eventually(time->samples == samples + 1));
	}
	assert_int_equal(time->samples, samples + 1);
	assert_true(eventually(!predict_pending()));
}

/* All that makes a launch another one makes its key another one, and two values never change places
 * unseen. */
static void a_key_knows_every_size_and_its_place(void **state)
{
	struct geometry geometry = {KERNEL(1), {3, 5, 7}, {11, 13, 17}, 19};
	unsigned *sizes[] = {&geometry.grid[0],  &geometry.grid[1],  &geometry.grid[2],
			     &geometry.block[0], &geometry.block[1], &geometry.block[2],
			     &geometry.shared};
	const size_t n = sizeof(sizes) / sizeof(*sizes);
	uint64_t key = kernel_key(&geometry);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		unsigned size = *sizes[i];
		for (int bit = 0; bit < 32; bit++) {
			*sizes[i] = size ^ 1u << bit;
			assert_int_not_equal(kernel_key(&geometry), key);
		}
		*sizes[i] = size;
		for (size_t j = 0; j < i; j++) {
			*sizes[i] = *sizes[j], *sizes[j] = size;
			assert_int_not_equal(kernel_key(&geometry), key);
			*sizes[j] = *sizes[i], *sizes[i] = size;
		}
	}
	assert_int_equal(kernel_key(&geometry), key);
	geometry.function = KERNEL(2);
	assert_int_not_equal(kernel_key(&geometry), key);
}

static void near(uint64_t is, uint64_t want, double relative)
{
	if (!(fabs((double)is - (double)want) <= relative * (double)want))
		fail_msg("%llu, not %llu", (unsigned long long)is, (unsigned long long)want);
}

/* The first sample only says where its arguments lie. */
static CUfunction measured(void)
{
	CUfunction kernel = KERNEL(++kernels);

	for (unsigned blocks = 50; blocks <= 800; blocks *= 2)
		takes(kernel, blocks, 7, 1000ull * blocks);
	return kernel;
}

static void sizes_never_launched_are_predicted(void **state)
{
	CUfunction kernel = KERNEL(++kernels);

	(void)state;
	assert_int_equal(predicted(kernel, 100, 7), 0);
	takes(kernel, 50, 7, 50000);
	takes(kernel, 100, 7, 100000);
	takes(kernel, 200, 7, 200000);
	assert_int_equal(predicted(kernel, 200, 7), 200000);
	assert_int_equal(predicted(kernel, 300, 7), 0);
	takes(kernel, 400, 7, 400000);
	near(predicted(kernel, 300, 7), 300000, 0.02);
	assert_int_equal(predicted(kernel, 100000, 7), 0);
	/* What is predicted so is not known to end. */
	assert_int_equal(kernel_mean(time_of(kernel, 300)), 0);
}

static CUfunction varying(void)
{
	CUfunction kernel = KERNEL(++kernels);

	for (unsigned i = 0; i < 24; i++) {
		uint64_t n = 1000 * (1 + i * 5 % 8);
		takes(kernel, 100, n, 50 * n);
	}
	return kernel;
}

static void times_that_vary_with_an_argument_follow_it(void **state)
{
	CUfunction kernel = varying();

	(void)state;
	assert_true(kernel_varies(time_of(kernel, 100)));
	near(predicted(kernel, 100, 2500), 125000, 0.05);
	near(predicted(kernel, 100, 6000), 300000, 0.05);
}

static void times_that_vary_without_a_reason_are_means(void **state)
{
	CUfunction kernel = KERNEL(++kernels);

	(void)state;
	for (unsigned i = 0; i < 24; i++)
		takes(kernel, 100, 1000, 50000 + 30000 * (i % 3));
	assert_false(kernel_varies(time_of(kernel, 100)));
	assert_true(time_of(kernel, 100)->variance > 0.01);
	assert_int_equal(predicted(kernel, 100, 1000), kernel_mean(time_of(kernel, 100)));
}

static void packed_parameters_are_read_within_their_buffer(void **state)
{
	CUfunction kernel = varying();
	uint64_t buffer[] = {pointer, 6000}, mean = kernel_mean(time_of(kernel, 100));
	size_t size = sizeof(buffer);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			 CU_LAUNCH_PARAM_END};
	struct kernel_call call = call_of(kernel, 100);

	(void)state;
	call.params = NULL;
	call.extra = extra;
	near(predict(time_of(kernel, 100), &call), 300000, 0.05);
	size = 12;
	assert_int_equal(predict(time_of(kernel, 100), &call), mean);
	call.extra = NULL;
	assert_int_equal(predict(time_of(kernel, 100), &call), mean);
	call.params = (void *[]){&pointer, NULL};
	assert_int_equal(predict(time_of(kernel, 100), &call), mean);
}

/* The handle may be another kernel's now, which has fewer parameters. */
static void nothing_is_read_after_code_was_unloaded(void **state)
{
	CUfunction kernel = measured();

	(void)state;
	near(predicted(kernel, 300, 7), 300000, 0.02);
	function_unload((void *)0x123450);
	assert_int_equal(predicted(kernel, 300, 7), 0);
	assert_int_equal(predicted(kernel, 400, 7), 400000);

	struct kernel_call call = call_of(kernel, 300);
	assert_false(predict_arguments(&call).known);
	takes(kernel, 1600, 7, 1600000);
	assert_true(predict_arguments(&call).known);
	near(predicted(kernel, 300, 7), 300000, 0.02);

	driver->parameters = 1;
	function_unload((void *)0x123450);
	takes(kernel, 3200, 7, 3200000);
	assert_int_equal(predicted(kernel, 300, 7), 0);
	params[1] = NULL;
	assert_true(predict_arguments(&call).known);
	params[1] = &number;
	driver->parameters = 2;
}

static void errors_are_told(void **state)
{
	CUfunction kernel = measured();
	struct weir_status_page *status = agent.status;
	uint64_t predictions = status->predictions, error = status->prediction_error;

	(void)state;
	uint64_t said = predicted(kernel, 300, 7);
	takes(kernel, 300, 7, 330000);
	assert_true(eventually(status->predictions == predictions + 1));
	double off = (330000.0 - (double)said) / 330000;
	near(status->prediction_error - error, (uint64_t)(off * 1e6), 0.01);
	/* What was not predicted is no error. */
	takes(KERNEL(++kernels), 300, 7, 50000);
	launch(kernel, 300, 7);
	assert_true(eventually(status->predictions == predictions + 2));
}

/* A kernel predicted to take 1000 s, which the driver says is not finished. */
static void what_has_run_remains_no_more(void **state)
{
	CUfunction kernel = KERNEL(++kernels);
	struct weir_status_page *status = agent.status;
	uint64_t whole = 1000000000000, at;

	(void)state;
	takes(kernel, 100, 7, whole);
	assert_true(eventually(!status->outstanding));
	assert_int_equal(status->remaining, 0);
	driver->streams_busy = driver->events_busy = 1;
	launch(kernel, 100, 7);
	assert_true(eventually(status->outstanding == 1 && status->remaining));
	at = status->remaining;
	assert_in_range(at, whole - 10000000000, whole);
	assert_true(eventually(status->remaining < at));

	uint64_t waits = status->waits;
	agent.control->hold_until = UINT64_MAX;
	agent.control->hold = 1;
	/* Written behind what remains. */
	assert_true(eventually(status->waits == waits + 1));
	at = status->remaining;
	usleep(50000);
	assert_int_equal(status->remaining, at);
	agent.control->hold = 0;
	assert_true(eventually(status->remaining < at));
	driver->streams_busy = driver->events_busy = 0;
	assert_true(eventually(!status->outstanding && !status->remaining));
}

/* One that takes longer than predicted is not done. */
static void what_is_late_remains(void **state)
{
	CUfunction kernel = KERNEL(++kernels);
	struct weir_status_page *status = agent.status;

	(void)state;
	takes(kernel, 100, 7, 20000);
	assert_true(eventually(!status->outstanding));
	driver->streams_busy = driver->events_busy = 1;
	launch(kernel, 100, 7);
	assert_true(eventually(status->remaining == 1));
	driver->streams_busy = driver->events_busy = 0;
	assert_true(eventually(!status->remaining));
}

static void more_kernels_than_models(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		CUfunction kernel = KERNEL(++kernels);
		launch(kernel, 10 + i % 100, i);
		predicted(kernel, 20, i);
		if (i % 16 == 0)
			usleep(1000);
	}
	near(predicted(measured(), 300, 7), 300000, 0.02);
}

/* Its kernels' handles may be those of another context's next. */
static void nothing_is_read_after_the_context_is_gone(void **state)
{
	CUfunction kernel = measured();
	struct kernel_call call = call_of(kernel, 300);

	(void)state;
	assert_true(predict_arguments(&call).known);
	cuCtxDestroy_v2(CONTEXT);
	assert_false(predict_arguments(&call).known);
	assert_int_equal(predicted(kernel, 300, 7), 0);
}

static int prepare(void **state)
{
	(void)state;
	fake_agent_init(&agent);
	driver->parameters = 2;
	/* At the top level nothing is sampled but by the count of its launches. */
	fake_agent_welcome_next(&agent, 3, 1);
	launch(KERNEL(0), 1, 0);
	fake_agent_join();
	return 0;
}

static int finish(void **state)
{
	(void)state;
	fake_agent_deinit(&agent);
	return 0;
}

static void learn(struct kernel_time *time, uint64_t key, uint64_t ns, enum kernel_crowd crowd)
{
	uint64_t believed = kernel_believe(time, key, ns, crowd);

	if (believed)
		kernel_learn(time, key, believed, 0, crowd);
}

static void what_others_lengthen_is_not_learned(void **state)
{
	const uint64_t key = 0x1234567;
	struct kernel_time *time = kernel_find(key);

	(void)state;
	learn(time, key, 100000, KERNEL_CROWDED);
	for (int i = 0; i < 8; i++)
		learn(time, key, 200000, KERNEL_CROWDED);
	assert_int_equal(kernel_mean(time), 100000);
	learn(time, key, 100000, KERNEL_CROWDED);
	for (int i = 0; i < 8; i++)
		learn(time, key, 200000, KERNEL_CROWDED);
	assert_int_equal(kernel_mean(time), 100000);
	/* It does take longer, it seems. */
	learn(time, key, 200000, KERNEL_CROWDED);
	assert_true(kernel_mean(time) > 100000);
	uint64_t before = kernel_mean(time);
	learn(time, key, 200000, KERNEL_ALONE);
	assert_true(kernel_mean(time) > before);
}

/* A kernel that is longer than a slice: all samples but the first ones are too long. */
static void what_slices_lengthen_is_not_learned(void **state)
{
	const uint64_t key = 0x7654321;
	struct kernel_time *time = kernel_find(key);

	(void)state;
	for (int i = 0; i < 4; i++)
		learn(time, key, 1700000, KERNEL_ALONE);
	for (int i = 0; i < 200; i++)
		learn(time, key, 10000000, KERNEL_SLICED);
	assert_int_equal(kernel_mean(time), 1700000);
	learn(time, key, 1500000, KERNEL_SLICED);
	assert_int_equal(kernel_mean(time), 1500000);
	/* The first sample of another one was too long. */
	time = kernel_find(key + 64);
	learn(time, key + 64, 10000000, KERNEL_SLICED);
	learn(time, key + 64, 1700000, KERNEL_SLICED);
	assert_int_equal(kernel_mean(time), 1700000);
}

/* The prediction after a measured launch. */
static uint64_t predicted_after(CUfunction kernel, uint64_t ns)
{
	driver->elapsed_ns = ns;
	atomic_store(&sampler_of(client_find(CONTEXT))->due, SAMPLE_DOUBTED);
	launch(kernel, 50, 7);
	assert_true(eventually(!sampler_of(client_find(CONTEXT))->armed));
	return kernel_mean(time_of(kernel, 50));
}

static void what_ran_behind_closed_gates_is_not_learned(void **state)
{
	CUfunction kernel = KERNEL(++kernels);

	(void)state;
	for (int i = 0; i < 4; i++)
		takes(kernel, 50, 7, 1000000);
	agent.control->hold = 1;
	assert_int_equal(predicted_after(kernel, 1900000), 1000000);
	agent.control->hold = 0;
	assert_true(predicted_after(kernel, 1900000) > 1000000);
	/* What was others' making is forgotten as soon as it is known to be. */
	while (predicted_after(kernel, 8000000) < 4000000)
		;
	agent.control->hold = 1;
	assert_int_equal(predicted_after(kernel, 1000000), 1000000);
	agent.control->hold = 0;
}

static void launches_that_go_on_are_believed_more_than_samples_if_twice_as_long(void **state)
{
	const uint64_t key = 0x2345678;
	struct kernel_time *time = kernel_find(key);

	(void)state;
	kernel_at_least(time, key, 50000);
	assert_int_equal(kernel_mean(time), 50000);
	learn(time, key, 50000, false);
	kernel_at_least(time, key, 90000);
	assert_int_equal(kernel_mean(time), 50000);
	kernel_at_least(time, key, 110000);
	assert_int_equal(kernel_mean(time), 110000);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_knows_every_size_and_its_place),
		cmocka_unit_test(what_others_lengthen_is_not_learned),
		cmocka_unit_test(what_slices_lengthen_is_not_learned),
		cmocka_unit_test(what_ran_behind_closed_gates_is_not_learned),
		cmocka_unit_test(
			launches_that_go_on_are_believed_more_than_samples_if_twice_as_long),
		cmocka_unit_test(sizes_never_launched_are_predicted),
		cmocka_unit_test(times_that_vary_with_an_argument_follow_it),
		cmocka_unit_test(times_that_vary_without_a_reason_are_means),
		cmocka_unit_test(packed_parameters_are_read_within_their_buffer),
		cmocka_unit_test(nothing_is_read_after_code_was_unloaded),
		cmocka_unit_test(errors_are_told),
		cmocka_unit_test(what_has_run_remains_no_more),
		cmocka_unit_test(what_is_late_remains),
		cmocka_unit_test(more_kernels_than_models),
		cmocka_unit_test(nothing_is_read_after_the_context_is_gone),
	};

	setenv("WEIR_DRIVER", NULL_DRIVER, 1);
	cuInit(0);
	driver = dlsym(dlopen(NULL_DRIVER, RTLD_NOW | RTLD_NOLOAD), "null_driver");
	return cmocka_run_group_tests(tests, prepare, finish);
}
