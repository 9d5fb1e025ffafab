/* Host functions: one thread runs them in the order in which they become ready. */
#include "simcuda/driver/exec.h"

static void start_host(struct op *op)
{
	worker_pool_push(&sim.hosts, op);
}

/* After an error, old-style callbacks are called with it; host functions are skipped. */
static void run_host(struct op *op)
{
	if (op->work.host.callback)
		op->work.host.callback(op->work.host.stream, op->work.ctx->fault,
				       op->work.host.data);
	else
		op->work.host.function(op->work.host.data);
}

const struct op_type host_type = {.start = start_host, .run = run_host};

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
	API_ENTER();
	struct stream *s;
	struct work work = {.kind = WORK_HOST, .host = {.function = function, .data = data}};

	RETURN_IF(stream_get(&s, stream));
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	return stream_submit(s, &work, NULL);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data,
			     unsigned int flags)
{
	API_ENTER();
	struct stream *s;
	struct work work = {.kind = WORK_HOST,
			    .host = {.callback = callback, .stream = stream, .data = data}};

	RETURN_IF(stream_get(&s, stream));
	if (!callback || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->capture)
		return capture_stream_idle(s); /* not allowed: as if it asked for the state */
	return stream_submit(s, &work, NULL);
}
