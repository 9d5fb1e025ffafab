#include "workloads/stream-order/ops.h"

#include <sched.h>
#include <string.h>

#include <weir/base.h>

#define DATA_BYTES (LANE_WORDS * sizeof(uint32_t))

struct lane *other_lane(struct run *run, const struct lane *lane)
{
	size_t index = (size_t)(lane - run->lanes);

	return &run->lanes[(index + 1 + random_below(&run->kit.random, LANES - 1)) % LANES];
}

static void operation_actions(struct run *run, struct lane *lane)
{
	for (uint32_t n = 1 + random_below(&run->kit.random, 4); n; n--) {
		struct action action = action_random(&run->kit);

		action_issue(lane, &action, false);
		action_expect(lane, &action);
	}
}

/* Two lanes and an event each way: the copy waits for the source, which then waits for the copy. */
static void operation_hand_over(struct run *run, struct lane *lane)
{
	struct lane *other = other_lane(run, lane);
	struct target to;

	lane_order(lane, other);
	to = lane_target(other);
	lane_copy(lane, other, &to);
	lane_order(other, lane);
}

static void signal_flag(struct run *run, struct lane *lane)
{
	struct target to = lane_target(lane);
	CUstreamBatchMemOpParams write = {
		.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
			       .address = lane->flag,
			       .value = ++lane->flag_value}};

	if (random_below(&run->kit.random, 2))
		CU(to.calls->write_value(to.stream, lane->flag, lane->flag_value, 0));
	else
		CU(to.calls->batch(to.stream, 1, &write, 0));
}

static void await_flag(struct run *run, struct lane *lane, const struct lane *signaller)
{
	struct target to = lane_target(lane);
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
static void operation_memory_words(struct run *run, struct lane *lane)
{
	struct lane *other = other_lane(run, lane);
	struct target to;

	if (!other->stream)
		return;
	signal_flag(run, lane);
	await_flag(run, other, lane);
	to = lane_target(other);
	lane_copy(lane, other, &to);
	signal_flag(run, other);
	await_flag(run, lane, other);
}

/* A copy in the legacy stream, which waits for all blocking streams and they for it: no event. */
static void operation_legacy_copy(struct run *run, struct lane *lane)
{
	struct lane *other = other_lane(run, lane);
	struct target to = lane_legacy(&run->kit);

	if (lane->kind == LANE_NON_BLOCKING || other->kind == LANE_NON_BLOCKING)
		return;
	lane_copy(lane, other, &to);
}

static void operation_launch_ex(struct run *run, struct lane *lane)
{
	struct target to = lane_target(lane);
	struct action action = action_random(&run->kit);
	uint32_t words = LANE_WORDS, is_cooperative = random_below(&run->kit.random, 2);
	void *parameters[] = {&lane->data, &words, &action.multiply, &action.add, &action.delay};
	CUlaunchAttribute cooperative = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
					 .value.cooperative = 1};
	CUlaunchConfig config = {.gridDimX = LANE_WORDS /
					     (is_cooperative ? LANE_THREADS : STEP_THREADS),
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = is_cooperative ? LANE_THREADS : STEP_THREADS,
				 .blockDimY = 1,
				 .blockDimZ = 1,
				 .hStream = to.stream,
				 .attrs = &cooperative,
				 .numAttrs = is_cooperative};

	action.kind = ACTION_STEP;
	CU(to.calls->launch_kernel_ex(&config, run->kit.step, parameters, NULL));
	action_expect(lane, &action);
}

/* Parameters as one buffer. */
static void operation_launch_buffer(struct run *run, struct lane *lane)
{
	struct target to = lane_target(lane);
	struct action action = action_random(&run->kit);
	struct {
		CUdeviceptr data;
		uint32_t words, multiply, add, delay;
	} buffer = {lane->data, LANE_WORDS, action.multiply, action.add, action.delay};
	size_t size = sizeof(buffer);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE,
			 &size, CU_LAUNCH_PARAM_END};

	action.kind = ACTION_STEP;
	CU(to.calls->launch_kernel(run->kit.step, LANE_WORDS / STEP_THREADS, 1, 1, STEP_THREADS, 1,
				   1, 0, to.stream, NULL, extra));
	action_expect(lane, &action);
}

/* Blocks that wait for one another. */
static void operation_cooperative(struct run *run, struct lane *lane)
{
	struct target to = lane_target(lane);
	void *parameters[] = {&lane->data, &lane->arrived};
	uint32_t old[LANE_WORDS];

	(void)run;
	CU(to.calls->set(lane->arrived, 0, 1, to.stream));
	to = lane_target(lane);
	CU(to.calls->launch_cooperative(lane->kit->rotate, LANE_WORDS / LANE_THREADS, 1, 1,
					LANE_THREADS, 1, 1, 0, to.stream, parameters));
	memcpy(old, lane->expected_data, sizeof(old));
	for (uint32_t i = 0; i < LANE_WORDS; i++)
		lane->expected_data[i] = old[(i + LANE_THREADS) % LANE_WORDS];
}

/* By way of memory that lives in the stream only. */
static void operation_pool_memory(struct run *run, struct lane *lane)
{
	struct target to = lane_target(lane);
	CUdeviceptr memory;

	(void)run;
	CU(to.calls->alloc(&memory, DATA_BYTES, to.stream));
	to = lane_target(lane);
	CU(to.calls->copy_on_device(memory, lane->data, DATA_BYTES, to.stream));
	to = lane_target(lane);
	CU(to.calls->set(lane->data, 0xdeadbeef, LANE_WORDS, to.stream));
	to = lane_target(lane);
	CU(to.calls->copy_on_device(lane->data, memory, DATA_BYTES, to.stream));
	to = lane_target(lane);
	CU(to.calls->free(memory, to.stream));
}

/* A stream is destroyed with work in it; its successor waits for that work. */
static void operation_new_stream(struct run *run, struct lane *lane)
{
	unsigned flags = lane->kind == LANE_BLOCKING ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
	CUstream stream;

	(void)run;
	CU(cuStreamCreate(&stream, flags));
	CU(cuEventRecord(lane->event, lane->stream));
	CU(cuStreamWaitEvent(stream, lane->event, 0));
	CU(cuStreamDestroy(lane->stream));
	lane->stream = stream;
}

/* Synchronise in one of four ways, then check the lane. */
static void operation_synchronize(struct run *run, struct lane *lane)
{
	struct target to = lane_target(lane);
	CUresult result;

	switch (random_below(&run->kit.random, 4)) {
	case 0:
		CU(to.calls->synchronize(to.stream));
		break;
	case 1:
		CU(to.calls->record(lane->event, to.stream));
		CU(cuEventSynchronize(lane->event));
		break;
	case 2:
		while ((result = to.calls->query(to.stream)) == CUDA_ERROR_NOT_READY)
			sched_yield();
		CU(result);
		break;
	default:
		CU(to.calls->record(lane->event, to.stream));
		while ((result = cuEventQuery(lane->event)) == CUDA_ERROR_NOT_READY)
			sched_yield();
		CU(result);
	}
	lane_check(lane);
}

void run_check(struct run *run)
{
	capture_lock();
	CU(cuCtxSynchronize());
	capture_unlock();
	for (size_t i = 0; i < LANES; i++)
		lane_check(&run->lanes[i]);
	kit_forget_host_calls(&run->kit);
}

static void operation_check_all(struct run *run, struct lane *lane)
{
	(void)lane;
	run_check(run);
}

const struct operation operations[] = {
	{"actions", 40, operation_actions, false, false},
	{"hand-over", 15, operation_hand_over, false, false},
	{"memory-words", 8, operation_memory_words, true, false},
	{"legacy-copy", 10, operation_legacy_copy, false, false},
	{"launch-ex", 5, operation_launch_ex, false, false},
	{"launch-buffer", 3, operation_launch_buffer, false, false},
	{"cooperative", 3, operation_cooperative, false, false},
	{"pool-memory", 4, operation_pool_memory, false, false},
	{"graph-captured", 4, operation_graph_captured, false, true},
	{"graph-forked", 3, operation_graph_forked, false, true},
	{"graph-by-hand", 4, operation_graph_by_hand, false, false},
	{"new-stream", 2, operation_new_stream, true, false},
	{"synchronize", 6, operation_synchronize, false, false},
	{"check-all", 1, operation_check_all, false, false},
};
const size_t operations_count = countof(operations);
