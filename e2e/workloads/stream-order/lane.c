#include "workloads/stream-order/lane.h"

#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "spin.h"

#define DATA_BYTES (LANE_WORDS * sizeof(uint32_t))

static void create_stream(struct lane *lane)
{
	unsigned flags = lane->kind == LANE_BLOCKING ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
	int least, greatest;

	if (lane->kind == LANE_LEGACY || lane->kind == LANE_PER_THREAD)
		return;
	CU(cuCtxGetStreamPriorityRange(&least, &greatest));
	int priority = random_below(&lane->kit->random, 2) ? least : greatest;
	CU(cuStreamCreateWithPriority(&lane->stream, flags, priority));
}

void lane_init(struct lane *lane, struct kit *kit, unsigned number, enum lane_kind kind)
{
	*lane = (struct lane){.kit = kit, .number = number, .kind = kind};
	create_stream(lane);
	CU(cuEventCreate(&lane->event, CU_EVENT_DISABLE_TIMING));
	CU(cuMemAlloc(&lane->data, DATA_BYTES));
	CU(cuMemAlloc(&lane->flag, sizeof(uint32_t)));
	CU(cuMemAlloc(&lane->arrived, sizeof(uint32_t)));
	CU(cuMemHostAlloc((void **)&lane->host, DATA_BYTES, 0));
	for (uint32_t i = 0; i < LANE_WORDS; i++)
		lane->expected_data[i] = lane->expected_host[i] = lane->host[i] =
			(uint32_t)random_next(&kit->random);
	workload_upload(lane->data, lane->host, DATA_BYTES);
	CU(cuMemsetD32(lane->flag, 0, 1));
	CU(cuCtxSynchronize());
}

void lane_deinit(struct lane *lane)
{
	if (lane->stream)
		CU(cuStreamDestroy(lane->stream));
	CU(cuEventDestroy(lane->event));
	CU(cuMemFree(lane->data));
	CU(cuMemFree(lane->flag));
	CU(cuMemFree(lane->arrived));
	CU(cuMemFreeHost(lane->host));
}

struct target lane_legacy(struct kit *kit)
{
	enum spelling spelling = random_below(&kit->random, SPELLINGS);
	bool by_handle = spelling >= SPELLING_FIRST_PER_THREAD || random_below(&kit->random, 2);

	return (struct target){&kit->calls[spelling], by_handle ? CU_STREAM_LEGACY : NULL};
}

struct target lane_target(const struct lane *lane)
{
	enum spelling spelling = random_below(&lane->kit->random, SPELLINGS);
	const struct stream_calls *calls = &lane->kit->calls[spelling];

	if (lane->kind == LANE_LEGACY)
		return lane_legacy(lane->kit);
	if (lane->kind != LANE_PER_THREAD)
		return (struct target){calls, lane->stream};
	bool by_handle =
		spelling < SPELLING_FIRST_PER_THREAD || random_below(&lane->kit->random, 2);
	return (struct target){calls, by_handle ? CU_STREAM_PER_THREAD : NULL};
}

struct range range_random(struct kit *kit)
{
	uint32_t count = 1 + random_below(&kit->random, LANE_WORDS / 8);

	return (struct range){random_below(&kit->random, LANE_WORDS - count + 1), count};
}

struct action action_random(struct kit *kit)
{
	return (struct action){.kind = random_below(&kit->random, ACTIONS),
			       .range = range_random(kit),
			       .multiply = (uint32_t)random_next(&kit->random) | 1,
			       .add = (uint32_t)random_next(&kit->random),
			       .delay = random_below(&kit->random, kit->delay + 1)};
}

static uint32_t checksum(const uint32_t *words)
{
	uint32_t sum = 2166136261u;

	for (uint32_t i = 0; i < LANE_WORDS; i++)
		sum = (sum ^ words[i]) * 16777619u;
	return sum;
}

void action_host_function(void *host_call)
{
	const struct host_call *call = host_call;
	uint32_t *words = call->lane->host;

	if (call->check && checksum(words) != call->before)
		workload_fail("lane %u: a host function ran too early or too late",
			      call->lane->number);
	for (uint32_t i = 0; i < LANE_WORDS; i++)
		words[i] = words[i] * call->action.multiply + call->action.add;
}

struct host_call *host_call_new(struct lane *lane, const struct action *action)
{
	struct host_call *call = workload_alloc(sizeof(*call));

	*call = (struct host_call){.next = lane->kit->host_calls, .lane = lane, .action = *action};
	lane->kit->host_calls = call;
	return call;
}

static void issue_host(struct lane *lane, const struct target *to, const struct action *action,
		       bool captured)
{
	struct host_call *call = host_call_new(lane, action);

	call->check = !captured;
	call->before = checksum(lane->expected_host);
	CU(to->calls->launch_host_func(to->stream, action_host_function, call));
}

void action_issue(struct lane *lane, const struct action *action, bool captured)
{
	struct target to = lane_target(lane);
	uint32_t words = LANE_WORDS;
	uint32_t *host = lane->host + action->range.first;
	CUdeviceptr data = lane->data + action->range.first * sizeof(uint32_t);
	size_t bytes = action->range.count * sizeof(uint32_t);
	struct action copy = *action;
	void *parameters[] = {&lane->data, &words, &copy.multiply, &copy.add, &copy.delay};

	switch (action->kind) {
	case ACTION_STEP:
		CU(to.calls->launch_kernel(lane->kit->step, LANE_WORDS / STEP_THREADS, 1, 1,
					   STEP_THREADS, 1, 1, 0, to.stream, parameters, NULL));
		return;
	case ACTION_SET:
		CU(to.calls->set(data, action->add, action->range.count, to.stream));
		return;
	case ACTION_TO_HOST:
		CU(to.calls->copy_to_host(host, data, bytes, to.stream));
		return;
	case ACTION_TO_DEVICE:
		CU(to.calls->copy_to_device(data, host, bytes, to.stream));
		return;
	default:
		issue_host(lane, &to, action, captured);
	}
}

void action_expect(struct lane *lane, const struct action *action)
{
	uint32_t *data = lane->expected_data, *host = lane->expected_host;
	uint32_t first = action->range.first, end = first + action->range.count;
	size_t bytes = action->range.count * sizeof(uint32_t);

	switch (action->kind) {
	case ACTION_STEP:
		for (uint32_t i = 0; i < LANE_WORDS; i++)
			data[i] =
				spin_jump(data[i], action->delay) * action->multiply + action->add;
		return;
	case ACTION_SET:
		for (uint32_t i = first; i < end; i++)
			data[i] = action->add;
		return;
	case ACTION_TO_HOST:
		memcpy(host + first, data + first, bytes);
		return;
	case ACTION_TO_DEVICE:
		memcpy(data + first, host + first, bytes);
		return;
	default:
		for (uint32_t i = 0; i < LANE_WORDS; i++)
			host[i] = host[i] * action->multiply + action->add;
	}
}

void lane_order(struct lane *before, struct lane *after)
{
	struct target from = lane_target(before), to = lane_target(after);

	CU(from.calls->record(before->event, from.stream));
	CU(to.calls->wait_event(to.stream, before->event, 0));
}

void lane_copy(struct lane *from, struct lane *to, const struct target *target)
{
	struct range range = range_random(from->kit);
	size_t offset = range.first * sizeof(uint32_t), bytes = range.count * sizeof(uint32_t);

	CU(target->calls->copy_on_device(to->data + offset, from->data + offset, bytes,
					 target->stream));
	memcpy(to->expected_data + range.first, from->expected_data + range.first, bytes);
}

static void compare(const struct lane *lane, const char *where, const uint32_t *words,
		    const uint32_t *expected)
{
	for (uint32_t i = 0; i < LANE_WORDS; i++)
		if (words[i] != expected[i])
			workload_fail("lane %u (kind %d): %s word %u is %#x, not %#x", lane->number,
				      (int)lane->kind, where, i, words[i], expected[i]);
}

void lane_check(const struct lane *lane)
{
	uint32_t words[LANE_WORDS];

	CU(cuMemcpyDtoH(words, lane->data, sizeof(words)));
	compare(lane, "device", words, lane->expected_data);
	compare(lane, "host", lane->host, lane->expected_host);
}

void kit_forget_host_calls(struct kit *kit)
{
	for (struct host_call *call = kit->host_calls, *next; call; call = next) {
		next = call->next;
		free(call);
	}
	kit->host_calls = NULL;
}
