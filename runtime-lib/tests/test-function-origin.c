/* Forms have the attributes of the kernel that they come from, whether it is a module's, a
 * library's or was linked. */
#include "wanted.h"

#include "preempt/image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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
		cmocka_unit_test(attributes_hold_for_forms),
		cmocka_unit_test(clusters_have_no_forms),
		cmocka_unit_test(libraries_are_in_each_context_their_own),
		cmocka_unit_test(linked_code_is_known),
	};

	driver_load();
	return cmocka_run_group_tests(tests, agent_begin, agent_finish);
}
