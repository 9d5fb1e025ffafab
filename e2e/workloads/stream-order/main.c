/* Stream-order torture: threads that each drive streams of every kind (blocking and non-blocking
 * streams, the legacy and the per-thread default stream) through a random schedule of kernels,
 * copies, host functions, events, memory operations and graphs, in every spelling of the API. Every
 * value is checked; the seed repeats a schedule.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/base.h>

#include "workloads/stream-order/ops.h"
#include "workloads/stream-order/storms.h"

#define THREADS_MAX 64u

extern const char stream_order_ptx[];

struct torture {
	struct workload workload;
	uint64_t threads, delay, leave_ms;
	bool verbose, storms;
	struct stream_calls calls[SPELLINGS];
	pthread_barrier_t all_ready;
};

struct worker {
	struct torture *torture;
	pthread_t thread;
	unsigned number;
	uint64_t steps;
};

static pthread_mutex_t capturing = PTHREAD_MUTEX_INITIALIZER;

void capture_lock(void)
{
	pthread_mutex_lock(&capturing);
}

void capture_unlock(void)
{
	pthread_mutex_unlock(&capturing);
}

static const struct operation *pick_operation(struct random *random)
{
	uint32_t total = 0, at;

	for (size_t i = 0; i < operations_count; i++)
		total += operations[i].weight;
	at = random_below(random, total);
	for (size_t i = 0;; i++) {
		if (at < operations[i].weight)
			return &operations[i];
		at -= operations[i].weight;
	}
}

static struct checked_stream *pick_stream(struct run *run, const struct operation *operation)
{
	struct checked_stream *checked;

	do
		checked = &run->streams[random_below(&run->kit.random, LANES)];
	while ((operation->created_stream && !checked->stream) ||
	       (operation->non_blocking && checked->kind != STREAM_NON_BLOCKING));
	return checked;
}

static void run_init(struct run *run, struct torture *torture, unsigned thread)
{
	const struct workload *w = &torture->workload;

	*run = (struct run){.kit = {.calls = torture->calls,
				    .step = workload_kernel(w, "step"),
				    .rotate = workload_kernel(w, "rotate"),
				    .dependent = dependent_kernel(),
				    .random = {w->seed + 1000003ull * thread},
				    .delay = (uint32_t)torture->delay}};
	for (unsigned i = 0; i < LANES; i++) {
		/* One of each default stream; the others in equal parts. */
		enum stream_kind kind = i == 0   ? STREAM_LEGACY
					: i == 1 ? STREAM_PER_THREAD
					: i % 2  ? STREAM_BLOCKING
						 : STREAM_NON_BLOCKING;

		checked_stream_init(&run->streams[i], &run->kit, i, kind);
	}
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct torture *torture = worker->torture;
	const struct workload *w = &torture->workload;
	cleanup(freep) struct run *run = workload_alloc(sizeof(*run));
	timer_t signals = NULL;
	CU(cuCtxSetCurrent(w->context));
	if (torture->storms)
		signals = signals_begin();
	run_init(run, torture, worker->number);
	pthread_barrier_wait(&torture->all_ready);
	for (; run->step < w->iterations && !workload_stopped(w); run->step++) {
		const struct operation *operation = pick_operation(&run->kit.random);
		struct checked_stream *checked = pick_stream(run, operation);

		if (torture->verbose)
			fprintf(stderr, "thread %u step %llu checked %u: %s\n", worker->number,
				(unsigned long long)run->step, checked->number, operation->name);
		operation->issue(run, checked);
	}
	run_check(run);
	worker->steps = run->step;
	/* No thread frees anything before all are done: freeing waits for the device. */
	pthread_barrier_wait(&torture->all_ready);
	for (unsigned i = 0; i < LANES; i++)
		checked_stream_deinit(&run->streams[i]);
	if (torture->storms)
		signals_end(signals);
	return NULL;
}

static uint64_t run_workers(struct torture *torture)
{
	struct worker workers[THREADS_MAX];
	unsigned n = (unsigned)torture->threads;
	uint64_t steps = 0;

	pthread_barrier_init(&torture->all_ready, NULL, n);
	for (unsigned i = 0; i < n; i++) {
		workers[i] = (struct worker){.torture = torture, .number = i};
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
			workload_fail("cannot start a thread");
	}
	if (torture->storms)
		storms_begin(&torture->workload);
	if (torture->leave_ms) {
		sleep_until_ns(now_ns() + torture->leave_ms * 1000000);
		exit(0);
	}
	for (unsigned i = 0; i < n; i++) {
		pthread_join(workers[i].thread, NULL);
		steps += workers[i].steps;
	}
	if (torture->storms)
		storms_end();
	pthread_barrier_destroy(&torture->all_ready);
	return steps;
}

int main(int argc, char **argv)
{
	struct torture torture = {.workload = {.seed = 1}};
	struct workload *w = &torture.workload;
	const struct workload_option own[] = {
		{"threads", OPTION_NUMBER, &torture.threads, "that drive streams"},
		{"delay", OPTION_NUMBER, &torture.delay, "longest kernel, in iterations"},
		{"storms", OPTION_FLAG, &torture.storms,
		 "signals, forks, and threads and contexts that end, meanwhile"},
		{"leave-ms", OPTION_NUMBER, &torture.leave_ms,
		 "exit after this time, in the middle"},
		{"verbose", OPTION_FLAG, &torture.verbose, "print every step"},
		{0},
	};

	workload_parse(w, argc, argv, "random operations in many streams; checks their order", own);
	torture.threads = workload_pick(w, torture.threads, 2, 4);
	torture.delay = workload_pick(w, torture.delay, 50, 100000);
	if (torture.threads > THREADS_MAX || torture.delay > UINT32_MAX - 1)
		workload_fail("--threads or --delay: out of range");
	if (!w->iterations)
		w->iterations = w->seconds > 0 || w->stop_file ? UINT64_MAX : w->gpu ? 5000 : 1000;
	fprintf(stderr, "stream-order: seed %llu\n", (unsigned long long)w->seed);
	workload_open(w, stream_order_ptx);
	stream_calls_init(torture.calls);

	workload_ready(w);
	uint64_t steps = run_workers(&torture);
	workload_close(w);
	printf("stream-order: ok, %llu operations in %llu threads, seed %llu\n",
	       (unsigned long long)steps, (unsigned long long)torture.threads,
	       (unsigned long long)w->seed);
	return 0;
}
