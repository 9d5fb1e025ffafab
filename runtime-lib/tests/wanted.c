#include "wanted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

CUmodule load(const void *image)
{
	CUmodule module;

	assert_int_equal(cuModuleLoadData(&module, image), CUDA_SUCCESS);
	return module;
}

CUfunction get(CUmodule module, const char *name)
{
	CUfunction function;

	assert_int_equal(cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
	return function;
}

struct function *wanted(CUfunction handle)
{
	struct function *function = function_find(client, handle);

	assert_non_null(function);
	assert_ptr_equal(function, function_find(client, handle));
	forms_want(function);
	return function;
}

bool becomes(struct function *function, enum function_state state)
{
	return eventually(atomic_load(&function->state) == (int)state);
}

struct made_object object;

static uint32_t put(const void *data, size_t size)
{
	uint32_t at = (object.size + 7) & ~7u;

	assert_true(at + size <= sizeof(object.bytes));
	memcpy(object.bytes + at, data, size);
	object.size = at + (uint32_t)size;
	return at;
}

struct weir_object *make_object(const char *kernel, const char *entry)
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

void answer_well(const char *kernel)
{
	struct fake_request request;

	fake_agent_asked(&agent, &request);
	assert_string_equal(request.name, kernel);
	free(request.file);
	make_object(kernel, "form");
	fake_agent_compiled(&agent, request.id, WEIR_COMPILE_OK, object.bytes, object.size);
}

void answer(uint32_t status)
{
	struct fake_request request;

	fake_agent_asked(&agent, &request);
	free(request.file);
	fake_agent_compiled(&agent, request.id, status, NULL, 0);
}
