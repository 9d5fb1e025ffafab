/* Ops, their order, and the threads that run them. */
#include "simcuda/driver/exec.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void start_empty(struct op *op)
{
	op_done(op);
}

static const struct op_type empty_type = {.start = start_empty};

static const struct op_type *const types[WORK_KINDS] = {
	[WORK_EMPTY] = &empty_type,  [WORK_KERNEL] = &kernel_type, [WORK_COPY] = &copy_type,
	[WORK_SET] = &set_type,      [WORK_HOST] = &host_type,     [WORK_MEMOPS] = &memops_type,
	[WORK_RECORD] = &empty_type, [WORK_WAIT] = &empty_type,    [WORK_FREE] = &free_type,
	[WORK_ALLOC] = &empty_type,  [WORK_GRAPH] = &empty_type,
};

uint64_t time_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct op *op_new(struct work *work)
{
	struct op *op = calloc(1, sizeof(*op));

	if (!op) {
		work_deinit(work);
		return NULL;
	}
	op->work = *work;
	memset(work, 0, sizeof(*work));
	op->refs = 1;
	op->unmet = 1;
	return op;
}

struct op *op_ref(struct op *op)
{
	if (op)
		op->refs++;
	return op;
}

void op_unref(struct op *op)
{
	if (!op || --op->refs)
		return;
	work_deinit(&op->work);
	free(op->after);
	free(op);
}

void op_unrefp(struct op **op)
{
	op_unref(*op);
}

/* No memory for the edge: the order is lost, so the context executes nothing from here on. */
void op_after(struct op *op, struct op *earlier)
{
	if (!op || !earlier || earlier->done || earlier == op)
		return;
	if (earlier->n_after == earlier->room) {
		size_t room = earlier->room ? 2 * earlier->room : 4;
		struct op **after = realloc(earlier->after, room * sizeof(struct op *));

		if (!after) {
			context_fault(op->work.ctx, CUDA_ERROR_OUT_OF_MEMORY);
			return;
		}
		earlier->after = after;
		earlier->room = room;
	}
	earlier->after[earlier->n_after++] = op;
	op->unmet++;
}

void op_ready(struct op *op)
{
	op->queued = NULL;
	if (sim.ready_last)
		sim.ready_last->queued = op;
	else
		sim.ready_first = op;
	sim.ready_last = op;
}

/* A queue instead of recursion: an op that is done at once makes others ready. */
void ops_drain(void)
{
	if (sim.draining)
		return;
	sim.draining = true;
	while (sim.ready_first) {
		struct op *op = sim.ready_first;
		const struct op_type *type = types[op->work.kind];
		const struct context *ctx = op->work.ctx;

		sim.ready_first = op->queued;
		if (!sim.ready_first)
			sim.ready_last = NULL;
		if (op_parked(op))
			continue;
		op->started = true;
		if ((ctx->fault || ctx->dying) && !type->always)
			op_done(op);
		else
			type->start(op);
	}
	sim.draining = false;
}

void op_release(struct op *op)
{
	if (!--op->unmet) {
		op_ready(op);
		ops_drain();
	}
}

void op_submit(struct op *op)
{
	struct context *ctx = op->work.ctx;

	op_ref(op); /* the executor's, until it is done */
	op->sequence = ++ctx->sequence;
	op->prev = ctx->last;
	op->next = NULL;
	if (ctx->last)
		ctx->last->next = op;
	else
		ctx->first = op;
	ctx->last = op;

	op_release(op);
}

void op_done(struct op *op)
{
	struct context *ctx = op->work.ctx;

	if (op->prev)
		op->prev->next = op->next;
	else
		ctx->first = op->next;
	if (op->next)
		op->next->prev = op->prev;
	else
		ctx->last = op->prev;

	op->done = true;
	op->done_at = time_now();
	for (size_t i = 0; i < op->n_after; i++)
		if (!--op->after[i]->unmet)
			op_ready(op->after[i]);
	op->n_after = 0;
	if (types[op->work.kind]->ended)
		types[op->work.kind]->ended(op);
	pthread_cond_broadcast(&sim.done);
	op_unref(op);
	ops_drain();
}

void op_wait(struct op *op)
{
	cleanup(op_unrefp) struct op *held = op_ref(op);
	struct context *ctx;

	if (!held || held->done)
		return;
	ctx = held->work.ctx;
	ctx->sleepers++;
	while (!held->done)
		pthread_cond_wait(&sim.done, &sim.lock);
	if (!--ctx->sleepers && ctx->dying)
		pthread_cond_broadcast(&sim.done);
}

static void cancel_started(struct context *ctx)
{
	struct op *next;

	for (struct op *op = ctx->first; op; op = next) {
		next = op->next;
		if (op->started && types[op->work.kind]->cancel)
			types[op->work.kind]->cancel(op);
	}
}

void context_fault(struct context *ctx, CUresult error)
{
	bool draining = sim.draining;

	if (!ctx->fault)
		ctx->fault = error;
	__atomic_store_n(&ctx->stop, 1, __ATOMIC_RELAXED);
	sim.draining = true; /* only cancelled ops may leave the list */
	cancel_started(ctx);
	sim.draining = draining;
	ops_unpark();
	ops_drain();
}

/* Signals belong to the program's own threads. */
bool thread_start(void *(*run)(void *), void *data)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int r;

	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, &attributes, run, data);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return r == 0;
}

static void *worker_pool_run(void *data)
{
	struct worker_pool *pool = data;

	pthread_mutex_lock(&sim.lock);
	for (;;) {
		struct op *op = pool->first;

		if (!op) {
			pool->idle++;
			pthread_cond_wait(&pool->cond, &sim.lock);
			pool->idle--;
			continue;
		}
		pool->first = op->queued;
		if (!pool->first)
			pool->last = NULL;
		pthread_mutex_unlock(&sim.lock);
		types[op->work.kind]->run(op);
		pthread_mutex_lock(&sim.lock);
		op_done(op);
	}
	return NULL;
}

/* If no thread can be started, the caller does the work. */
void worker_pool_push(struct worker_pool *pool, struct op *op)
{
	if (!pool->idle && pool->threads < pool->max && thread_start(worker_pool_run, pool))
		pool->threads++;
	if (!pool->threads) {
		types[op->work.kind]->run(op);
		op_done(op);
		return;
	}
	op->queued = NULL;
	if (pool->last)
		pool->last->queued = op;
	else
		pool->first = op;
	pool->last = op;
	pthread_cond_signal(&pool->cond);
}
