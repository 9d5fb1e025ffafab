/* What becomes of kernels that are wanted. */
#include "wanted.h"

#include "preempt/image.h"
#include "preempt/code.h"

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

	function_await(client, true);
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
	function_await(client, false);
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
	function_await(client, true);
	struct function *function = wanted(get(module, "add"));
	answer_well("add");
	fake_agent_asked(&agent, &request);
	free(request.file);
	function_await(client, false);
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
	function_want(function);
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

static int max_dynamic(CUfunction function)
{
	int value = 0;

	cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function);
	return value;
}

static void set_max_dynamic(CUfunction function, int value)
{
	assert_int_equal(cuFuncSetAttribute(function,
					    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, value),
			 CUDA_SUCCESS);
}

static void attributes_hold_for_forms(void **state)
{
	(void)state;
	unsigned n = context_welcomed(2);
	CUmodule module = load(PTX);
	CUfunction handle = get(module, "add");
	set_max_dynamic(handle, 100000); /* before */
	struct function *function = wanted(handle);
	answer_well("add");
	assert_true(becomes(function, FUNCTION_READY));
	const struct rewritten *rewritten = atomic_load(&function->rewritten);
	CUfunction variant = rewritten->variants[WEIR_PERSISTENT][0].function;
	assert_int_equal(max_dynamic(variant), 100000);
	set_max_dynamic(handle, 150000); /* and after */
	assert_int_equal(max_dynamic(variant), 150000);

	/* What the form cannot have: the kernel runs as it is again. */
	driver->form_shared_max = 160000;
	set_max_dynamic(handle, 155000);
	assert_ptr_equal(atomic_load(&function->rewritten), rewritten);
	set_max_dynamic(handle, 170000);
	assert_null(atomic_load(&function->rewritten));
	int left = driver->modules_loaded - driver->modules_unloaded;
	cuModuleUnload(module);
	assert_int_equal(driver->modules_loaded - driver->modules_unloaded, left - 2);

	/* And what it could not have from the beginning. */
	module = load(PTX);
	handle = get(module, "add");
	set_max_dynamic(handle, 170000);
	function = wanted(handle);
	answer_well("add");
	assert_true(becomes(function, FUNCTION_REFUSED));
	driver->form_shared_max = 200000;
	cuModuleUnload(module);
	context_gone(n);
}

static void set_cluster_width(CUfunction function, int value)
{
	assert_int_equal(
		cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, value),
		CUDA_SUCCESS);
}

static void clusters_have_no_forms(void **state)
{
	(void)state;
	unsigned n = context_welcomed(2);
	CUmodule module = load(PTX);
	CUfunction handle = get(module, "add");
	set_cluster_width(handle, 1);
	struct function *function = wanted(handle);
	answer_well("add");
	assert_true(becomes(function, FUNCTION_READY));
	assert_non_null(atomic_load(&function->rewritten));
	set_cluster_width(handle, 2);
	assert_null(atomic_load(&function->rewritten));
	cuModuleUnload(module);
	context_gone(n);
}

static void libraries_are_in_each_context_their_own(void **state)
{
	CUlibrary library;
	CUkernel kernel;

	(void)state;
	unsigned first = context_welcomed(2);
	struct client *first_client = client;
	int first_socket = agent.client;
	assert_int_equal(cuLibraryLoadData(&library, PTX, NULL, NULL, 0, NULL, NULL, 0),
			 CUDA_SUCCESS);
	assert_int_equal(cuLibraryGetKernel(&kernel, library, "add"), CUDA_SUCCESS);
	struct function *one = wanted((CUfunction)kernel);
	answer_well("add");
	assert_true(becomes(one, FUNCTION_READY));

	unsigned second = context_welcomed(2);
	struct function *two = wanted((CUfunction)kernel);
	assert_ptr_not_equal(one, two);
	answer_well("add");
	assert_true(becomes(two, FUNCTION_READY));
	const struct rewritten *a = atomic_load(&one->rewritten), *b = atomic_load(&two->rewritten);
	assert_int_not_equal(a->symbols[0], b->symbols[0]);
	assert_int_equal(a->symbols[0] & 0xffffffff, b->symbols[0] & 0xffffffff);

	/* An attribute of the kernel is one of its functions in all contexts. */
	assert_true(first_client != client);
	assert_int_equal(
		cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1, kernel, 0),
		CUDA_SUCCESS);
	CUfunction here;
	assert_int_equal(cuKernelGetFunction(&here, kernel), CUDA_SUCCESS);
	set_max_dynamic(here, 123456); /* by the name that it has in this context */
	assert_int_equal(max_dynamic(b->variants[WEIR_PERSISTENT][0].function), 123456);
	assert_int_equal(max_dynamic(a->variants[WEIR_PERSISTENT][0].function), 49152);

	/* The function of a library's kernel comes from the same image. */
	struct function *function = wanted(here);
	answer_well("add");
	assert_true(becomes(function, FUNCTION_READY));

	int unloaded = driver->modules_unloaded;
	assert_int_equal(cuLibraryUnload(library), CUDA_SUCCESS);
	assert_int_equal(driver->modules_unloaded, unloaded + 4);
	assert_int_equal(
		atomic_load(&one->key) | atomic_load(&two->key) | atomic_load(&function->key), 0);
	assert_int_equal(image_total(), 0);
	context_gone(second);
	agent.client = first_socket;
	context_gone(first);
}

static CUlinkState linked_from(const char *const *inputs, size_t n)
{
	CUlinkState linker;

	assert_int_equal(cuLinkCreate_v2(0, NULL, NULL, &linker), CUDA_SUCCESS);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(cuLinkAddData_v2(linker, CU_JIT_INPUT_PTX, (void *)inputs[i],
						  strlen(inputs[i]) + 1, "x", 0, NULL, NULL),
				 CUDA_SUCCESS);
	return linker;
}

static void linked_code_is_known(void **state)
{
	static const char *const inputs[] = {PTX, PTX "// more\n"};
	void *code;
	size_t size;
	char copy[100];

	(void)state;
	unsigned n = context_welcomed(2);
	CUlinkState linker = linked_from(inputs, 1);
	assert_int_equal(cuLinkComplete(linker, &code, &size), CUDA_SUCCESS);
	memcpy(copy, code, size);
	assert_int_equal(cuLinkDestroy(linker), CUDA_SUCCESS);
	CUmodule module = load(copy);
	struct function *function = wanted(get(module, "add"));
	answer_well("add");
	assert_true(becomes(function, FUNCTION_READY));

	/* Several texts are asked for as one. */
	struct fake_request request;
	linker = linked_from(inputs, 2);
	assert_int_equal(cuLinkComplete(linker, &code, &size), CUDA_SUCCESS);
	CUmodule other = load(code);
	wanted(get(other, "add"));
	fake_agent_asked(&agent, &request);
	assert_non_null(strstr(request.image, PTX "\n" PTX "// more\n"));
	fake_agent_compiled(&agent, request.id, WEIR_COMPILE_REFUSED, NULL, 0);
	free(request.file);
	cuModuleUnload(module);
	cuModuleUnload(other);
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
		cmocka_unit_test(requests_wait_their_turn),
		cmocka_unit_test(the_service_may_be_away),
		cmocka_unit_test(answers_after_the_end_belong_to_no_client),
		cmocka_unit_test(code_is_loaded_when_nothing_can_hang),
		cmocka_unit_test(each_context_waits_for_its_own_moment),
		cmocka_unit_test(all_threads_find_one_record),
		cmocka_unit_test(attributes_hold_for_forms),
		cmocka_unit_test(clusters_have_no_forms),
		cmocka_unit_test(libraries_are_in_each_context_their_own),
		cmocka_unit_test(linked_code_is_known),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
