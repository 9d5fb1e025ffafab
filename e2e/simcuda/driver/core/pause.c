/* Stopped channel groups. The machine pauses their blocks; what is not a block waits here before it
 * starts. Launches and other calls that only queue work return as always. */
#include "simcuda/driver/exec.h"

static struct {
	pthread_cond_t cond;
	struct op *first, *last; /* linked by queued */
	bool running;
} parked = {.cond = PTHREAD_COND_INITIALIZER};

void contexts_check(void)
{
	for (struct context *ctx = sim.contexts; ctx; ctx = ctx->next)
		if (!ctx->fault && !ctx->dying && machine_hit(&sim.machine, ctx->group))
			context_fault(ctx, machine_terminated(&sim.machine, ctx->group)
						   ? CUDA_ERROR_MPS_CLIENT_TERMINATED
						   : CUDA_ERROR_ILLEGAL_ADDRESS);
}

bool context_stopped(const struct context *ctx)
{
	return !ctx->fault && !ctx->dying && machine_stopped(&sim.machine, ctx->group);
}

void ops_unpark(void)
{
	struct op *next;

	for (struct op *op = parked.first; op; op = next) {
		next = op->queued;
		op_ready(op);
	}
	parked.first = parked.last = NULL;
}

/* Those whose group is still stopped park again. */
static void *park_run(void *data)
{
	(void)data;
	pthread_mutex_lock(&sim.lock);
	for (;;) {
		if (!parked.first) {
			pthread_cond_wait(&parked.cond, &sim.lock);
			continue;
		}
		uint32_t group = parked.first->work.ctx->group;

		pthread_mutex_unlock(&sim.lock);
		machine_await(&sim.machine, group);
		pthread_mutex_lock(&sim.lock);
		contexts_check();
		ops_unpark();
		ops_drain();
	}
	return NULL;
}

bool op_parked(struct op *op)
{
	if (!context_stopped(op->work.ctx))
		return false;
	if (!parked.running)
		parked.running = thread_start(park_run, NULL);
	if (!parked.running)
		return false;
	op->queued = NULL;
	if (parked.last)
		parked.last->queued = op;
	else
		parked.first = op;
	parked.last = op;
	pthread_cond_signal(&parked.cond);
	return true;
}

CUresult context_reach(struct context *ctx)
{
	struct work work = {.kind = WORK_EMPTY, .ctx = ctx};
	cleanup(op_unrefp) struct op *op = NULL;

	if (!context_stopped(ctx))
		return CUDA_SUCCESS;
	op = op_new(&work);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op_submit(op);
	op_wait(op);
	return context_lives(ctx) ? ctx->fault : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}
