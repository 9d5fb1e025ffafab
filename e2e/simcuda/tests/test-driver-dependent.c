/* Programmatic dependence: a kernel that starts before the one in front of it is done. */
#include "driver-test.h"

#include <unistd.h>

#define HEAD                                                                                  \
	"(.param .u64 p)\n{ .reg .u64 %a; .reg .u32 %v, %n; .reg .pred %p; ld.param.u64 %a, " \
	"[p];\n"
#define A_WHILE                                                                               \
	"mov.u32 %n, 0; L: nanosleep.u32 1000; add.u32 %n, %n, 1; setp.lt.u32 %p, %n, 300;\n" \
	"@%p bra L; ld.volatile.global.u32 %v, [%a];\n"

/* first: permits, waits until word 0 is not 0, then word 1 = 5.
 * busy, silent: after a while, word 1 = 5 + word 0; busy permits at once, silent does not.
 * second: word 0 = 1, waits for the kernel in front, word 2 = 1 + word 1.
 * early: word 0 = 1.
 * reader: word 3 = word 1. */
static const char ptx[] =
	".version 8.0\n.target sm_90\n.address_size 64\n"
	".visible .entry first" HEAD "griddepcontrol.launch_dependents;\n"
	"L: nanosleep.u32 1000; ld.volatile.global.u32 %v, [%a]; setp.eq.u32 %p, %v, 0; @%p bra "
	"L;\n"
	"st.volatile.global.u32 [%a+4], 5; ret; }\n"
	".visible .entry busy" HEAD "griddepcontrol.launch_dependents;\n" A_WHILE
	"add.u32 %v, %v, 5; st.volatile.global.u32 [%a+4], %v; ret; }\n"
	".visible .entry silent" HEAD A_WHILE
	"add.u32 %v, %v, 5; st.volatile.global.u32 [%a+4], %v; ret; }\n"
	".visible .entry second" HEAD "st.volatile.global.u32 [%a], 1; griddepcontrol.wait;\n"
	"ld.volatile.global.u32 %v, [%a+4]; add.u32 %v, %v, 1; st.global.u32 [%a+8], %v; ret; }\n"
	".visible .entry early" HEAD "st.volatile.global.u32 [%a], 1; ret; }\n"
	".visible .entry reader" HEAD
	"ld.volatile.global.u32 %v, [%a+4]; st.global.u32 [%a+12], %v;\n"
	"ret; }\n";

static CUmodule module;
static CUstream stream;

static int begin(void **state)
{
	setup(state);
	ok(cuModuleLoadData(&module, ptx));
	stream = new_stream(CU_STREAM_NON_BLOCKING);
	return 0;
}

static void start(const char *name, unsigned blocks, int overlaps)
{
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
				       .value.programmaticStreamSerializationAllowed = overlaps};
	CUlaunchConfig config = {.gridDimX = blocks,
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = 1,
				 .blockDimY = 1,
				 .blockDimZ = 1,
				 .hStream = stream,
				 .attrs = &attribute,
				 .numAttrs = 1};
	void *params[] = {&fx.memory};
	CUfunction function;

	ok(cuModuleGetFunction(&function, module, name));
	ok(cuLaunchKernelEx(&config, function, params, NULL));
}

static void test_overlaps_and_waits(void **state)
{
	(void)state;
	start("first", 2, 0);
	start("second", 1, 1);
	ok(cuStreamSynchronize(stream));
	assert_int_equal(device_word(2), 6);
}

/* The next operation comes behind both. */
static void test_is_done_after_both(void **state)
{
	(void)state;
	start("first", 1, 0);
	start("early", 1, 1);
	start("reader", 1, 0);
	ok(cuStreamSynchronize(stream));
	assert_int_equal(device_word(3), 5);
}

static void test_overlaps_in_a_row(void **state)
{
	(void)state;
	start("first", 1, 0);
	start("second", 1, 1);
	start("second", 1, 1);
	start("reader", 1, 1);
	ok(cuStreamSynchronize(stream));
	assert_int_equal(device_word(2), 6);
	assert_int_equal(device_word(3), 5);
}

static void starts_behind(const char *name, int overlaps, bool event)
{
	CUevent e;

	ok(cuEventCreate(&e, 0));
	start(name, 3, 0);
	if (event)
		ok(cuEventRecord(e, stream));
	start("second", 1, overlaps);
	ok(cuStreamSynchronize(stream));
	assert_int_equal(device_word(1), 5);
	assert_int_equal(device_word(2), 6);
}

static void test_nobody_permitted(void **state)
{
	(void)state;
	starts_behind("silent", 1, false);
}

static void test_no_attribute(void **state)
{
	(void)state;
	starts_behind("busy", 0, false);
}

static void test_an_event_is_between(void **state)
{
	(void)state;
	starts_behind("busy", 1, true);
}

/* The context ends while a kernel runs that waits. */
static void test_context_ends(void **state)
{
	(void)state;
	start("first", 1, 0);
	start("second", 1, 1);
	ok(cuCtxDestroy(fx.ctx));
	ok(cuCtxCreate(&fx.ctx, NULL, 0, 0));
}

static void test_fault(void **state)
{
	CUdeviceptr nowhere = 16;

	(void)state;
	/* Neither of these ends by itself. */
	start("first", 1, 0);
	start("first", 1, 1);
	ok(launch2(fx.wild, 1, new_stream(CU_STREAM_NON_BLOCKING), &nowhere, NULL));
	fails(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_overlaps_and_waits, begin, teardown),
		cmocka_unit_test_setup_teardown(test_is_done_after_both, begin, teardown),
		cmocka_unit_test_setup_teardown(test_overlaps_in_a_row, begin, teardown),
		cmocka_unit_test_setup_teardown(test_nobody_permitted, begin, teardown),
		cmocka_unit_test_setup_teardown(test_no_attribute, begin, teardown),
		cmocka_unit_test_setup_teardown(test_an_event_is_between, begin, teardown),
		cmocka_unit_test_setup_teardown(test_context_ends, begin, teardown),
		cmocka_unit_test_setup_teardown(test_fault, begin, teardown),
	};

	int failed;

	own_machine("4", "64M");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_machine();
	return failed;
}
