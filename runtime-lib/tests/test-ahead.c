/* The form that leaves soonest is asked for before a kernel is launched. */
#include "wanted.h"

#include "client/worker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* A client below another one, whose code has @listed kernels. */
static unsigned below(int listed)
{
	unsigned n = context_welcomed(0);

	agent.control->above = 1;
	driver->listed = listed;
	return n;
}

static void below_ends(unsigned n)
{
	agent.control->above = 0;
	driver->listed = 0;
	context_gone(n);
}

static struct function *listed_function(CUmodule module, unsigned number)
{
	CUfunction handles[8];

	assert_int_equal(real(cuModuleEnumerateFunctions)(handles, 8, module), CUDA_SUCCESS);
	return function_find(client, handles[number]);
}

struct asked {
	uint32_t id;
	char kernel[3];
};

/* Takes a request for the soonest form of a listed kernel. */
static struct asked asked_ahead(void)
{
	struct fake_request request;
	struct asked asked;

	fake_agent_asked(&agent, &request);
	assert_int_equal(request.name[0], 'k');
	assert_int_equal(request.file->flags, WEIR_COMPILE_SOONEST);
	asked.id = request.id;
	snprintf(asked.kernel, sizeof(asked.kernel), "%s", request.name);
	free(request.file);
	return asked;
}

static void answer_ahead(const struct asked *asked)
{
	make_object(asked->kernel, "form"); /* not all forms */
	fake_agent_compiled(&agent, asked->id, WEIR_COMPILE_OK, object.bytes, object.size);
}

static bool nothing_is_asked(void)
{
	usleep(200000);
	return fake_agent_quiet(&agent);
}

static void kernels_have_a_form_before_they_are_launched(void **state)
{
	struct fake_request request;

	(void)state;
	unsigned n = below(2);
	CUmodule module = load(PTX);
	struct asked first = asked_ahead();
	answer_ahead(&first);
	struct asked second = asked_ahead();
	answer_ahead(&second);
	assert_string_not_equal(first.kernel, second.kernel);
	struct function *one = listed_function(module, 0), *two = listed_function(module, 1);
	assert_true(eventually(atomic_load(&one->soonest) && atomic_load(&two->soonest)));
	assert_int_equal(atomic_load(&one->state), FUNCTION_NATIVE);
	assert_true(nothing_is_asked()); /* but of what is launched */
	forms_want(one);
	fake_agent_asked(&agent, &request);
	assert_string_equal(request.name, "k0");
	assert_int_equal(request.file->flags, 0);
	free(request.file);
	cuModuleUnload(module);
	below_ends(n);
}

/* A launch while the form is being compiled: all forms follow. */
static void what_is_launched_meanwhile_gets_all_forms(void **state)
{
	(void)state;
	unsigned n = below(1);
	CUmodule module = load(PTX);
	struct asked asked = asked_ahead();
	forms_want(listed_function(module, 0));
	answer_ahead(&asked);
	answer_well("k0");
	assert_true(becomes(listed_function(module, 0), FUNCTION_READY));
	cuModuleUnload(module);
	below_ends(n);
}

static void launched_kernels_find_room(void **state)
{
	struct fake_request request;

	(void)state;
	unsigned n = below(2);
	CUmodule module = load(PTX);
	struct asked first = asked_ahead();
	assert_true(nothing_is_asked());
	wanted(get(module, "add"));
	fake_agent_asked(&agent, &request);
	assert_string_equal(request.name, "add");
	free(request.file);
	answer_ahead(&first);
	asked_ahead();
	cuModuleUnload(module);
	below_ends(n);
}

/* The other kernels of its code are looked at afterwards. */
static void a_launch_that_waits_comes_first(void **state)
{
	(void)state;
	unsigned n = below(1);
	forms_await(client, true);
	CUmodule module = load(PTX);
	assert_true(nothing_is_asked());
	forms_await(client, false);
	asked_ahead();
	cuModuleUnload(module);
	below_ends(n);
}

static void only_below_somebody(void **state)
{
	CUlibrary library;

	(void)state;
	unsigned n = below(1);
	agent.control->above = 0;
	assert_int_equal(cuLibraryLoadData(&library, PTX, NULL, NULL, 0, NULL, NULL, 0),
			 CUDA_SUCCESS);
	assert_true(nothing_is_asked());
	agent.control->above = 1;
	worker_wake();
	asked_ahead();
	cuLibraryUnload(library);
	below_ends(n);
}

static void not_of_large_code(void **state)
{
	(void)state;
	unsigned n = below(9);
	CUmodule module = load(PTX);
	assert_true(nothing_is_asked());
	cuModuleUnload(module);
	below_ends(n);
}

/* The driver must not be asked about it. */
static void not_of_code_that_is_gone(void **state)
{
	(void)state;
	unsigned n = below(1);
	int lists = driver->lists;
	agent.control->above = 0;
	CUmodule module = load(PTX);
	cuModuleUnload(module);
	agent.control->above = 1;
	worker_wake();
	assert_true(nothing_is_asked());
	/* Its context ends; the next one has the same handle. */
	agent.control->above = 0;
	load(PTX);
	context_gone(n);
	fake_agent_welcome_next(&agent, 0, 1);
	cuLaunchKernel((CUfunction)0x8000, 1, 1, 1, 32, 1, 1, 0, STREAM(n, 1), NULL, NULL);
	fake_agent_join();
	agent.control->above = 1;
	worker_wake();
	assert_true(nothing_is_asked());
	assert_int_equal(driver->lists, lists);
	below_ends(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_have_a_form_before_they_are_launched),
		cmocka_unit_test(what_is_launched_meanwhile_gets_all_forms),
		cmocka_unit_test(launched_kernels_find_room),
		cmocka_unit_test(a_launch_that_waits_comes_first),
		cmocka_unit_test(only_below_somebody),
		cmocka_unit_test(not_of_large_code),
		cmocka_unit_test(not_of_code_that_is_gone),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
