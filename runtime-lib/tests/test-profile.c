/* Profiles on their way from one process to the next: taught when a comparison has settled a
 * kernel, and taken instead of a comparison. */
#include "formed.h"
#include "measure/kernel.h"
#include "wanted.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define NS 5000000u

/* A kernel of code with PTX, that takes long. */
static CUfunction long_kernel(const char *name)
{
	CUfunction kernel = get(load(PTX), name);

	driver->elapsed_ns = driver->form_elapsed_ns = NS;
	return kernel;
}

static void launch_again(unsigned n, CUfunction kernel)
{
	launch_call(n, kernel, BLOCKS);
	land(0);
	usleep(2000);
}

/* Launches until the agent is asked for the kernel's forms. */
static void ask_by_launches(unsigned n, CUfunction kernel, struct fake_request *request)
{
	for (int i = 0; i < EVENTUALLY_MS / 2 && fake_agent_quiet(&agent); i++)
		launch_again(n, kernel);
	fake_agent_asked(&agent, request);
	free(request->file);
}

static void answer_with(uint32_t id, const char *kernel, const struct weir_profile *entries,
			uint32_t n)
{
	fake_agent_profile(&agent, id, 7, entries, n);
	make_object(kernel, "form");
	fake_agent_compiled(&agent, id, WEIR_COMPILE_OK, object.bytes, object.size);
}

static bool settled(CUfunction kernel)
{
	const struct tuned_kernel *tuned = tuned_for(kernel);

	return tuned && tuned->tuner.state == AUTOTUNE_SETTLED;
}

/* It is, or was. */
static bool is_compared(CUfunction kernel)
{
	const struct tuned_kernel *tuned = tuned_for(kernel);

	return tuned && (tuned->tuner.measured || is_tried(kernel));
}

/* What is taught settles the same kernel in the next process (here: context) at once. */
static void what_one_process_learns_settles_the_next(void **state)
{
	struct weir_profile entries[2] = {{.native = 0}}; /* the first one is malformed */
	struct fake_request request;

	(void)state;
	unsigned n = welcomed(2);
	CUfunction kernel = long_kernel("first");
	ask_by_launches(n, kernel, &request);
	answer_with(request.id, "first", NULL, 0);
	assert_true(settles(n, kernel, BLOCKS));
	struct weir_learned learned = fake_agent_learned(&agent);
	assert_int_equal(learned.kernel[0], 7);
	assert_int_equal(learned.profile.geometry.grid[0], BLOCKS);
	assert_int_equal(learned.profile.geometry.block[0], 64);
	assert_int_equal(learned.profile.geometry.sms, NULL_SMS);
	assert_true(weir_profile_is_sane(&learned.profile));
	const struct launch_config *config = config_in_use(tuned_for(kernel), WAITING_NOBODY);
	enum weir_form form = config->form;
	uint64_t number = tuning_of(config)->number;
	assert_true(number);
	assert_int_equal(learned.profile.choices[WAITING_NOBODY].form, form);
	context_gone(n);

	n = welcomed(2);
	kernel = long_kernel("next");
	ask_by_launches(n, kernel, &request);
	entries[1] = learned.profile;
	answer_with(request.id, "next", entries, 2);
	/* Without a launch there is no comparison. */
	assert_true(eventually(settled(kernel)));
	assert_false(tuned_for(kernel)->tuner.measured);
	assert_int_equal(tuned_for(kernel)->tuner.compared, 0);
	config = config_in_use(tuned_for(kernel), WAITING_NOBODY);
	assert_int_equal(config->form, form);
	assert_true(tuning_of(config)->number == number); /* the agent knows it again */
	for (int i = 0; i < 20; i++)
		launch_again(n, kernel);
	assert_true(fake_agent_quiet(&agent)); /* it has learned nothing new */
	context_gone(n);
}

static void a_profile_of_another_geometry_is_not_taken(void **state)
{
	struct weir_profile other = {.geometry = {{BLOCKS, 1, 1}, {64, 1, 1}, 0, NULL_SMS, 100, 0},
				     .native = NS};
	struct fake_request request;

	(void)state;
	unsigned n = welcomed(2);
	CUfunction kernel = long_kernel("other");
	ask_by_launches(n, kernel, &request);
	other.geometry.block[0] = 32;
	answer_with(request.id, "other", &other, 1);
	for (int i = 0; i < EVENTUALLY_MS / 2 && !is_compared(kernel); i++)
		launch_again(n, kernel);
	assert_true(is_compared(kernel));
	context_gone(n);
}

/* The agent keeps no profiles: nothing is taught. */
static void nothing_is_taught_without_a_profile(void **state)
{
	struct fake_request request;

	(void)state;
	unsigned n = welcomed(2);
	CUfunction kernel = long_kernel("silent");
	ask_by_launches(n, kernel, &request);
	make_object("silent", "form");
	fake_agent_compiled(&agent, request.id, WEIR_COMPILE_OK, object.bytes, object.size);
	assert_true(settles(n, kernel, BLOCKS));
	launch_again(n, kernel);
	assert_true(fake_agent_quiet(&agent));
	assert_int_equal(tuned_for(kernel)->number, 0);
	assert_true(agent.hello.flags & WEIR_HELLO_TAKES_PROFILES);
	context_gone(n);
}

static _Atomic int is_making, may_make;
static __thread bool makes;
static __typeof__(&cuFuncGetModule) get_module;

/* The thread that makes the record takes its time. */
static CUresult module_of(CUmodule *module, CUfunction function)
{
	if (makes) {
		atomic_store(&is_making, 1);
		while (!atomic_load(&may_make))
			usleep(1000);
	}
	return get_module(module, function);
}

static void *make_record(void *kernel)
{
	makes = true;
	return function_find(client, kernel);
}

/* Two threads launch a new kernel at the same time. */
static void a_record_that_is_being_made_is_waited_for(void **state)
{
	struct fake_request request;
	pthread_t thread;

	(void)state;
	unsigned n = welcomed(2);
	CUfunction kernel = long_kernel("made");
	get_module = (__typeof__(get_module))driver_hooks[HOOK_cuFuncGetModule].real;
	driver_hooks[HOOK_cuFuncGetModule].real = (void *)module_of;
	assert_int_equal(pthread_create(&thread, NULL, make_record, kernel), 0);
	assert_true(eventually(atomic_load(&is_making)));
	for (int i = 0; i < EVENTUALLY_MS / 2 && !tuned_for(kernel); i++)
		launch_again(n, kernel);
	assert_non_null(tuned_for(kernel));
	for (int i = 0; i < 50; i++)
		launch_again(n, kernel);
	assert_false(settled(kernel));
	atomic_store(&may_make, 1);
	pthread_join(thread, NULL);
	ask_by_launches(n, kernel, &request);
	fake_agent_compiled(&agent, request.id, WEIR_COMPILE_REFUSED, NULL, 0);
	assert_true(eventually(settled(kernel)));
	driver_hooks[HOOK_cuFuncGetModule].real = (void *)get_module;
	context_gone(n);
}

static unsigned samples_of(uint64_t key, bool profiled)
{
	struct kernel_time *kernel = kernel_find(key);
	unsigned samples = 0;

	if (profiled)
		kernel_is_profiled(kernel, key, NS);
	for (int i = 0; i < 20; i++)
		samples += kernel_wants_sample(kernel, false);
	return samples;
}

static void a_profile_saves_samples(void **state)
{
	(void)state;
	assert_int_equal(samples_of(0x123451, false), 4);
	assert_int_equal(samples_of(0x123452, true), 2);
}

/* The first measured time replaces it: the kernel may have other arguments now. */
static void its_time_counts_until_one_is_measured(void **state)
{
	const uint64_t key = 0x123453;
	struct kernel_time *kernel = kernel_find(key);

	(void)state;
	kernel_is_profiled(kernel, key + 1, NS);
	assert_int_equal(kernel_mean(kernel), 0);
	kernel_is_profiled(kernel, key, NS);
	assert_int_equal(kernel_mean(kernel), NS);
	uint64_t believed = kernel_believe(kernel, key, 3 * NS, KERNEL_SLICED);
	assert_int_equal(believed, 3 * NS);
	kernel_learn(kernel, key, believed, 0, KERNEL_SLICED);
	assert_int_equal(kernel_mean(kernel), 3 * NS);
	kernel_is_profiled(kernel, key, NS);
	assert_int_equal(kernel_mean(kernel), 3 * NS);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_one_process_learns_settles_the_next),
		cmocka_unit_test(a_profile_of_another_geometry_is_not_taken),
		cmocka_unit_test(nothing_is_taught_without_a_profile),
		cmocka_unit_test(a_record_that_is_being_made_is_waited_for),
		cmocka_unit_test(a_profile_saves_samples),
		cmocka_unit_test(its_time_counts_until_one_is_measured),
	};

	setenv("WEIR_PREEMPT_LATENCY_US", "100", 1);
	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
