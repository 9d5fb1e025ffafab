/* Streams and the order of their ops.
 *
 * An op comes after the previous op of its stream. An op in the legacy stream also comes after all
 * earlier ops in blocking streams of its context. An op in a blocking stream also comes after the
 * last op of the legacy stream. The per-thread default stream is a blocking stream.
 */
#include "simcuda/driver/exec.h"

#include <stdlib.h>
#include <string.h>

bool stream_blocking(const struct stream *s)
{
	return !s->legacy && !(s->flags & CU_STREAM_NON_BLOCKING);
}

void stream_init(struct stream *s, struct context *ctx, unsigned flags)
{
	memset(s, 0, sizeof(*s));
	s->ctx = ctx;
	s->flags = flags;
	s->id = ++sim.next_id;
}

void stream_deinit(struct stream *s)
{
	capture_forget_stream(s);
	free(s->head_handles);
	s->head_handles = NULL;
	op_unref(s->tail);
	s->tail = NULL;
}

/* Frees destroyed streams whose work is done. */
static void sweep(struct context *ctx)
{
	struct stream **at = &ctx->streams;

	while (*at) {
		struct stream *s = *at;

		if (s->zombie && (!s->tail || s->tail->done)) {
			*at = s->next;
			stream_deinit(s);
			free(s);
		} else {
			at = &s->next;
		}
	}
}

static struct stream *create(struct context *ctx, unsigned flags, int priority)
{
	struct stream *s = malloc(sizeof(*s));

	if (!s)
		return NULL;
	sweep(ctx);
	stream_init(s, ctx, flags);
	s->priority = priority;
	s->next = ctx->streams;
	ctx->streams = s;
	return s;
}

static CUresult per_thread_stream(struct stream **out, struct context *ctx)
{
	const void *self = thread_self();

	for (struct stream *s = ctx->streams; s; s = s->next) {
		if (s->thread == self && !s->zombie) {
			*out = s;
			return CUDA_SUCCESS;
		}
	}
	*out = create(ctx, 0, LEAST_PRIORITY);
	if (!*out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*out)->thread = self;
	return CUDA_SUCCESS;
}

void stream_thread_exit(const void *thread)
{
	for (struct context *ctx = sim.contexts; ctx; ctx = ctx->next)
		for (struct stream *s = ctx->streams; s; s = s->next)
			if (s->thread == thread)
				s->zombie = true;
}

CUresult stream_get(struct stream **out, CUstream handle)
{
	struct context *ctx;

	if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
		*out = handle_get(HANDLE_STREAM, handle);
		return !*out ? CUDA_ERROR_INVALID_HANDLE : (*out)->ctx->fault;
	}
	RETURN_IF(context_current(&ctx));
	if (handle == CU_STREAM_PER_THREAD)
		return per_thread_stream(out, ctx);
	*out = &ctx->legacy;
	return CUDA_SUCCESS;
}

void stream_order(struct stream *s, struct op *op)
{
	if (op->work.kind != WORK_KERNEL || !op->work.kernel.overlaps || s->legacy ||
	    !kernel_overlap(op, s->tail))
		op_after(op, s->tail);
	if (s->legacy) {
		for (struct stream *t = s->ctx->streams; t; t = t->next)
			if (stream_blocking(t))
				op_after(op, t->tail);
	} else if (stream_blocking(s)) {
		op_after(op, s->ctx->legacy.tail);
	}
}

void stream_append(struct stream *s, struct op *op)
{
	op_unref(s->tail);
	s->tail = op_ref(op);
}

CUresult stream_submit(struct stream *s, struct work *work, struct op **out)
{
	struct op *op;

	if (s->capture)
		return capture_add(s, work);
	if (stream_blocking(s) || s->legacy) {
		CUresult r = s->legacy ? capture_legacy(s->ctx) : CUDA_SUCCESS;

		if (r) {
			work_deinit(work);
			return r;
		}
	}
	work->ctx = s->ctx;
	op = op_new(work);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stream_order(s, op);
	stream_append(s, op);
	op_submit(op);
	if (out)
		*out = op;
	else
		op_unref(op);
	return CUDA_SUCCESS;
}

static bool tail_done(const struct stream *s)
{
	return !s->tail || s->tail->done;
}

bool stream_idle(const struct stream *s)
{
	if (!tail_done(s))
		return false;
	if (s->legacy)
		for (const struct stream *t = s->ctx->streams; t; t = t->next)
			if (stream_blocking(t) && !tail_done(t))
				return false;
	return true;
}

/* Another thread may destroy the stream meanwhile, so only ops are used while waiting. */
CUresult stream_wait(struct stream *s)
{
	cleanup(op_unrefp) struct op *mark = NULL;
	struct context *ctx = s->ctx;
	struct work nothing = {.kind = WORK_EMPTY, .ctx = ctx};

	if (!s->legacy) {
		mark = op_ref(s->tail);
	} else if (!stream_idle(s)) {
		mark = op_new(&nothing);
		if (!mark)
			return CUDA_ERROR_OUT_OF_MEMORY;
		stream_order(s, mark);
		op_submit(mark);
	}
	op_wait(mark);
	return ctx->fault;
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority)
{
	API_CONTEXT(ctx);
	struct stream *s;

	if (!out || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	if (priority > LEAST_PRIORITY)
		priority = LEAST_PRIORITY;
	if (priority < GREATEST_PRIORITY)
		priority = GREATEST_PRIORITY;
	s = create(ctx, flags, priority);
	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	s->handle = handle_new(HANDLE_STREAM, s);
	if (!s->handle) {
		s->zombie = true;
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = s->handle;
	return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *out, unsigned int flags)
{
	return cuStreamCreateWithPriority(out, flags, LEAST_PRIORITY);
}

/* Returns at once; queued work is still done. */
CUresult cuStreamDestroy_v2(CUstream handle)
{
	API_ENTER();
	struct stream *s = handle_get(HANDLE_STREAM, handle);

	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	handle_free(handle);
	capture_forget_stream(s);
	s->handle = NULL;
	s->zombie = true;
	sweep(s->ctx);
	return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream handle)
{
	API_ENTER();
	struct stream *s;

	RETURN_IF(stream_get(&s, handle));
	RETURN_IF(capture_stream_idle(s));
	return stream_idle(s) ? s->ctx->fault : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamSynchronize(CUstream handle)
{
	API_ENTER();
	struct stream *s;

	RETURN_IF(stream_get(&s, handle));
	RETURN_IF(capture_stream_idle(s));
	return stream_wait(s);
}

API_TELLS(cuStreamGetPriority, (CUstream handle, OUT(int)), stream, s, stream_get(&s, handle),
	  s->priority)
API_TELLS(cuStreamGetFlags, (CUstream handle, OUT(unsigned int)), stream, s, stream_get(&s, handle),
	  s->flags)
API_TELLS(cuStreamGetId, (CUstream handle, OUT(unsigned long long)), stream, s,
	  stream_get(&s, handle), s->id)
API_TELLS(cuStreamGetCtx, (CUstream handle, OUT(CUcontext)), stream, s, stream_get(&s, handle),
	  s->ctx->handle)

CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *ctx, CUgreenCtx *green)
{
	RETURN_IF(cuStreamGetCtx(handle, ctx));
	if (green)
		*green = NULL;
	return CUDA_SUCCESS;
}

API_TELLS(cuStreamGetDevice, (CUstream handle, OUT(CUdevice)), stream, s, stream_get(&s, handle),
	  (CUdevice)s->ctx->device->index)

CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue *value)
{
	API_ENTER();
	struct stream *s;

	RETURN_IF(stream_get(&s, handle));
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		value->priority = s->priority;
	else if (attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
		value->syncPolicy = CU_SYNC_POLICY_AUTO;
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute,
			      const CUstreamAttrValue *value)
{
	API_ENTER();
	struct stream *s;

	RETURN_IF(stream_get(&s, handle));
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		s->priority = value->priority;
	else if (attribute != CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY &&
		 attribute != CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuStreamCopyAttributes(CUstream to, CUstream from)
{
	API_ENTER();
	struct stream *a, *b;

	RETURN_IF(stream_get(&a, to));
	RETURN_IF(stream_get(&b, from));
	a->priority = b->priority;
	return CUDA_SUCCESS;
}
