/* Streams that wait for words of memory and write them: gates are made of that. */
#include "driver-test.h"

/* Whether a wait with @flags for @value is satisfied, by the driver's documentation. */
static void wait_case(unsigned flags, uint32_t value, uint32_t closed, uint32_t open)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);

	set_word(fx.host, closed);
	ok(cuStreamWaitValue32(s, pointer_to(fx.host), value, flags));
	usleep(3000);
	fails(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	set_word(fx.host, open);
	ok(cuStreamSynchronize(s));
	ok(cuStreamDestroy(s));
}

static void test_wait_modes(void **state)
{
	(void)state;
	wait_case(CU_STREAM_WAIT_VALUE_EQ, 0, 1, 0);
	wait_case(CU_STREAM_WAIT_VALUE_GEQ, 5, 4, 6);
	wait_case(CU_STREAM_WAIT_VALUE_GEQ, 2, 0xfffffff0, 3); /* cyclic */
	wait_case(CU_STREAM_WAIT_VALUE_AND, 6, 9, 4);
	wait_case(CU_STREAM_WAIT_VALUE_NOR, 0xffff0000, 0x0000ffff, 0x0000fffe);
}

static void test_wide_operations(void **state)
{
	CUstream a = new_stream(CU_STREAM_NON_BLOCKING), b = new_stream(CU_STREAM_NON_BLOCKING);
	uint64_t word = 0;

	(void)state;
	ok(cuStreamWaitValue64(a, fx.memory, 1ull << 40, CU_STREAM_WAIT_VALUE_GEQ));
	ok(cuStreamWriteValue32(a, fx.memory + 8, 77, 0));
	ok(cuStreamWriteValue64(b, fx.memory, (1ull << 40) + 5, 0));
	ok(cuStreamSynchronize(a));
	ok(cuMemcpyDtoH(&word, fx.memory, 8));
	assert_true(word == (1ull << 40) + 5);
	assert_int_equal(device_word(2), 77);
}

/* A batch is done in order: the write behind a closed wait does not happen. */
static void test_batch(void **state)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUstreamBatchMemOpParams ops[4] = {0};

	(void)state;
	ops[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	ops[0].writeValue.address = pointer_to(fx.host + 1);
	ops[0].writeValue.value = 11;
	ops[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	ops[1].waitValue.address = pointer_to(fx.host);
	ops[1].waitValue.value = 1;
	ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	ops[2].operation = CU_STREAM_MEM_OP_BARRIER;
	ops[3].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	ops[3].writeValue.address = pointer_to(fx.host + 2);
	ops[3].writeValue.value64 = 1ull << 33;
	ok(cuStreamBatchMemOp(s, 4, ops, 0));
	while (get_word(fx.host + 1) != 11)
		usleep(100);
	usleep(3000);
	assert_int_equal(get_word(fx.host + 3), 0);
	set_word(fx.host, 1);
	ok(cuStreamSynchronize(s));
	assert_int_equal(fx.host[3], 2);
	fails(cuStreamBatchMemOp(s, 257, ops, 0), CUDA_ERROR_INVALID_VALUE);
	ops[0].operation = 99;
	fails(cuStreamBatchMemOp(s, 4, ops, 0), CUDA_ERROR_INVALID_VALUE);
}

/* More closed gates than slots delay no other stream. */
static void test_gates_hold_no_slot(void **state)
{
	CUstream gated[8], s = new_stream(CU_STREAM_NON_BLOCKING);

	(void)state;
	for (size_t i = 0; i < countof(gated); i++) {
		gated[i] = new_stream(CU_STREAM_NON_BLOCKING);
		ok(cuStreamWaitValue32(gated[i], pointer_to(fx.host), 1, CU_STREAM_WAIT_VALUE_EQ));
		add(gated[i], 10, 1);
	}
	add(s, 10, 100);
	ok(cuStreamSynchronize(s));
	set_word(fx.host, 1);
	ok(cuCtxSynchronize());
	assert_int_equal(device_word(0), 1080);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_wait_modes),
		TEST(test_wide_operations),
		TEST(test_batch),
		TEST(test_gates_hold_no_slot),
	};
	int failed;

	own_machine("2", "64M");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_machine();
	return failed;
}
