/* What kernels get from the system: memory of their own, the workspace of cooperative grids, failed
 * assertions. */
#include "driver-test.h"

/* count(p, size, n, frees): *p = how many of n allocations of this size there was room for; each is
 * written to, and freed if @frees.
 * workspace(p): *p = the address in %envreg1 and 2.
 * failing(p): an assertion that fails. */
static const char builtin_ptx[] =
	".version 8.0\n.target sm_90\n.address_size 64\n"
	".extern .func (.param .b64 r) malloc(.param .b64 size);\n"
	".extern .func free(.param .b64 memory);\n"
	".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, "
	".param "
	".b64 e);\n"
	".global .align 1 .b8 text[5] = {116, 101, 120, 116, 0};\n"
	".visible .entry count(.param .u64 p, .param .u64 size, .param .u32 n, .param .u32 "
	"frees)\n{\n"
	" .reg .pred %p;\n .reg .u32 %n, %frees, %count;\n .reg .u64 %a, %size, %m;\n"
	" ld.param.u64 %a, [p];\n ld.param.u64 %size, [size];\n ld.param.u32 %n, [n];\n"
	" ld.param.u32 %frees, [frees];\n mov.u32 %count, 0;\n"
	"AGAIN:\n"
	" {\n .param .b64 s;\n .param .b64 r;\n st.param.b64 [s], %size;\n"
	" call.uni (r), malloc, (s);\n ld.param.b64 %m, [r];\n }\n"
	" setp.eq.u64 %p, %m, 0;\n @%p bra NEXT;\n"
	" add.u32 %count, %count, 1;\n st.u32 [%m], %n;\n"
	" setp.eq.u32 %p, %frees, 0;\n @%p bra NEXT;\n"
	" {\n .param .b64 s;\n st.param.b64 [s], %m;\n call.uni free, (s);\n }\n"
	"NEXT:\n"
	" sub.u32 %n, %n, 1;\n setp.ne.u32 %p, %n, 0;\n @%p bra AGAIN;\n"
	" st.global.u32 [%a], %count;\n ret;\n}\n"
	".visible .entry workspace(.param .u64 p)\n{\n"
	" .reg .u32 %h, %l;\n .reg .u64 %a, %w;\n ld.param.u64 %a, [p];\n"
	" mov.u32 %h, %envreg1;\n mov.u32 %l, %envreg2;\n mov.b64 %w, {%l, %h};\n"
	" st.global.u64 [%a], %w;\n ret;\n}\n"
	".visible .entry failing(.param .u64 p)\n{\n"
	" .reg .u32 %l;\n .reg .u64 %t, %one;\n mov.u64 %t, text;\n cvta.global.u64 %t, %t;\n"
	" mov.u32 %l, 7;\n mov.u64 %one, 1;\n"
	" {\n .param .b64 a;\n .param .b64 b;\n .param .b32 c;\n .param .b64 d;\n .param .b64 e;\n"
	" st.param.b64 [a], %t;\n st.param.b64 [b], %t;\n st.param.b32 [c], %l;\n"
	" st.param.b64 [d], %t;\n st.param.b64 [e], %one;\n"
	" call.uni __assertfail, (a, b, c, d, e);\n }\n ret;\n}\n";

static CUfunction builtin(const char *name)
{
	CUmodule module;
	CUfunction function;

	ok(cuModuleLoadData(&module, builtin_ptx));
	ok(cuModuleGetFunction(&function, module, name));
	return function;
}

/* How many of @n allocations there was room for. */
static uint32_t allocate(CUfunction count, uint64_t size, uint32_t n, uint32_t frees)
{
	void *params[] = {&fx.memory, &size, &n, &frees};

	ok(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	return device_word(0);
}

static void test_heap(void **state)
{
	CUfunction count = builtin("count");
	size_t limit;

	(void)state;
	ok(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1 << 20));
	ok(cuCtxGetLimit(&limit, CU_LIMIT_MALLOC_HEAP_SIZE));
	assert_int_equal(limit, 1 << 20);
	assert_int_equal(allocate(count, 2 << 20, 3, 1), 0);
	assert_int_equal(allocate(count, UINT64_MAX, 1, 1), 0);
	assert_int_equal(allocate(count, 0, 1, 1), 0);
	/* Far more than there is, one after the other. */
	assert_int_equal(allocate(count, 100000, 500, 1), 500);
	/* A block stays when its kernel ends. */
	uint32_t kept = allocate(count, 5000, 500, 0);
	assert_in_range(kept, 50, 250);
	assert_int_equal(allocate(count, 5000, 1, 0), 0);
	assert_int_equal(allocate(count, 100000, 500, 1), 500);
}

/* Another context has another heap. */
static void test_heaps(void **state)
{
	CUfunction count = builtin("count");
	CUcontext other;

	(void)state;
	while (allocate(count, 100000, 10, 0) > 0)
		;
	ok(cuCtxCreate(&other, NULL, 0, 0));
	assert_int_equal(allocate(builtin("count"), 100000, 10, 0), 10);
	ok(cuCtxDestroy(other));
}

static uint64_t workspace(CUfunction function, bool cooperative)
{
	void *params[] = {&fx.memory};
	uint64_t address;

	if (cooperative)
		ok(cuLaunchCooperativeKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params));
	else
		ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	ok(cuMemcpyDtoH(&address, fx.memory, sizeof(address)));
	return address;
}

static void test_workspace(void **state)
{
	CUfunction function = builtin("workspace");

	(void)state;
	assert_int_equal(workspace(function, false), 0);
	assert_int_not_equal(workspace(function, true), 0);
}

static void test_assertion(void **state)
{
	CUdeviceptr p;
	CUcontext other;
	void *params[] = {&fx.memory};

	(void)state;
	ok(cuCtxCreate(&other, NULL, 0, 0));
	ok(cuLaunchKernel(builtin("failing"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	fails(cuCtxSynchronize(), CUDA_ERROR_ASSERT);
	fails(cuMemAlloc(&p, 16), CUDA_ERROR_ASSERT);
	ok(cuCtxDestroy(other));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_heap),
		TEST(test_heaps),
		TEST(test_workspace),
		TEST(test_assertion),
	};
	int failed;

	own_machine("2", "64M");
	if (cuInit(0))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_machine();
	return failed;
}
