/* What becomes of kernels that are wanted: libweir's own sources, on a driver that does nothing but
 * be observable, with an agent that answers what the test says. */
#include "fake-agent.h"
#include "null-driver.h"

#include "function.h"
#include "image.h"
#include "module.h"

#include "weir/fatbin.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define CONTEXT(n)   ((CUcontext)(uintptr_t)(0x10000 + 0x100 * (n)))
#define STREAM(n, s) ((CUstream)(uintptr_t)(0x10000 + 0x100 * (n) + 8 * (s)))
#define STREAM_OF(c) ((CUstream)((uintptr_t)(c) + 8))
#define PTX          ".version 8.0\n.target sm_90\n.address_size 64\n// a test\n"

/* Standings and pages are kept for the life of the process by intent; see client.c. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static struct fake_agent agent;
static struct null_driver *driver;
static unsigned contexts;
static struct client *client; /* of the last context */

/* A context whose first launch has been welcomed. */
static unsigned welcomed(void)
{
	unsigned n = ++contexts;

	fake_agent_welcome_next(&agent, 2, 1);
	cuLaunchKernel((CUfunction)0x9000, 1, 1, 1, 32, 1, 1, 0, STREAM(n, 1), NULL, NULL);
	fake_agent_join();
	cuCtxSetCurrent(CONTEXT(n));
	client = client_find(CONTEXT(n));
	assert_non_null(client);
	return n;
}

static void gone(unsigned n)
{
	assert_int_equal(cuCtxDestroy_v2(CONTEXT(n)), CUDA_SUCCESS);
	if (agent.client >= 0)
		close(agent.client);
	agent.client = -1;
	cuCtxSetCurrent(NULL);
}

static CUmodule load(const void *image)
{
	CUmodule module;

	assert_int_equal(cuModuleLoadData(&module, image), CUDA_SUCCESS);
	return module;
}

static CUfunction get(CUmodule module, const char *name)
{
	CUfunction function;

	assert_int_equal(cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
	return function;
}

static struct function *wanted(CUfunction handle)
{
	struct function *function = function_find(client, handle);

	assert_non_null(function);
	assert_ptr_equal(function, function_find(client, handle));
	function_want(function);
	return function;
}

static bool becomes(struct function *function, enum function_state state)
{
	return eventually(atomic_load(&function->state) == (int)state);
}

/* An object: persistent, and resumable refused; a variable and a constant. */
static struct {
	_Alignas(8) char bytes[4096];
	uint32_t size;
} object;

static uint32_t put(const void *data, size_t size)
{
	uint32_t at = (object.size + 7) & ~7u;

	assert_true(at + size <= sizeof(object.bytes));
	memcpy(object.bytes + at, data, size);
	object.size = at + (uint32_t)size;
	return at;
}

static struct weir_object *make_object(const char *kernel, const char *entry)
{
	struct weir_object *head = (void *)object.bytes;

	memset(&object, 0, sizeof(object));
	object.size = sizeof(*head);
	head->kernel = put(kernel, strlen(kernel) + 1);
	struct weir_object_form forms[] = {
		{.form = WEIR_PERSISTENT,
		 .entry = put(entry, strlen(entry) + 1),
		 .save_per_thread = 5},
		{.form = WEIR_PERSISTENT, .entry = put("wide", 5)},
		{.form = WEIR_RESUMABLE, .reason = put("it may not", 11), .line = 7}};
	struct weir_object_param params[] = {{0, 8}, {8, 4}};
	struct weir_object_symbol symbols[] = {
		{.size = 64, .name = put("var", 4), .space = WEIR_OBJECT_GLOBAL},
		{.size = 60,
		 .name = put("con", 4),
		 .copy = put("copy", 5),
		 .space = WEIR_OBJECT_CONSTANT}};
	head->magic = WEIR_OBJECT_MAGIC;
	head->version = WEIR_OBJECT_VERSION;
	head->abi = WEIR_PREEMPT_ABI;
	head->sm = 90;
	head->flags = WEIR_OBJECT_IS_PTX;
	head->image = put(PTX, sizeof(PTX));
	head->image_size = sizeof(PTX);
	head->forms = put(forms, sizeof(forms));
	head->n_forms = 3;
	head->params = put(params, sizeof(params));
	head->n_params = 2;
	head->symbols = put(symbols, sizeof(symbols));
	head->n_symbols = 2;
	head->size = object.size;
	return head;
}

/* Takes a request and answers it with an object that is as it should be. */
static void answer_well(const char *kernel)
{
	struct fake_request request;

	fake_agent_asked(&agent, &request);
	assert_string_equal(request.name, kernel);
	free(request.file);
	make_object(kernel, "form");
	fake_agent_compiled(&agent, request.id, WEIR_COMPILE_OK, object.bytes, object.size);
}

static void answer(uint32_t status)
{
	struct fake_request request;

	fake_agent_asked(&agent, &request);
	free(request.file);
	fake_agent_compiled(&agent, request.id, status, NULL, 0);
}

static void a_wanted_kernel_is_rewritten(void **state)
{
	struct fake_request request;
	char text[] = PTX;

	(void)state;
	unsigned n = welcomed();
	CUmodule module = load(text);
	memset(text, 0, sizeof(text)); /* a library that is closed */
	CUfunction handle = get(module, "add");
	struct function *function = function_find(client, handle);
	usleep(50000);
	assert_true(fake_agent_quiet(&agent)); /* only who is wanted */
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
	make_object("add", "form");
	fake_agent_compiled(&agent, request.id, WEIR_COMPILE_OK, object.bytes, object.size);
	assert_true(becomes(function, FUNCTION_READY));
	const struct rewritten *rewritten = atomic_load(&function->rewritten);
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
	gone(n);
}

static void who_cannot_be_is_refused(void **state)
{
	static const unsigned char elf[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
	struct function *function;

	(void)state;
	unsigned n = welcomed();
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
	gone(n);
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
	unsigned n = welcomed();
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
	gone(n);
}

static void requests_wait_their_turn(void **state)
{
	struct function *functions[REQUESTS_MAX + 2];
	struct fake_request requests[REQUESTS_MAX];
	char name[] = "kernel0";

	(void)state;
	unsigned n = welcomed();
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
	gone(n);
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
	unsigned n = welcomed();
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
	gone(n);
}

static void late_answers_are_nobodys(void **state)
{
	struct fake_request request;

	(void)state;
	unsigned n = welcomed();
	CUmodule module = load(PTX);
	wanted(get(module, "add"));
	fake_agent_asked(&agent, &request);
	cuModuleUnload(module);
	int loaded = driver->modules_loaded;
	make_object("add", "form");
	fake_agent_compiled(&agent, request.id, WEIR_COMPILE_OK, object.bytes, object.size);
	free(request.file);
	assert_true(eventually(atomic_load(&client->requests[0].state) == REQUEST_FREE));
	assert_int_equal(driver->modules_loaded, loaded);
	gone(n);
}

static void launch_on(CUstream stream)
{
	cuLaunchKernel((CUfunction)0x9000, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

static void code_is_loaded_when_nothing_can_hang(void **state)
{
	(void)state;
	unsigned n = welcomed();
	driver->streams_busy = driver->events_busy =
		1; /* with a kernel that ended before, but may not do so now */
	launch_on(STREAM(n, 1));
	CUmodule module = load(PTX);
	struct function *function = wanted(get(module, "add"));
	int loaded = driver->modules_loaded;
	answer_well("add");
	assert_true(eventually(atomic_load(&client->requests[0].state) == REQUEST_ANSWERED));
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
	gone(n);
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
	unsigned n = welcomed();
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
	gone(n);
}

static void libraries_are_in_each_context_their_own(void **state)
{
	CUlibrary library;
	CUkernel kernel;

	(void)state;
	unsigned first = welcomed();
	struct client *first_client = client;
	int first_socket = agent.client;
	assert_int_equal(cuLibraryLoadData(&library, PTX, NULL, NULL, 0, NULL, NULL, 0),
			 CUDA_SUCCESS);
	assert_int_equal(cuLibraryGetKernel(&kernel, library, "add"), CUDA_SUCCESS);
	struct function *one = wanted((CUfunction)kernel);
	answer_well("add");
	assert_true(becomes(one, FUNCTION_READY));

	unsigned second = welcomed();
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
	gone(second);
	agent.client = first_socket;
	gone(first);
}

static CUlinkState link_of(const char *const *inputs, size_t n)
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
	unsigned n = welcomed();
	CUlinkState linker = link_of(inputs, 1);
	assert_int_equal(cuLinkComplete(linker, &code, &size), CUDA_SUCCESS);
	memcpy(copy, code, size);
	assert_int_equal(cuLinkDestroy(linker), CUDA_SUCCESS);
	CUmodule module = load(copy);
	struct function *function = wanted(get(module, "add"));
	answer_well("add");
	assert_true(becomes(function, FUNCTION_READY));

	linker = link_of(inputs, 2);
	assert_int_equal(cuLinkComplete(linker, &code, &size), CUDA_SUCCESS);
	CUmodule other = load(code);
	assert_true(becomes(wanted(get(other, "add")), FUNCTION_REFUSED));
	assert_true(fake_agent_quiet(&agent));
	cuModuleUnload(module);
	cuModuleUnload(other);
	gone(n);
}

static int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void nothing_grows(void **state)
{
	(void)state;
	unsigned n = welcomed();
	size_t images = image_total(); /* what the linker made stays for a while */
	int files = open_files(), left = driver->modules_loaded - driver->modules_unloaded;
	for (int i = 0; i < 300; i++) {
		CUmodule module = load(PTX);
		struct function *function = wanted(get(module, "add"));
		if (i % 3 == 0) {
			answer_well("add");
			assert_true(becomes(function, FUNCTION_READY));
		} else if (i % 3 == 1) {
			answer(WEIR_COMPILE_REFUSED);
		}
		cuModuleUnload(module);
		assert_int_equal(atomic_load(&function->key), 0);
		if (i % 3 == 2) { /* gone while it is asked for, perhaps before */
			usleep(1000);
			while (!fake_agent_quiet(&agent))
				answer(WEIR_COMPILE_FAILED);
		}
	}
	while (!eventually(open_files() <= files))
		answer(WEIR_COMPILE_FAILED);
	assert_int_equal(image_total(), images);
	assert_int_equal(driver->modules_loaded - driver->modules_unloaded, left);
	gone(n);
}

static _Atomic int finished;

static void *answer_all(void *unused)
{
	(void)unused;
	while (!atomic_load(&finished)) {
		if (!fake_agent_quiet(&agent))
			answer_well("add");
		usleep(100);
	}
	return NULL;
}

/* Loads, wants, changes, launches and unloads, over and over. */
static void *load_and_unload(void *context)
{
	cuCtxSetCurrent(context);
	for (int i = 0; i < 200; i++) {
		CUmodule module;
		CUfunction handle;
		cuModuleLoadData(&module, PTX);
		cuModuleGetFunction(&handle, module, "add");
		cuLaunchKernel(handle, 1, 1, 1, 32, 1, 1, 0, STREAM_OF(context), NULL, NULL);
		struct function *function = function_find(client, handle);
		function_want(function);
		cuFuncSetAttribute(handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, i);
		for (int k = 0; k < i % 4; k++) {
			const struct rewritten *rewritten = atomic_load(&function->rewritten);
			if (rewritten && !rewritten->variants[WEIR_PERSISTENT][0].function)
				abort();
			usleep(500);
		}
		cuModuleUnload(module);
	}
	return NULL;
}

static void threads_load_and_unload(void **state)
{
	pthread_t answering, loading[3];

	(void)state;
	unsigned n = welcomed();
	int left = driver->modules_loaded - driver->modules_unloaded;
	atomic_store(&finished, 0);
	pthread_create(&answering, NULL, answer_all, NULL);
	for (size_t i = 0; i < 3; i++)
		pthread_create(&loading[i], NULL, load_and_unload, CONTEXT(n));
	for (size_t i = 0; i < 3; i++)
		pthread_join(loading[i], NULL);
	atomic_store(&finished, 1);
	pthread_join(answering, NULL);
	assert_int_equal(driver->modules_loaded - driver->modules_unloaded, left);
	gone(n);
}

static void a_context_takes_its_code_along(void **state)
{
	(void)state;
	size_t images = image_total();
	unsigned n = welcomed();
	CUmodule module = load(PTX);
	struct function *function = wanted(get(module, "add"));
	answer_well("add");
	assert_true(becomes(function, FUNCTION_READY));
	int unloaded = driver->modules_unloaded;
	gone(n);
	assert_int_equal(driver->modules_unloaded, unloaded); /* not one by one */
	assert_int_equal(atomic_load(&function->key), 0);
	assert_int_equal(image_total(), images);
}

static CUmodule left_behind;

/* As the CUDA runtime does, which registers this before the driver is loaded. */
static void unload_at_exit(void)
{
	int synchronised = driver->synchronised, unloaded = driver->modules_unloaded;

	cuModuleUnload(left_behind);
	if (driver->synchronised != synchronised || driver->modules_unloaded != unloaded + 1)
		_exit(1);
}

/* Ends with a kernel in forms. */
static int exit_story(void)
{
	atexit(unload_at_exit);
	cuInit(0);
	driver = dlsym(dlopen(NULL_DRIVER, RTLD_NOW | RTLD_NOLOAD), "null_driver");
	cuLaunchKernel((CUfunction)0x9000, 1, 1, 1, 32, 1, 1, 0, STREAM(1, 1), NULL, NULL);
	cuCtxSetCurrent(CONTEXT(1));
	client = client_find(CONTEXT(1));
	left_behind = load(PTX);
	return becomes(wanted(get(left_behind, "add")), FUNCTION_READY) ? 0 : 2;
}

static void code_may_be_unloaded_at_exit(void **state)
{
	int status;

	(void)state;
	pid_t child = fork();
	if (child == 0) {
		execl("/proc/self/exe", "test-function", "--exit-story", NULL);
		_exit(3);
	}
	fake_agent_accept(&agent);
	fake_agent_welcome(&agent, 2, 1);
	answer_well("add");
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(agent.client);
	agent.client = -1;
}

static void a_forked_child_may_clean_up(void **state)
{
	int status;

	(void)state;
	unsigned n = welcomed();
	CUmodule module = load(PTX);
	struct function *function = wanted(get(module, "add"));
	answer_well("add");
	assert_true(becomes(function, FUNCTION_READY));
	pid_t child = fork();
	if (child == 0) {
		cuModuleUnload(module);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_non_null(atomic_load(&function->rewritten));
	cuModuleUnload(module);
	gone(n);
}

/* A container with machine code and PTX. */
struct fatbin {
	struct fatbin_container container;
	struct fatbin_entry cubin;
	char code[40];
	struct fatbin_entry ptx;
	char text[16];
};

static struct fatbin fatbin_of(uint32_t cubin, uint64_t cubin_flags, uint32_t ptx, uint64_t flags)
{
	return (struct fatbin){
		.container = {FATBIN_MAGIC, 1, 16, sizeof(struct fatbin) - 16},
		.cubin = {.kind = FATBIN_ELF,
			  .header_size = 64,
			  .payload_size = 40,
			  .sm = cubin,
			  .flags = cubin_flags},
		.ptx = {.kind = FATBIN_PTX,
			.header_size = 64,
			.payload_size = 16,
			.sm = ptx,
			.flags = FATBIN_LZ4 | flags},
		.text = "compressed text",
	};
}

static void only_ptx_is_kept(void **state)
{
	struct fatbin fatbin = fatbin_of(90, 0, 90, 0);
	const void *wrapper[3] = {(void *)(uintptr_t)0x1466243b1, &fatbin};
	struct image *image = image_keep(wrapper, 0);

	(void)state;
	assert_non_null(image);
	assert_int_equal(image->size, 16 + 64 + 64 + 16); /* no machine code */
	struct image *fit = image_for(image, 90);
	assert_int_equal(fit->size, 16 + 64 + 16);
	assert_memory_equal(fit->bytes + 16, &fatbin.ptx, 64 + 16);
	image_unref(fit);
	image_unref(image);
	fatbin.ptx.kind = FATBIN_ELF;
	assert_null(image_keep(&fatbin, sizeof(fatbin)));
	fatbin.ptx.kind = FATBIN_PTX;
	fatbin.container.size = 1ull << 60; /* more than there is */
	assert_null(image_keep(&fatbin, sizeof(fatbin)));
}

static bool fits(struct fatbin fatbin, unsigned sm)
{
	struct image *image = image_keep(&fatbin, sizeof(fatbin)), *fit = image_for(image, sm);

	image_unref(image);
	image_unref(fit);
	return fit;
}

/* PTX of another architecture than the machine code that runs may be another program. */
static void ptx_is_of_what_runs(void **state)
{
	(void)state;
	assert_true(fits(fatbin_of(90, 0, 90, 0), 90));
	assert_false(fits(fatbin_of(90, 0, 80, 0), 90));
	assert_true(fits(fatbin_of(80, 0, 80, 0), 86));
	assert_false(fits(fatbin_of(80, 0, 86, 0), 86));
	assert_true(fits(fatbin_of(80, 0, 80, 0), 90)); /* the PTX is what runs */
	assert_true(fits(fatbin_of(80, 0, 90, 0), 90));
	assert_false(fits(fatbin_of(90, FATBIN_EXACT, 90, 0), 90));
	assert_true(fits(fatbin_of(90, FATBIN_EXACT, 90, FATBIN_EXACT), 90));
	assert_true(fits(fatbin_of(100, FATBIN_FAMILY, 100, FATBIN_FAMILY), 103));
	assert_true(fits(fatbin_of(100, FATBIN_EXACT, 80, 0), 103));
}

static int begin(void **state)
{
	(void)state;
	fake_agent_init(&agent);
	return 0;
}

static int finish(void **state)
{
	(void)state;
	fake_agent_deinit(&agent);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wanted_kernel_is_rewritten),
		cmocka_unit_test(who_cannot_be_is_refused),
		cmocka_unit_test(bad_answers_do_no_harm),
		cmocka_unit_test(requests_wait_their_turn),
		cmocka_unit_test(the_service_may_be_away),
		cmocka_unit_test(late_answers_are_nobodys),
		cmocka_unit_test(code_is_loaded_when_nothing_can_hang),
		cmocka_unit_test(attributes_hold_for_forms),
		cmocka_unit_test(libraries_are_in_each_context_their_own),
		cmocka_unit_test(a_context_takes_its_code_along),
		cmocka_unit_test(a_forked_child_may_clean_up),
		cmocka_unit_test(code_may_be_unloaded_at_exit),
		cmocka_unit_test(linked_code_is_known),
		cmocka_unit_test(nothing_grows),
		cmocka_unit_test(threads_load_and_unload),
		cmocka_unit_test(only_ptx_is_kept),
		cmocka_unit_test(ptx_is_of_what_runs),
	};

	setenv("WEIR_DRIVER", NULL_DRIVER, 1);
	if (argc > 1 && strcmp(argv[1], "--exit-story") == 0)
		return exit_story();
	assert_int_equal(cuInit(0), CUDA_SUCCESS);
	driver = dlsym(dlopen(NULL_DRIVER, RTLD_NOW | RTLD_NOLOAD), "null_driver");
	return cmocka_run_group_tests(tests, begin, finish);
}
