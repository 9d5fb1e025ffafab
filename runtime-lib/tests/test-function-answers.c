/* Requests wait for room and for an agent, answers for a moment in which code can be loaded. */
#include "wanted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void requests_wait_their_turn(void **state)
{
	struct function *functions[REQUESTS_MAX + 2];
	struct fake_request requests[REQUESTS_MAX];
	char name[] = "kernel0";

	(void)state;
	unsigned n = context_welcomed(2);
	CUmodule module = load(PTX);
	for (size_t i = 0; i < REQUESTS_MAX + 2; i++, name[6]++)
		functions[i] = wanted(get(module, name));
	for (size_t i = 0; i < REQUESTS_MAX; i++)
		fake_agent_asked(&agent, &requests[i]);
	usleep(100000);
	assert_true(fake_agent_quiet(&agent));

	/* In any order. */
	for (size_t i = REQUESTS_MAX; i-- > 0;) {
		make_object(requests[i].name, "form");
		fake_agent_compiled(&agent, requests[i].id, WEIR_COMPILE_OK, object.bytes,
				    object.size);
		free(requests[i].file);
	}
	for (size_t i = 0; i < 2; i++) {
		struct fake_request request;
		fake_agent_asked(&agent, &request);
		make_object(request.name, "form");
		fake_agent_compiled(&agent, request.id, WEIR_COMPILE_OK, object.bytes, object.size);
		free(request.file);
	}
	for (size_t i = 0; i < REQUESTS_MAX + 2; i++)
		assert_true(becomes(functions[i], FUNCTION_READY));
	cuModuleUnload(module);
	context_gone(n);
}

/* The agent goes and comes back. */
static void another_agent(void)
{
	fake_agent_stop(&agent);
	fake_agent_start(&agent);
	fake_agent_accept(&agent);
	fake_agent_welcome(&agent, 2, 1);
}

static void the_service_may_be_away(void **state)
{
	(void)state;
	unsigned n = context_welcomed(2);
	CUmodule module = load(PTX);
	struct function *function = wanted(get(module, "add"));
	answer(WEIR_COMPILE_BUSY);
	answer(WEIR_COMPILE_OFF); /* asked again; now not before there is another agent */
	usleep(100000);
	assert_true(fake_agent_quiet(&agent));
	another_agent();
	for (int lost = 0; lost < 2; lost++) { /* agents that go without an answer */
		struct fake_request request;
		fake_agent_asked(&agent, &request);
		free(request.file);
		another_agent();
	}
	answer_well("add");
	assert_true(becomes(function, FUNCTION_READY));

	/* But not for ever: it may be what they die of. */
	function = wanted(get(module, "deadly"));
	for (int lost = 0; lost < 3; lost++) {
		struct fake_request request;
		fake_agent_asked(&agent, &request);
		free(request.file);
		another_agent();
	}
	assert_true(becomes(function, FUNCTION_REFUSED));
	assert_true(fake_agent_quiet(&agent));
	cuModuleUnload(module);
	context_gone(n);
}

static void answers_after_the_end_belong_to_no_client(void **state)
{
	struct fake_request request;

	(void)state;
	unsigned n = context_welcomed(2);
	CUmodule module = load(PTX);
	wanted(get(module, "add"));
	fake_agent_asked(&agent, &request);
	cuModuleUnload(module);
	int loaded = driver->modules_loaded;
	make_object("add", "form");
	fake_agent_compiled(&agent, request.id, WEIR_COMPILE_OK, object.bytes, object.size);
	free(request.file);
	assert_true(eventually(atomic_load(&request_at(client, 0)->state) == REQUEST_FREE));
	assert_int_equal(driver->modules_loaded, loaded);
	context_gone(n);
}

static void launch_on(CUstream stream)
{
	cuLaunchKernel((CUfunction)0x9000, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

static void code_is_loaded_when_nothing_can_hang(void **state)
{
	(void)state;
	unsigned n = context_welcomed(2);
	driver->streams_busy = driver->events_busy =
		1; /* with a kernel that ended before, but may not do so now */
	launch_on(STREAM(n, 1));
	CUmodule module = load(PTX);
	struct function *function = wanted(get(module, "add"));
	int loaded = driver->modules_loaded;
	answer_well("add");
	assert_true(eventually(atomic_load(&request_at(client, 0)->state) == REQUEST_ANSWERED));
	usleep(600000);
	assert_int_equal(driver->modules_loaded, loaded);
	agent.demand[2]->word = 1; /* it ends, but somebody above is at work */
	driver->streams_busy = driver->events_busy = 0;
	usleep(100000);
	assert_int_equal(driver->modules_loaded, loaded);
	agent.demand[2]->word = 0;
	assert_true(becomes(function, FUNCTION_READY));

	/* A program that always has something running is not kept waiting for ever. */
	driver->streams_busy = driver->events_busy = 1;
	function = wanted(get(module, "sub"));
	answer_well("sub");
	for (int i = 0; i < 20000 && atomic_load(&function->state) != FUNCTION_READY; i++) {
		launch_on(STREAM(n, 1 + i % 2));
		cuStreamSynchronize(STREAM(n, 2 - i % 2));
		usleep(500);
	}
	assert_int_equal(atomic_load(&function->state), FUNCTION_READY);
	driver->streams_busy = driver->events_busy = 0;
	cuModuleUnload(module);
	context_gone(n);
}

/* It is known how long the kernel takes, and a launch of it runs on. */
static CUmodule with_known_work(unsigned n)
{
	const struct geometry geometry = {(CUfunction)0x9000, {1, 1, 1}, {32, 1, 1}, 0};
	const struct kernel_time *kernel = kernel_find(kernel_key(&geometry));

	for (int i = 0; i < 1000 && !kernel_mean(kernel); i++) {
		measure_next();
		launch_on(STREAM(n, 1));
		cuStreamSynchronize(STREAM(n, 1));
		usleep(1000);
	}
	assert_true(kernel_mean(kernel));
	launch_on(STREAM(n, 1));
	cuStreamSynchronize(STREAM(n, 1));
	driver->streams_busy = driver->events_busy = 1;
	launch_on(STREAM(n, 1));
	return load(PTX);
}

/* How long a context waited for the moment says nothing of the next one in its slot. */
static void each_context_waits_for_its_own_moment(void **state)
{
	(void)state;
	unsigned n = context_welcomed(2);
	const struct client *former = client;
	CUmodule module = with_known_work(n);
	wanted(get(module, "add"));
	answer_well("add");
	assert_true(eventually(atomic_load(&request_at(client, 0)->state) == REQUEST_ANSWERED));
	usleep(50000);
	context_gone(n);
	driver->streams_busy = driver->events_busy = 0;

	n = context_welcomed(2);
	assert_ptr_equal(client, former);
	for (int i = 0; i < 7; i++) { /* another number than of the former one */
		launch_on(STREAM(n, 1));
		cuStreamSynchronize(STREAM(n, 1));
	}
	module = with_known_work(n);
	int loaded = driver->modules_loaded;
	struct function *function = wanted(get(module, "sub"));
	answer_well("sub");
	assert_true(eventually(atomic_load(&request_at(client, 0)->state) == REQUEST_ANSWERED));
	usleep(200000);
	assert_int_equal(driver->modules_loaded, loaded); /* nothing is seen to end */
	driver->streams_busy = driver->events_busy = 0;
	assert_true(becomes(function, FUNCTION_READY));
	cuModuleUnload(module);
	context_gone(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_wait_their_turn),
		cmocka_unit_test(the_service_may_be_away),
		cmocka_unit_test(answers_after_the_end_belong_to_no_client),
		cmocka_unit_test(code_is_loaded_when_nothing_can_hang),
		cmocka_unit_test(each_context_waits_for_its_own_moment),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
