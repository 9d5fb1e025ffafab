/* Events: a mark in a stream that remembers when it was reached. */
#include "simcuda/driver/exec.h"

#include <stdlib.h>

void event_free(struct event *e)
{
	if (e->prev)
		e->prev->next = e->next;
	else
		e->ctx->events = e->next;
	if (e->next)
		e->next->prev = e->prev;
	handle_free(e->handle);
	capture_forget_event(e);
	op_unref(e->op);
	free(e);
}

static CUresult get(struct event **out, CUevent handle)
{
	*out = handle_get(HANDLE_EVENT, handle);
	return *out ? (*out)->ctx->fault : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
	API_CONTEXT(ctx);
	struct event *e;

	if (!out || flags & ~(unsigned)(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING |
					CU_EVENT_INTERPROCESS))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_EVENT_INTERPROCESS)
		return CUDA_ERROR_NOT_SUPPORTED;
	e = calloc(1, sizeof(*e));
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->handle = handle_new(HANDLE_EVENT, e);
	if (!e->handle) {
		free(e);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	e->ctx = ctx;
	e->flags = flags;
	e->next = ctx->events;
	if (e->next)
		e->next->prev = e;
	ctx->events = e;
	*out = e->handle;
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent handle)
{
	API_ENTER();
	struct event *e = handle_get(HANDLE_EVENT, handle);

	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	event_free(e);
	return CUDA_SUCCESS;
}

CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream, unsigned int flags)
{
	API_ENTER();
	struct event *e;
	struct stream *s;
	struct op *op = NULL;
	struct work work = {.kind = WORK_EMPTY};

	if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(get(&e, handle));
	RETURN_IF(stream_get(&s, stream));
	if (e->ctx != s->ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	if (s->capture && !flags)
		return capture_record(s, e);
	if (s->capture)
		work = (struct work){.kind = WORK_RECORD, .event = handle};
	RETURN_IF(stream_submit(s, &work, &op));
	if (!op)
		return CUDA_SUCCESS;
	capture_forget_event(e);
	op_unref(e->op);
	e->op = op;
	return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent handle, CUstream stream)
{
	return cuEventRecordWithFlags(handle, stream, 0);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent handle, unsigned int flags)
{
	API_ENTER();
	struct event *e;
	struct stream *s;
	struct op *op;
	struct work work = {.kind = WORK_EMPTY};

	if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(get(&e, handle));
	RETURN_IF(stream_get(&s, stream));
	if (s->capture && flags) {
		work = (struct work){.kind = WORK_WAIT, .event = handle};
		return stream_submit(s, &work, NULL);
	}
	if (s->capture || e->capture)
		return capture_wait(s, e);
	if (s->legacy)
		RETURN_IF(capture_legacy(s->ctx));
	work.ctx = s->ctx;
	op = op_new(&work);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stream_order(s, op);
	op_after(op, e->op);
	stream_append(s, op);
	op_submit(op);
	op_unref(op);
	return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent handle)
{
	API_ENTER();
	struct event *e;

	RETURN_IF(get(&e, handle));
	if (e->capture)
		return CUDA_ERROR_CAPTURED_EVENT;
	RETURN_IF(capture_allows());
	return !e->op || e->op->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent handle)
{
	API_ENTER();
	struct event *e;
	struct context *ctx;

	RETURN_IF(get(&e, handle));
	if (e->capture)
		return CUDA_ERROR_CAPTURED_EVENT;
	RETURN_IF(capture_allows());
	if (!e->op || e->op->done)
		return CUDA_SUCCESS;
	ctx = e->op->work.ctx;
	op_wait(e->op);
	return ctx->fault;
}

CUresult cuEventElapsedTime_v2(float *out, CUevent start, CUevent end)
{
	API_ENTER();
	struct event *a, *b;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(get(&a, start));
	RETURN_IF(get(&b, end));
	if ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING || !a->op || !b->op)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!a->op->done || !b->op->done)
		return CUDA_ERROR_NOT_READY;
	*out = (float)((double)(int64_t)(b->op->done_at - a->op->done_at) / 1e6);
	return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *out, CUevent start, CUevent end)
{
	return cuEventElapsedTime_v2(out, start, end);
}
