#include "loop/launches.h"

#include "loop/governed.h"

#define WORDS_NS 8000u /* between two looks of the GPU at demand and hold */
/* Between two by the same block: it stands still for 2 us, and others compute meanwhile. */
#define BLOCK_WORDS_NS 16000u
#define CHECK_CYCLES   8192u

static uint32_t words_ns(uint32_t blocks)
{
	uint32_t apart = BLOCK_WORDS_NS / (blocks ? blocks : 1);

	return apart > WORDS_NS ? apart : WORDS_NS;
}

int launches_begin(struct weir_loop *loop, void **params)
{
	const struct rings *rings = &loop->rings;
	struct weir_loop_args args = {
		.device = (void *)(uintptr_t)loop->gpu.device,
		.blocks = (void *)(uintptr_t)loop->gpu.state,
		.requests = rings->requests,
		.doorbells = rings->doorbells,
		.answers = rings->answers,
		.values = rings->values,
		.parts = rings->parts,
		.data = rings->data,
		.callbacks = rings->callbacks,
		.ring = rings->ring,
		.serial = ++loop->serial,
		.poll_ns = loop->options.poll_ns,
		.words_ns = words_ns(loop->gpu.blocks),
		.linger_ns = loop->stay.ns,
		.check_cycles = CHECK_CYCLES,
	};

	args.report = &rings->reports[loop->serial & 1];
	governed_launch(loop, &args);
	loop_count(&loop->counters.launches, 1);
	loop->launched_at = loop_now();
	loop->began_at = 0;
	atomic_store_explicit(&loop->state.on_gpu, 1, memory_order_relaxed);
	loop->on_gpu = true;
	return gpu_launch(&loop->gpu, &args, params);
}

const struct weir_loop_report *launches_last(const struct weir_loop *loop)
{
	return &loop->rings.reports[loop->serial & 1];
}

const struct weir_loop_report *launches_report(const struct weir_loop *loop)
{
	const struct weir_loop_report *report = launches_last(loop);

	return __atomic_load_n(&report->serial, __ATOMIC_ACQUIRE) == loop->serial ? report : NULL;
}

/* The launch has run for @ns. What was told too much is not told again. */
static void tell_time(struct weir_loop *loop, uint64_t ns)
{
	uint64_t told = atomic_load_explicit(&loop->state.ran, memory_order_relaxed);

	if (loop->ran + ns > told)
		loop_count(&loop->state.ran, loop->ran + ns - told);
}

bool launches_watch(struct weir_loop *loop, uint64_t now)
{
	bool begins = !loop->began_at;

	if (__atomic_load_n(&launches_last(loop)->begun, __ATOMIC_RELAXED) != loop->serial)
		return false;
	if (begins)
		loop->began_at = now;
	tell_time(loop, now - loop->began_at);
	return begins;
}

void launches_left(struct weir_loop *loop, const struct weir_loop_report *report)
{
	loop->on_gpu = false;
	loop->left_at = loop_now();
	uint64_t most = loop->left_at - loop->launched_at;
	loop->ran += report->ran < most ? report->ran : most;
	tell_time(loop, 0);
}

void launches_back(struct weir_loop *loop, uint64_t now)
{
	uint64_t away = now > loop->left_at ? now - loop->left_at : 0;

	loop_count(&loop->state.blocked_time, away);
	stay_back(&loop->stay, away);
}
