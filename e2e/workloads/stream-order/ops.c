#include "workloads/stream-order/ops.h"

#include <sched.h>
#include <string.h>

#include <weir/base.h>
#include <weir/weir.h>

#define DATA_BYTES (STREAM_WORDS * sizeof(uint32_t))

struct checked_stream *other_stream(struct run *run, const struct checked_stream *checked)
{
	size_t index = (size_t)(checked - run->streams);

	return &run->streams[(index + 1 + random_below(&run->kit.random, LANES - 1)) % LANES];
}

static void operation_actions(struct run *run, struct checked_stream *checked)
{
	for (uint32_t n = 1 + random_below(&run->kit.random, 4); n; n--) {
		struct action action = action_random(&run->kit);

		action_issue(checked, &action, false);
		action_expect(checked, &action);
	}
}

/* Two streams and an event each way: the copy waits for the source, which then waits for the copy.
 */
static void operation_hand_over(struct run *run, struct checked_stream *checked)
{
	struct checked_stream *other = other_stream(run, checked);
	struct target to;

	checked_stream_order(checked, other);
	to = checked_stream_target(other);
	checked_stream_copy(checked, other, &to);
	checked_stream_order(other, checked);
}

static void signal_flag(struct run *run, struct checked_stream *checked)
{
	struct target to = checked_stream_target(checked);
	CUstreamBatchMemOpParams write = {
		.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
			       .address = checked->flag,
			       .value = ++checked->flag_value}};

	if (random_below(&run->kit.random, 2))
		CU(to.calls->write_value(to.stream, checked->flag, checked->flag_value, 0));
	else
		CU(to.calls->batch(to.stream, 1, &write, 0));
}

static void await_flag(struct run *run, struct checked_stream *checked,
		       const struct checked_stream *signaller)
{
	struct target to = checked_stream_target(checked);
	CUstreamBatchMemOpParams wait = {.waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32,
						       .address = signaller->flag,
						       .value = signaller->flag_value,
						       .flags = CU_STREAM_WAIT_VALUE_GEQ}};

	if (random_below(&run->kit.random, 2))
		CU(to.calls->wait_value(to.stream, signaller->flag, signaller->flag_value,
					CU_STREAM_WAIT_VALUE_GEQ));
	else
		CU(to.calls->batch(to.stream, 1, &wait, 0));
}

/* The same hand-over with words in device memory instead of events. */
static void operation_memory_words(struct run *run, struct checked_stream *checked)
{
	struct checked_stream *other = other_stream(run, checked);
	struct target to;

	if (!other->stream)
		return;
	signal_flag(run, checked);
	await_flag(run, other, checked);
	to = checked_stream_target(other);
	checked_stream_copy(checked, other, &to);
	signal_flag(run, other);
	await_flag(run, checked, other);
}

/* A copy in the legacy stream, which waits for all blocking streams and they for it: no event. */
static void operation_legacy_copy(struct run *run, struct checked_stream *checked)
{
	struct checked_stream *other = other_stream(run, checked);
	struct target to = checked_stream_legacy(&run->kit);

	if (checked->kind == STREAM_NON_BLOCKING || other->kind == STREAM_NON_BLOCKING)
		return;
	checked_stream_copy(checked, other, &to);
}

static void operation_launch_ex(struct run *run, struct checked_stream *checked)
{
	struct target to = checked_stream_target(checked);
	struct action action = action_random(&run->kit);
	uint32_t words = STREAM_WORDS, is_cooperative = random_below(&run->kit.random, 2);
	void *parameters[] = {&checked->data, &words, &action.multiply, &action.add, &action.delay};
	CUlaunchAttribute cooperative = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
					 .value.cooperative = 1};
	CUlaunchConfig config = {.gridDimX = STREAM_WORDS /
					     (is_cooperative ? STREAM_THREADS : STEP_THREADS),
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = is_cooperative ? STREAM_THREADS : STEP_THREADS,
				 .blockDimY = 1,
				 .blockDimZ = 1,
				 .hStream = to.stream,
				 .attrs = &cooperative,
				 .numAttrs = is_cooperative};

	action.kind = ACTION_STEP;
	CU(to.calls->launch_kernel_ex(&config, run->kit.step, parameters, NULL));
	action_expect(checked, &action);
}

/* Parameters as one buffer. */
static void operation_launch_buffer(struct run *run, struct checked_stream *checked)
{
	struct target to = checked_stream_target(checked);
	struct action action = action_random(&run->kit);
	struct {
		CUdeviceptr data;
		uint32_t words, multiply, add, delay;
	} buffer = {checked->data, STREAM_WORDS, action.multiply, action.add, action.delay};
	size_t size = sizeof(buffer);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE,
			 &size, CU_LAUNCH_PARAM_END};

	action.kind = ACTION_STEP;
	CU(to.calls->launch_kernel(run->kit.step, STREAM_WORDS / STEP_THREADS, 1, 1, STEP_THREADS,
				   1, 1, 0, to.stream, NULL, extra));
	action_expect(checked, &action);
}

/* Blocks that wait for one another. */
static void operation_cooperative(struct run *run, struct checked_stream *checked)
{
	struct target to = checked_stream_target(checked);
	void *parameters[] = {&checked->data, &checked->arrived};
	uint32_t old[STREAM_WORDS];

	(void)run;
	CU(to.calls->set(checked->arrived, 0, 1, to.stream));
	to = checked_stream_target(checked);
	CU(to.calls->launch_cooperative(checked->kit->rotate, STREAM_WORDS / STREAM_THREADS, 1, 1,
					STREAM_THREADS, 1, 1, 0, to.stream, parameters));
	memcpy(old, checked->expected_data, sizeof(old));
	for (uint32_t i = 0; i < STREAM_WORDS; i++)
		checked->expected_data[i] = old[(i + STREAM_THREADS) % STREAM_WORDS];
}

/* Through stream-ordered memory. */
static void operation_pool_memory(struct run *run, struct checked_stream *checked)
{
	struct target to = checked_stream_target(checked);
	CUdeviceptr memory;

	(void)run;
	CU(to.calls->alloc(&memory, DATA_BYTES, to.stream));
	to = checked_stream_target(checked);
	CU(to.calls->copy_on_device(memory, checked->data, DATA_BYTES, to.stream));
	to = checked_stream_target(checked);
	CU(to.calls->set(checked->data, 0xdeadbeef, STREAM_WORDS, to.stream));
	to = checked_stream_target(checked);
	CU(to.calls->copy_on_device(checked->data, memory, DATA_BYTES, to.stream));
	to = checked_stream_target(checked);
	CU(to.calls->free(memory, to.stream));
}

/* A stream is destroyed with work in it; its successor waits for that work. */
static void operation_new_stream(struct run *run, struct checked_stream *checked)
{
	unsigned flags =
		checked->kind == STREAM_BLOCKING ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
	CUstream stream;

	(void)run;
	CU(cuStreamCreate(&stream, flags));
	CU(cuEventRecord(checked->event, checked->stream));
	CU(cuStreamWaitEvent(stream, checked->event, 0));
	CU(cuStreamDestroy(checked->stream));
	checked->stream = stream;
}

/* Synchronises in one of four ways, then checks the words. */
static void operation_synchronize(struct run *run, struct checked_stream *checked)
{
	struct target to = checked_stream_target(checked);
	CUresult result;

	switch (random_below(&run->kit.random, 4)) {
	case 0:
		CU(to.calls->synchronize(to.stream));
		break;
	case 1:
		CU(to.calls->record(checked->event, to.stream));
		CU(cuEventSynchronize(checked->event));
		break;
	case 2:
		while ((result = to.calls->query(to.stream)) == CUDA_ERROR_NOT_READY)
			sched_yield();
		CU(result);
		break;
	default:
		CU(to.calls->record(checked->event, to.stream));
		while ((result = cuEventQuery(checked->event)) == CUDA_ERROR_NOT_READY)
			sched_yield();
		CU(result);
	}
	checked_stream_check(checked);
}

void run_check(struct run *run)
{
	capture_lock();
	CU(cuCtxSynchronize());
	capture_unlock();
	for (size_t i = 0; i < LANES; i++)
		checked_stream_check(&run->streams[i]);
	kit_forget_host_calls(&run->kit);
}

/* Order does not depend on levels. Errors are fine: no Weir, or the stream cannot be raised now. */
static void operation_level(struct run *run, struct checked_stream *checked)
{
	CUstream stream =
		checked->kind == STREAM_PER_THREAD ? CU_STREAM_PER_THREAD : checked->stream;

	weir_set_priority(stream, (int)random_below(&run->kit.random, 4) - 1);
}

static void operation_check_all(struct run *run, struct checked_stream *checked)
{
	(void)checked;
	run_check(run);
}

const struct operation operations[] = {
	{"actions", 40, operation_actions, false, false},
	{"hand-over", 15, operation_hand_over, false, false},
	{"memory-words", 8, operation_memory_words, true, false},
	{"legacy-copy", 10, operation_legacy_copy, false, false},
	{"launch-ex", 5, operation_launch_ex, false, false},
	{"dependent", 5, operation_dependent, false, false},
	{"launch-buffer", 3, operation_launch_buffer, false, false},
	{"cooperative", 3, operation_cooperative, false, false},
	{"pool-memory", 4, operation_pool_memory, false, false},
	{"graph-captured", 4, operation_graph_captured, false, true},
	{"graph-forked", 3, operation_graph_forked, false, true},
	{"graph-by-hand", 4, operation_graph_by_hand, false, false},
	{"new-stream", 2, operation_new_stream, true, false},
	{"level", 4, operation_level, false, false},
	{"synchronize", 6, operation_synchronize, false, false},
	{"check-all", 1, operation_check_all, false, false},
};
const size_t operations_count = countof(operations);
