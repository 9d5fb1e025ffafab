#include "workloads/stream-order/checked-stream.h"

#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "spin.h"

#define DATA_BYTES (STREAM_WORDS * sizeof(uint32_t))

static void create_stream(struct checked_stream *checked)
{
	unsigned flags =
		checked->kind == STREAM_BLOCKING ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
	int least, greatest;

	if (checked->kind == STREAM_LEGACY || checked->kind == STREAM_PER_THREAD)
		return;
	CU(cuCtxGetStreamPriorityRange(&least, &greatest));
	int priority = random_below(&checked->kit->random, 2) ? least : greatest;
	CU(cuStreamCreateWithPriority(&checked->stream, flags, priority));
}

void checked_stream_init(struct checked_stream *checked, struct kit *kit, unsigned number,
			 enum stream_kind kind)
{
	*checked = (struct checked_stream){.kit = kit, .number = number, .kind = kind};
	create_stream(checked);
	CU(cuEventCreate(&checked->event, CU_EVENT_DISABLE_TIMING));
	CU(cuMemAlloc(&checked->data, DATA_BYTES));
	CU(cuMemAlloc(&checked->flag, sizeof(uint32_t)));
	CU(cuMemAlloc(&checked->arrived, sizeof(uint32_t)));
	CU(cuMemHostAlloc((void **)&checked->host, DATA_BYTES, 0));
	for (uint32_t i = 0; i < STREAM_WORDS; i++)
		checked->expected_data[i] = checked->expected_host[i] = checked->host[i] =
			(uint32_t)random_next(&kit->random);
	workload_upload(checked->data, checked->host, DATA_BYTES);
	CU(cuMemsetD32(checked->flag, 0, 1));
	CU(cuCtxSynchronize());
}

void checked_stream_deinit(struct checked_stream *checked)
{
	if (checked->stream)
		CU(cuStreamDestroy(checked->stream));
	CU(cuEventDestroy(checked->event));
	CU(cuMemFree(checked->data));
	CU(cuMemFree(checked->flag));
	CU(cuMemFree(checked->arrived));
	CU(cuMemFreeHost(checked->host));
}

struct target checked_stream_legacy(struct kit *kit)
{
	enum spelling spelling = random_below(&kit->random, SPELLINGS);
	bool by_handle = spelling >= SPELLING_FIRST_PER_THREAD || random_below(&kit->random, 2);

	return (struct target){&kit->calls[spelling], by_handle ? CU_STREAM_LEGACY : NULL};
}

struct target checked_stream_target(const struct checked_stream *checked)
{
	enum spelling spelling = random_below(&checked->kit->random, SPELLINGS);
	const struct stream_calls *calls = &checked->kit->calls[spelling];

	if (checked->kind == STREAM_LEGACY)
		return checked_stream_legacy(checked->kit);
	if (checked->kind != STREAM_PER_THREAD)
		return (struct target){calls, checked->stream};
	bool by_handle =
		spelling < SPELLING_FIRST_PER_THREAD || random_below(&checked->kit->random, 2);
	return (struct target){calls, by_handle ? CU_STREAM_PER_THREAD : NULL};
}

struct range range_random(struct kit *kit)
{
	uint32_t count = 1 + random_below(&kit->random, STREAM_WORDS / 8);

	return (struct range){random_below(&kit->random, STREAM_WORDS - count + 1), count};
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

	for (uint32_t i = 0; i < STREAM_WORDS; i++)
		sum = (sum ^ words[i]) * 16777619u;
	return sum;
}

void action_host_function(void *host_call)
{
	const struct host_call *call = host_call;
	uint32_t *words = call->checked->host;

	if (call->check && checksum(words) != call->before)
		workload_fail("checked %u: a host function ran too early or too late",
			      call->checked->number);
	for (uint32_t i = 0; i < STREAM_WORDS; i++)
		words[i] = words[i] * call->action.multiply + call->action.add;
}

struct host_call *host_call_new(struct checked_stream *checked, const struct action *action)
{
	struct host_call *call = workload_alloc(sizeof(*call));

	*call = (struct host_call){
		.next = checked->kit->host_calls, .checked = checked, .action = *action};
	checked->kit->host_calls = call;
	return call;
}

static void issue_host(struct checked_stream *checked, const struct target *to,
		       const struct action *action, bool captured)
{
	struct host_call *call = host_call_new(checked, action);

	call->check = !captured;
	call->before = checksum(checked->expected_host);
	CU(to->calls->launch_host_func(to->stream, action_host_function, call));
}

void action_issue(struct checked_stream *checked, const struct action *action, bool captured)
{
	struct target to = checked_stream_target(checked);
	uint32_t words = STREAM_WORDS;
	uint32_t *host = checked->host + action->range.first;
	CUdeviceptr data = checked->data + action->range.first * sizeof(uint32_t);
	size_t bytes = action->range.count * sizeof(uint32_t);
	struct action copy = *action;
	void *parameters[] = {&checked->data, &words, &copy.multiply, &copy.add, &copy.delay};

	switch (action->kind) {
	case ACTION_STEP:
		CU(to.calls->launch_kernel(checked->kit->step, STREAM_WORDS / STEP_THREADS, 1, 1,
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
		issue_host(checked, &to, action, captured);
	}
}

void action_expect(struct checked_stream *checked, const struct action *action)
{
	uint32_t *data = checked->expected_data, *host = checked->expected_host;
	uint32_t first = action->range.first, end = first + action->range.count;
	size_t bytes = action->range.count * sizeof(uint32_t);

	switch (action->kind) {
	case ACTION_STEP:
		for (uint32_t i = 0; i < STREAM_WORDS; i++)
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
		for (uint32_t i = 0; i < STREAM_WORDS; i++)
			host[i] = host[i] * action->multiply + action->add;
	}
}

void checked_stream_order(struct checked_stream *before, struct checked_stream *after)
{
	struct target from = checked_stream_target(before), to = checked_stream_target(after);

	CU(from.calls->record(before->event, from.stream));
	CU(to.calls->wait_event(to.stream, before->event, 0));
}

void checked_stream_copy(struct checked_stream *from, struct checked_stream *to,
			 const struct target *target)
{
	struct range range = range_random(from->kit);
	size_t offset = range.first * sizeof(uint32_t), bytes = range.count * sizeof(uint32_t);

	CU(target->calls->copy_on_device(to->data + offset, from->data + offset, bytes,
					 target->stream));
	memcpy(to->expected_data + range.first, from->expected_data + range.first, bytes);
}

static void compare(const struct checked_stream *checked, const char *where, const uint32_t *words,
		    const uint32_t *expected)
{
	for (uint32_t i = 0; i < STREAM_WORDS; i++)
		if (words[i] != expected[i])
			workload_fail("checked %u (kind %d): %s word %u is %#x, not %#x",
				      checked->number, (int)checked->kind, where, i, words[i],
				      expected[i]);
}

void checked_stream_check(const struct checked_stream *checked)
{
	uint32_t words[STREAM_WORDS];

	CU(cuMemcpyDtoH(words, checked->data, sizeof(words)));
	compare(checked, "device", words, checked->expected_data);
	compare(checked, "host", checked->host, checked->expected_host);
}

void kit_forget_host_calls(struct kit *kit)
{
	for (struct host_call *call = kit->host_calls, *next; call; call = next) {
		next = call->next;
		free(call);
	}
	kit->host_calls = NULL;
}
