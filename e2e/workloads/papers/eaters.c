/* GPU eaters: the host's side. It gives the kernels their work and tells them to stop. They have as
 * many blocks as the GPU has SMs, so that all run at once. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/base.h>

#include "arithmetic.h"
#include "eaters.h"
#include "papers.h"

#define PATIENCE_NS 120000000000u
#define ROOTS       4 /* tasks at the beginning */

struct eater {
	uint32_t blocks;
	struct buffer *stop, *progress;
	uint32_t total;
	struct buffer *queue, *boxes, *words, *generations;
};

static struct eater *eater_new(struct plan *plan)
{
	struct eater *eater = workload_alloc(sizeof(*eater));

	*eater = (struct eater){.blocks = (uint32_t)plan->workload->sm_count,
				.stop = plan_mapped(plan, sizeof(uint32_t)),
				.progress = plan_mapped(plan, sizeof(uint32_t))};
	return plan->state = eater;
}

static struct shape eater_shape(const struct eater *eater)
{
	return (struct shape){{eater->blocks, 1, 1}, {EATER_THREADS, 1, 1}, 0};
}

static void stop(const struct eater *eater)
{
	__atomic_store_n((uint32_t *)eater->stop->result, 1, __ATOMIC_SEQ_CST);
}

/* Until @word is @value. Fails when the kernel has ended, or after a long time. */
static void wait_for(const struct plan *plan, const uint32_t *word, uint32_t value)
{
	const struct timespec pause = {0, 20000};

	for (uint64_t began = now_ns(); __atomic_load_n(word, __ATOMIC_ACQUIRE) != value;) {
		CUresult state = cuStreamQuery(plan->stream);

		if (state != CUDA_ERROR_NOT_READY &&
		    __atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
			workload_fail("%s: the kernel has ended (%d)", plan->benchmark->name,
				      (int)state);
		if (now_ns() - began > PATIENCE_NS)
			workload_fail("%s: no answer", plan->benchmark->name);
		if (!plan->workload->gpu || now_ns() - began > 1000000)
			nanosleep(&pause, NULL);
	}
}

static uint32_t steps(uint32_t x, unsigned count)
{
	while (count--)
		x = arith_step(x);
	return x;
}

/* Adds to @results what task @value and its children produce. */
static void do_task(uint32_t *results, uint32_t value, uint32_t depth)
{
	for (uint32_t i = 0; i < EATER_THREADS; i++)
		results[i] ^= steps(value + i, QUEUE_STEPS);
	for (uint32_t child = 0; child < 2 && depth > 1; child++)
		do_task(results, arith_step(value + child), depth - 1);
}

void plan_eater_queue(struct plan *plan, uint32_t depth)
{
	struct eater *eater = eater_new(plan);
	uint32_t total = ROOTS * ((1u << depth) - 1);
	struct buffer *queue = plan_buffer(plan, sizeof(struct queue));
	struct buffer *tasks = plan_buffer(plan, total * sizeof(uint64_t));
	struct buffer *results = plan_buffer(plan, EATER_THREADS * sizeof(uint32_t));
	struct queue *start = buffer_zeros(queue);
	uint64_t *task = buffer_zeros(tasks);
	uint32_t *want;

	eater->total = total;
	eater->queue = queue;
	buffer_keep(queue);
	buffer_zeros(results);
	want = memset(buffer_want(results), 0, results->bytes);
	start->tail = ROOTS;
	for (unsigned i = 0; i < ROOTS; i++) {
		uint32_t value = (uint32_t)random_next(&plan->random);

		task[i] = (uint64_t)depth << 32 | value;
		do_task(want, value, depth);
	}
	plan_launch(plan, "eater_queue", eater_shape(eater), ARGUMENT(queue->device),
		    ARGUMENT(tasks->device), ARGUMENT(results->device), ARGUMENT(total),
		    ARGUMENT(eater->stop->device), ARGUMENT(eater->progress->device));
}

void meanwhile_eater_queue(struct plan *plan)
{
	const struct eater *eater = plan->state;

	wait_for(plan, eater->progress->result, eater->total);
	stop(eater);
}

void judge_eater_queue(struct plan *plan)
{
	const struct eater *eater = plan->state;
	const struct queue *queue = eater->queue->result;

	if (queue->tail != eater->total || queue->done != eater->total)
		workload_fail("work-queue: wrong result: %u tasks, %u done, not %u", queue->tail,
			      queue->done, eater->total);
}

void plan_eater_server(struct plan *plan, uint32_t requests)
{
	struct eater *eater = eater_new(plan);

	eater->total = requests;
	eater->boxes = plan_mapped(plan, eater->blocks * sizeof(struct mailbox));
	plan_launch(plan, "eater_server", eater_shape(eater), ARGUMENT(eater->boxes->device),
		    ARGUMENT(eater->stop->device));
}

static uint32_t fill_request(struct random *random, struct mailbox *box)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < PAYLOAD; i++) {
		box->payload[i] = (uint32_t)random_next(random);
		sum += steps(box->payload[i], SERVER_STEPS);
	}
	return sum;
}

/* A request to every block, then all the answers, and again. */
void meanwhile_eater_server(struct plan *plan)
{
	const struct eater *eater = plan->state;
	struct mailbox *boxes = eater->boxes->result;
	cleanup(freep) uint32_t *want = workload_alloc(eater->blocks * sizeof(*want));

	for (uint32_t number = 1; number <= eater->total; number++) {
		for (uint32_t i = 0; i < eater->blocks; i++) {
			want[i] = fill_request(&plan->random, &boxes[i]);
			__atomic_store_n(&boxes[i].request, number, __ATOMIC_RELEASE);
		}
		for (uint32_t i = 0; i < eater->blocks; i++) {
			wait_for(plan, &boxes[i].answer, number);
			if (boxes[i].result != want[i])
				workload_fail("polling-server: wrong result: answer %u of block %u "
					      "is %#x, "
					      "not %#x; seed %llu",
					      number, i, boxes[i].result, want[i],
					      (unsigned long long)plan->workload->seed);
		}
	}
	stop(eater);
}

/* No block answered more than it was asked. */
void judge_eater_server(struct plan *plan)
{
	const struct eater *eater = plan->state;
	const struct mailbox *boxes = eater->boxes->result;

	for (uint32_t i = 0; i < eater->blocks; i++)
		if (boxes[i].answer != eater->total)
			workload_fail(
				"polling-server: wrong result: block %u gave %u answers, not %u", i,
				boxes[i].answer, eater->total);
}

void plan_eater_simulation(struct plan *plan, uint32_t milliseconds)
{
	struct eater *eater = eater_new(plan);
	uint32_t n = eater->blocks * EATER_THREADS;

	eater->total = milliseconds;
	eater->words = plan_buffer(plan, n * sizeof(uint32_t));
	eater->generations = plan_buffer(plan, eater->blocks * sizeof(uint64_t));
	uint32_t *word = buffer_start(eater->words);
	for (uint32_t i = 0; i < n; i++)
		word[i] = (uint32_t)random_next(&plan->random);
	buffer_keep(eater->words);
	buffer_keep(eater->generations);
	plan_launch(plan, "eater_simulation", eater_shape(eater), ARGUMENT(eater->words->device),
		    ARGUMENT(eater->generations->device), ARGUMENT(eater->stop->device));
}

void meanwhile_eater_simulation(struct plan *plan)
{
	const struct eater *eater = plan->state;

	sleep_until_ns(now_ns() + eater->total * (uint64_t)1000000);
	if (cuStreamQuery(plan->stream) != CUDA_ERROR_NOT_READY)
		workload_fail("endless-simulation: it has ended");
	stop(eater);
}

/* @count steps from @x, by doubling: a step is x * multiply + add, and so are two. */
static uint32_t jump(uint32_t x, uint64_t count)
{
	uint32_t multiply = 1664525u, add = 1013904223u;

	for (; count; count /= 2) {
		if (count % 2)
			x = x * multiply + add;
		add = add * multiply + add;
		multiply *= multiply;
	}
	return x;
}

void judge_eater_simulation(struct plan *plan)
{
	const struct eater *eater = plan->state;
	const uint32_t *start = eater->words->input, *word = eater->words->result;
	const uint64_t *generations = eater->generations->result;

	for (uint32_t i = 0; i < eater->blocks * EATER_THREADS; i++) {
		uint64_t count = generations[i / EATER_THREADS];
		uint32_t from =
			i / EATER_THREADS * EATER_THREADS + (uint32_t)((i + count) % EATER_THREADS);
		uint32_t want = jump(start[from], count * SIMULATION_PERIOD);

		if (word[i] != want)
			workload_fail("endless-simulation: wrong result: word %u is %#x, not %#x, "
				      "after %llu generations; seed %llu",
				      i, word[i], want, (unsigned long long)count,
				      (unsigned long long)plan->workload->seed);
	}
}
