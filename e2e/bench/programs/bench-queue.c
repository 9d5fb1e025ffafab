/* How soon a stream with 64 kernels queued behind gates stands still: from a plain store to the
 * demand word until the running launch has reported that it left, and no other has begun. XSched's
 * experiment: few blocks that watch the clock, for a time or without end.
 *
 * Each launch has a gate in front of it and a wait for its `done` behind it, as libweir's have; a
 * launch that left is continued from another stream. Run it without libweir. Prints one line of
 * JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/base.h>
#include <weir/tickets.h>

#include "object.h"
#include "samples.h"
#include "workload.h"

extern const char spin_clock_ptx[];

#define QUEUED      64u
#define ENDLESS_NS  (UINT64_MAX / 2)
#define START_NS    50000u   /* after which a launch surely runs */
#define MOMENT_NS   1000000u /* the demand comes within this time */
#define QUIET_NS    300000u  /* without a report: nothing runs */
#define PATIENCE_NS 500000000u

/* Shared by host and GPU. */
struct shared {
	volatile uint64_t demand;
	volatile struct weir_report report;
};

struct queue {
	CUstream stream, carry_on;
	struct object object;
	uint32_t blocks, threads;
	uint64_t ns; /* for which a block watches the clock */
	CUdeviceptr counts, words, demand;
	struct shared *shared;
	struct weir_persistent hidden; /* of the launch queued last */
	struct samples delays;
	unsigned idle;    /* demands while nothing ran */
	uint32_t carried; /* launches that left and were continued */
};

static void queue_init(struct queue *queue, const struct workload *w, enum weir_form form)
{
	size_t counts = (size_t)queue->blocks * queue->threads * sizeof(uint32_t);
	CUdeviceptr shared;

	object_load(&queue->object, spin_clock_ptx, "spin_clock", form, w->device);
	CU(cuStreamCreate(&queue->stream, CU_STREAM_NON_BLOCKING));
	CU(cuStreamCreate(&queue->carry_on, CU_STREAM_NON_BLOCKING));
	CU(cuMemHostAlloc((void **)&queue->shared, sizeof(*queue->shared),
			  CU_MEMHOSTALLOC_DEVICEMAP));
	memset(queue->shared, 0, sizeof(*queue->shared));
	CU(cuMemHostGetDevicePointer(&shared, queue->shared, 0));
	queue->demand = shared + offsetof(struct shared, demand);
	CU(cuMemAlloc(&queue->counts, counts));
	CU(cuMemsetD8(queue->counts, 0, counts));
	CU(cuMemAlloc(&queue->words, sizeof(struct weir_words)));
	CU(cuMemsetD8(queue->words, 0, sizeof(struct weir_words)));
	CU(cuCtxSynchronize());
	queue->hidden = (struct weir_persistent){
		.words = queue->words,
		.demand = queue->demand,
		.grid = {queue->blocks, 1, 1},
		.blocks = queue->blocks,
		.report = shared + offsetof(struct shared, report),
		.look = WEIR_LOOK,
		.lead = WEIR_LEAD,
	};
	weir_cut(&queue->hidden, 1, queue->blocks, 1, WEIR_TICKETS_IN_ROW);
	object_saves(&queue->object, &queue->hidden, queue->blocks, queue->threads);
}

/* There are few blocks, so each has a worker. */
static void launch(struct queue *queue, CUstream stream)
{
	void *parameters[] = {&queue->counts, &queue->ns, &queue->hidden};

	CU(cuLaunchKernel(queue->object.function, queue->blocks, 1, 1, queue->threads, 1, 1, 0,
			  stream, parameters, NULL));
}

/* The serial of the last launch that finished, and how many left early so far. */
static uint32_t finished(uint64_t report)
{
	return (uint32_t)report;
}

static uint32_t evicted(uint64_t report)
{
	return (uint32_t)(report >> 32);
}

/* Fills the queue again. */
static void fill(struct queue *queue)
{
	while (queue->hidden.serial - finished(queue->shared->report.launch) < QUEUED) {
		queue->hidden.serial++;
		CU(cuStreamWaitValue64(queue->stream, queue->demand, 0, CU_STREAM_WAIT_VALUE_EQ));
		launch(queue, queue->stream);
		CU(cuStreamWaitValue32(queue->stream,
				       queue->words + offsetof(struct weir_words, done),
				       queue->hidden.serial, CU_STREAM_WAIT_VALUE_GEQ));
	}
}

static void spin_until(uint64_t when)
{
	while (now_ns() < when)
		;
}

/* Sets demand; returns ns until the last report, 0: there was none. */
static uint64_t ask(struct queue *queue)
{
	uint64_t seen = queue->shared->report.launch, asked, now, last;
	/* A launch that does not leave early reports when it is over. */
	uint64_t patience = queue->ns == ENDLESS_NS ? PATIENCE_NS : queue->ns + 10 * QUIET_NS;

	last = asked = now_ns();
	queue->shared->demand = 1;
	do {
		now = now_ns();
		if (queue->shared->report.launch != seen) {
			seen = queue->shared->report.launch;
			last = now;
		}
	} while (now - last < (last == asked ? patience : QUIET_NS));
	return last - asked;
}

/* The launch that left is the one behind the last that finished. */
static void carry_on(struct queue *queue)
{
	uint64_t report = queue->shared->report.launch;
	struct queue next = *queue;

	if (evicted(report) == queue->carried)
		return;
	queue->carried++;
	next.hidden.serial = finished(report) + 1;
	launch(&next, queue->carry_on);
}

static void trial(struct queue *queue, struct random *random)
{
	uint64_t ns;

	fill(queue);
	spin_until(now_ns() + START_NS + random_below(random, MOMENT_NS));
	ns = ask(queue);
	if (ns)
		samples_add(&queue->delays, (double)ns / 1e3);
	else
		queue->idle++;
	queue->shared->demand = 0;
	carry_on(queue);
}

/* Each launch went through each thread once. */
static void check(struct queue *queue)
{
	size_t n = (size_t)queue->blocks * queue->threads;
	cleanup(freep) uint32_t *counts = workload_alloc(n * sizeof(*counts));

	while (finished(queue->shared->report.launch) != queue->hidden.serial)
		carry_on(queue);
	CU(cuStreamSynchronize(queue->stream));
	CU(cuMemcpyDtoH(counts, queue->counts, n * sizeof(*counts)));
	for (size_t i = 0; i < n; i++)
		if (counts[i] != queue->hidden.serial)
			workload_fail("wrong result: thread %zu counted %u launches, not %u", i,
				      counts[i], queue->hidden.serial);
}

static enum weir_form form_named(const char *name)
{
	for (enum weir_form form = WEIR_PERSISTENT; form < WEIR_FORM_COUNT; form++)
		if (strcmp(name, weir_form_name(form)) == 0)
			return form;
	fprintf(stderr, "bench-queue: no form '%s' that can leave\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	const char *form = "resumable";
	uint64_t trials = 0, blocks = 0, period = 8000;
	double length_us = 0;
	const struct workload_option own[] = {
		{"form", OPTION_TEXT, &form, "persistent or resumable (default)"},
		{"length-us", OPTION_REAL, &length_us, "of a kernel; default: without end"},
		{"blocks", OPTION_NUMBER, &blocks, "of a kernel"},
		{"trials", OPTION_NUMBER, &trials, "evictions"},
		{"period-ns", OPTION_NUMBER, &period, "between two looks at the demand"},
		{0},
	};
	struct queue queue = {0};

	workload_parse(&w, argc, argv, "how soon a full queue of kernels stands still", own);
	/* A launch is carried on from another stream, so the two must not share a channel. */
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
	workload_open(&w, NULL);
	queue.blocks = (uint32_t)workload_pick(&w, blocks, 4, 64);
	queue.threads = 64;
	queue.ns = length_us > 0 ? (uint64_t)(length_us * 1e3) : ENDLESS_NS;
	queue_init(&queue, &w, form_named(form));
	queue.hidden.period = (uint32_t)period;
	trials = workload_pick(&w, trials, 10, 300);

	struct random random = {w.seed};
	workload_ready(&w);
	for (uint64_t i = 0; i < trials; i++)
		trial(&queue, &random);
	if (queue.ns != ENDLESS_NS)
		check(&queue);
	else if (!queue.delays.n)
		workload_fail("an endless kernel never left");
	samples_sort(&queue.delays);
	printf("{\"program\": \"bench-queue\", \"form\": \"%s\", \"length_us\": %.0f, "
	       "\"blocks\": %u, \"queued\": %u, \"evicted\": %u, \"idle\": %u, "
	       "\"p50\": %.1f, \"p99\": %.1f, \"max\": %.1f}\n",
	       form, length_us, queue.blocks, QUEUED, evicted(queue.shared->report.launch),
	       queue.idle, samples_quantile(&queue.delays, 0.5),
	       samples_quantile(&queue.delays, 0.99), samples_quantile(&queue.delays, 1));
	fflush(stdout);
	/* What is queued, maybe without end, goes with the process. */
	_exit(0);
}
