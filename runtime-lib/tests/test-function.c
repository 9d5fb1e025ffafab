/* What becomes of kernels that are wanted. */
#include "wanted.h"

#include "preempt/image.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void a_wanted_kernel_is_rewritten(void **state)
{
	struct fake_request request;
	char text[] = PTX;

	(void)state;
	unsigned n = context_welcomed(2);
	CUmodule module = load(text);
	memset(text, 0, sizeof(text)); /* a library that is closed */
	CUfunction handle = get(module, "add");
	struct function *function = function_find(client, handle);
	usleep(50000);
	assert_true(fake_agent_quiet(&agent)); /* only the wanted kernel */
	assert_null(atomic_load(&function->rewritten));

	wanted(handle);
	fake_agent_asked(&agent, &request);
	assert_string_equal(request.name, "add");
	assert_int_equal(request.file->sm, 90);
	assert_int_equal(request.file->forms,
			 1 << WEIR_SLICED | 1 << WEIR_PERSISTENT | 1 << WEIR_RESUMABLE);
	assert_int_equal(request.file->image_size, strlen(PTX));
	assert_memory_equal(request.image, PTX, strlen(PTX));
	free(request.file);
	assert_null(atomic_load(&function->rewritten));

	int loaded = driver->modules_loaded, unloaded = driver->modules_unloaded;
	/* A newer compile service may say more. */
	make_object("add", "form")->traits = WEIR_OBJECT_IS_STRAIGHT | 1u << 31;
	fake_agent_compiled(&agent, request.id, WEIR_COMPILE_OK, object.bytes, object.size);
	assert_true(becomes(function, FUNCTION_READY));
	const struct rewritten *rewritten = atomic_load(&function->rewritten);
	assert_true(rewritten->is_straight);
	assert_int_equal(driver->modules_loaded, loaded + 1);
	assert_non_null(rewritten->variants[WEIR_PERSISTENT][0].function);
	assert_int_equal(rewritten->variants[WEIR_PERSISTENT][0].save_per_thread, 5);
	assert_non_null(rewritten->variants[WEIR_PERSISTENT][1].function);
	assert_null(rewritten->variants[WEIR_RESUMABLE][0].function);
	assert_null(rewritten->variants[WEIR_SLICED][0].function);
	assert_int_equal(rewritten->n_params, 2);
	assert_int_equal(rewritten->params[1].offset, 8);
	/* The program's variable; the program's constant, copied to ours. */
	assert_int_equal(rewritten->n_symbols, 1);
	assert_int_equal(rewritten->symbols[0], (uintptr_t)module + 'v');
	assert_int_equal(rewritten->n_constants, 1);
	assert_int_equal(rewritten->constants[0].from, (uintptr_t)module + 'c');
	assert_int_equal(rewritten->constants[0].to, (uintptr_t)rewritten->module + 'c');
	assert_int_equal(rewritten->constants[0].size, 60);

	/* It goes with its module, when all that was launched is finished. */
	int synchronised = driver->synchronised;
	assert_int_equal(cuModuleUnload(module), CUDA_SUCCESS);
	assert_int_equal(driver->synchronised, synchronised + 1);
	assert_int_equal(driver->modules_unloaded, unloaded + 2);
	assert_int_equal(atomic_load(&function->key), 0);
	assert_int_equal(image_total(), 0);
	context_gone(n);
}

/* A launch waits: the form that leaves soonest comes first. @works: it can be made. */
static struct function *asked_soonest(CUmodule module, bool works)
{
	struct function *function;
	struct fake_request request;

	forms_await(client, true);
	function = wanted(get(module, "add"));
	fake_agent_asked(&agent, &request);
	assert_int_equal(request.file->flags, WEIR_COMPILE_SOONEST);
	free(request.file);
	make_object("add", works ? "form" : "missing"); /* not all forms */
	fake_agent_compiled(&agent, request.id, WEIR_COMPILE_OK, object.bytes, object.size);
	fake_agent_asked(&agent, &request);
	assert_int_equal(request.file->flags, 0);
	free(request.file);
	assert_int_equal(!atomic_load(&function->soonest), !works);
	assert_null(atomic_load(&function->rewritten));
	forms_await(client, false);
	make_object("add", "form");
	fake_agent_compiled(&agent, request.id, WEIR_COMPILE_OK, object.bytes, object.size);
	assert_true(becomes(function, FUNCTION_READY));
	return function;
}

static void where_a_launch_waits_one_form_comes_first(void **state)
{
	unsigned n = context_welcomed(2);
	CUmodule module = load(PTX);
	int left = driver->modules_loaded - driver->modules_unloaded;

	(void)state;
	const struct function *function = asked_soonest(module, true);
	assert_non_null(function->loaded[0]);
	assert_false(function->loaded[0]->is_straight);
	assert_ptr_equal(function->loaded[1], atomic_load(&function->soonest));
	assert_true(function_has(function, function->loaded[0]));
	assert_true(function_has(function, function->loaded[1]));
	assert_int_equal(driver->modules_loaded - driver->modules_unloaded, left + 2);
	cuModuleUnload(module);
	assert_int_equal(driver->modules_loaded - driver->modules_unloaded, left - 1);

	module = load(PTX);
	assert_null(asked_soonest(module, false)->loaded[1]);
	cuModuleUnload(module);
	context_gone(n);
}

/* All forms together cannot be made. */
static void one_form_is_better_than_none(void **state)
{
	struct fake_request request;

	(void)state;
	unsigned n = context_welcomed(2);
	CUmodule module = load(PTX);
	forms_await(client, true);
	struct function *function = wanted(get(module, "add"));
	answer_well("add");
	fake_agent_asked(&agent, &request);
	free(request.file);
	forms_await(client, false);
	fake_agent_compiled(&agent, request.id, WEIR_COMPILE_FAILED, NULL, 0);
	assert_true(becomes(function, FUNCTION_READY));
	assert_non_null(atomic_load(&function->soonest));
	assert_ptr_equal(atomic_load(&function->rewritten), atomic_load(&function->soonest));
	cuModuleUnload(module);
	context_gone(n);
}

static void who_cannot_be_is_refused(void **state)
{
	static const unsigned char elf[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
	struct function *function;

	(void)state;
	unsigned n = context_welcomed(2);
	assert_true(becomes(wanted(get(load(elf), "machine")), FUNCTION_REFUSED));
	assert_true(becomes(wanted((CUfunction)0x9990), FUNCTION_REFUSED));
	assert_true(fake_agent_quiet(&agent));

	CUmodule module = load(PTX);
	function = wanted(get(module, "refused"));
	answer(WEIR_COMPILE_REFUSED);
	assert_true(becomes(function, FUNCTION_REFUSED));
	forms_want(function);
	usleep(50000);
	assert_true(fake_agent_quiet(&agent)); /* never again */
	function = wanted(get(module, "failed"));
	answer(WEIR_COMPILE_FAILED);
	assert_true(becomes(function, FUNCTION_REFUSED));
	cuModuleUnload(module);
	context_gone(n);
}

/* One answer that is not as it should be: the kernel runs as it is, and nothing of ours stays. */
static void try_bad(CUmodule module, const void *data, size_t size)
{
	struct function *function = wanted(get(module, "add"));
	struct fake_request request;

	fake_agent_asked(&agent, &request);
	free(request.file);
	int left = driver->modules_loaded - driver->modules_unloaded;
	fake_agent_compiled(&agent, request.id, WEIR_COMPILE_OK, data, size);
	assert_true(becomes(function, FUNCTION_REFUSED));
	assert_null(atomic_load(&function->rewritten));
	assert_int_equal(driver->modules_loaded - driver->modules_unloaded, left);
}

static void bad_answers_do_no_harm(void **state)
{
	char junk[3000];

	(void)state;
	unsigned n = context_welcomed(2);
	CUmodule module = load(PTX);
	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = (char)rand();
	try_bad(module, junk, sizeof(junk));
	make_object("add", "form");
	try_bad(module, object.bytes, object.size - 8);
	try_bad(module, object.bytes, 10);
	make_object("sub", "form"); /* of another kernel */
	try_bad(module, object.bytes, object.size);
	make_object("add", "missing"); /* from the module */
	try_bad(module, object.bytes, object.size);
	make_object("add", "form")->abi++;
	try_bad(module, object.bytes, object.size);
	make_object("add", "form")->sm = 80;
	try_bad(module, object.bytes, object.size);
	make_object("add", "form")->n_forms = 0; /* refused in all */
	try_bad(module, object.bytes, object.size);
	make_object("add", "form")->n_params = 0x10000000;
	try_bad(module, object.bytes, object.size);
	make_object("add", "form");
	driver->loads_fail = 1;
	try_bad(module, object.bytes, object.size);
	driver->loads_fail = 0;
	driver->globals = 0; /* there are no such variables */
	try_bad(module, object.bytes, object.size);
	driver->globals = 32; /* they are smaller */
	try_bad(module, object.bytes, object.size);
	driver->globals = 64;

	/* What was never asked, and then one as it should be. */
	make_object("add", "form");
	fake_agent_compiled(&agent, 4711, WEIR_COMPILE_OK, object.bytes, object.size);
	struct function *function = wanted(get(module, "add"));
	answer_well("add");
	assert_true(becomes(function, FUNCTION_READY));
	cuModuleUnload(module);
	context_gone(n);
}

#define FINDERS 4
#define HANDLES 1500

static struct {
	_Atomic unsigned round;
	_Atomic unsigned done[FINDERS];
	const struct function *found[FINDERS];
} finders;

static void *find_all(void *number)
{
	size_t own = (size_t)(uintptr_t)number;

	for (unsigned i = 1; i <= HANDLES; i++) {
		for (unsigned k = 1; atomic_load(&finders.round) < i; k++)
			if (k % 1000 == 0)
				sched_yield();
		finders.found[own] =
			function_find(client, (CUfunction)(uintptr_t)(0x50000000 + 16 * i));
		atomic_store(&finders.done[own], i);
	}
	return NULL;
}

/* The worker finds kernels of new code while the program launches them. */
static void all_threads_find_one_record(void **state)
{
	pthread_t threads[FINDERS];
	unsigned others = 0;

	(void)state;
	unsigned n = context_welcomed(2);
	for (size_t k = 0; k < FINDERS; k++)
		assert_int_equal(pthread_create(&threads[k], NULL, find_all, (void *)(uintptr_t)k),
				 0);
	for (unsigned i = 1; i <= HANDLES; i++) {
		atomic_store(&finders.round, i);
		for (size_t k = 0; k < FINDERS; k++)
			while (atomic_load(&finders.done[k]) < i)
				sched_yield();
		for (size_t k = 0; k < FINDERS; k++)
			others += !finders.found[k] || finders.found[k] != finders.found[0];
	}
	for (size_t k = 0; k < FINDERS; k++)
		pthread_join(threads[k], NULL);
	assert_int_equal(others, 0);
	context_gone(n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wanted_kernel_is_rewritten),
		cmocka_unit_test(where_a_launch_waits_one_form_comes_first),
		cmocka_unit_test(one_form_is_better_than_none),
		cmocka_unit_test(who_cannot_be_is_refused),
		cmocka_unit_test(bad_answers_do_no_harm),
		cmocka_unit_test(all_threads_find_one_record),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
