/* Contexts: primary and created ones, the stack of each thread, and their end. */
#include "simcuda/driver/exec.h"

#include <stdlib.h>

#define STACK_DEPTH 64u

struct thread {
	CUcontext stack[STACK_DEPTH];
	size_t depth;
	CUstreamCaptureMode capture_mode;
};

static __thread struct thread self;
static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

static void thread_exit(void *name)
{
	if (atomic_load(&sim.state) != SIM_READY)
		return;
	pthread_mutex_lock(&sim.lock);
	stream_thread_exit(name);
	pthread_mutex_unlock(&sim.lock);
}

static void make_key(void)
{
	pthread_key_create(&exit_key, thread_exit);
}

const void *thread_self(void)
{
	pthread_once(&exit_once, make_key);
	pthread_setspecific(exit_key, &self);
	return &self;
}

CUstreamCaptureMode *thread_capture_mode(void)
{
	return &self.capture_mode;
}

CUresult device_get(struct device **out, CUdevice dev)
{
	if (dev < 0 || (unsigned)dev >= sim.n_devices)
		return CUDA_ERROR_INVALID_DEVICE;
	*out = &sim.devices[dev];
	return CUDA_SUCCESS;
}

CUresult context_get(struct context **out, CUcontext handle)
{
	*out = handle_get(HANDLE_CONTEXT, handle);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult context_any(struct context **out)
{
	if (!self.depth || !self.stack[self.depth - 1])
		return CUDA_ERROR_INVALID_CONTEXT;
	*out = handle_get(HANDLE_CONTEXT, self.stack[self.depth - 1]);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult context_given(struct context **out, CUcontext handle)
{
	return handle ? context_get(out, handle) : context_any(out);
}

CUresult context_current(struct context **out)
{
	RETURN_IF(context_any(out));
	contexts_check();
	return (*out)->fault;
}

static CUresult create(struct context **out, struct device *d, unsigned flags)
{
	struct context *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ctx->handle = handle_new(HANDLE_CONTEXT, ctx);
	if (!ctx->handle) {
		free(ctx);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	ctx->id = ++sim.next_id;
	ctx->device = d;
	ctx->flags = flags;
	limits_init(ctx->limits);
	stream_init(&ctx->legacy, ctx, 0);
	ctx->legacy.legacy = true;
	ctx->next = sim.contexts;
	sim.contexts = ctx;
	machine_touch(&sim.machine, d->gpu);
	channels_new(ctx);
	*out = ctx;
	return CUDA_SUCCESS;
}

static void unlink_context(struct context *ctx)
{
	struct context **at = &sim.contexts;

	while (*at != ctx)
		at = &(*at)->next;
	*at = ctx->next;
}

static void free_streams(struct context *ctx)
{
	while (ctx->streams) {
		struct stream *s = ctx->streams;

		ctx->streams = s->next;
		handle_free(s->handle);
		stream_deinit(s);
		free(s);
	}
	stream_deinit(&ctx->legacy);
}

/* Cancels work that has not started and waits for the rest. */
static void destroy(struct context *ctx)
{
	handle_free(ctx->handle);
	ctx->dying = true;
	context_fault(ctx, CUDA_ERROR_CONTEXT_IS_DESTROYED);
	while (ctx->first || ctx->sleepers)
		pthread_cond_wait(&sim.done, &sim.lock);
	unlink_context(ctx);
	free_streams(ctx);
	while (ctx->events)
		event_free(ctx->events);
	while (ctx->modules)
		module_unload(ctx->modules);
	range_free_context(ctx);
	channels_free(ctx);
	machine_refund(&sim.machine, ctx->device->gpu, ctx->limits_charge);
	free(ctx);
}

bool context_lives(const struct context *ctx)
{
	for (const struct context *c = sim.contexts; c; c = c->next)
		if (c == ctx)
			return !c->dying;
	return false;
}

/* Waits for what was submitted before this call, not for later work of other threads. */
CUresult context_wait(struct context *ctx)
{
	uint64_t last = ctx->sequence;
	CUresult r;

	ctx->sleepers++;
	while (ctx->first && ctx->first->sequence <= last)
		pthread_cond_wait(&sim.done, &sim.lock);
	r = ctx->fault;
	if (!--ctx->sleepers && ctx->dying)
		pthread_cond_broadcast(&sim.done);
	return r;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice dev)
{
	API_ENTER();
	struct device *d;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(device_get(&d, dev));
	if (!d->primary) {
		RETURN_IF(create(&d->primary, d, d->primary_flags));
		d->primary->primary = true;
	}
	d->primary_refs++;
	*out = d->primary->handle;
	return CUDA_SUCCESS;
}

static void end_primary(struct device *d)
{
	struct context *ctx = d->primary;

	d->primary = NULL;
	d->primary_refs = 0;
	if (ctx)
		destroy(ctx);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	API_ENTER();
	struct device *d;

	RETURN_IF(device_get(&d, dev));
	if (!d->primary_refs)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!--d->primary_refs)
		end_primary(d);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	API_ENTER();
	struct device *d;

	RETURN_IF(device_get(&d, dev));
	end_primary(d);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	API_ENTER();
	struct device *d;

	RETURN_IF(device_get(&d, dev));
	if (flags)
		*flags = d->primary_flags;
	if (active)
		*active = d->primary != NULL;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	API_ENTER();
	struct device *d;

	RETURN_IF(device_get(&d, dev));
	if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	d->primary_flags = flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *out, unsigned int flags, CUdevice dev)
{
	API_ENTER();
	struct device *d;
	struct context *ctx;

	if (!out || flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(device_get(&d, dev));
	if (self.depth == STACK_DEPTH)
		return CUDA_ERROR_OUT_OF_MEMORY;
	RETURN_IF(create(&ctx, d, flags));
	self.stack[self.depth++] = ctx->handle;
	*out = ctx->handle;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *params, int n_params,
			unsigned int flags, CUdevice dev)
{
	if (params && n_params)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return cuCtxCreate_v2(out, flags, dev);
}

CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
	if (params && (params->execAffinityParams || params->cigParams))
		return CUDA_ERROR_NOT_SUPPORTED;
	return cuCtxCreate_v2(out, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext handle)
{
	API_ENTER();
	struct context *ctx;

	RETURN_IF(context_get(&ctx, handle));
	if (ctx->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (self.depth && self.stack[self.depth - 1] == handle)
		self.depth--;
	destroy(ctx);
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext handle)
{
	API_ENTER();
	struct context *ctx;

	RETURN_IF(context_get(&ctx, handle));
	if (self.depth == STACK_DEPTH)
		return CUDA_ERROR_INVALID_VALUE;
	self.stack[self.depth++] = handle;
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
	API_ENTER();

	if (!self.depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	self.depth--;
	if (out)
		*out = self.stack[self.depth];
	return CUDA_SUCCESS;
}

/* Replaces the top of the stack; null pops it. */
CUresult cuCtxSetCurrent(CUcontext handle)
{
	API_ENTER();
	struct context *ctx;

	if (!handle) {
		if (self.depth)
			self.depth--;
		return CUDA_SUCCESS;
	}
	RETURN_IF(context_get(&ctx, handle));
	if (!self.depth)
		self.depth = 1;
	self.stack[self.depth - 1] = handle;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *out)
{
	API_ENTER();

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = self.depth ? self.stack[self.depth - 1] : NULL;
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext handle)
{
	API_ENTER();
	struct context *ctx;

	RETURN_IF(context_given(&ctx, handle));
	if (ctx->fault)
		return ctx->fault;
	RETURN_IF(capture_allows());
	RETURN_IF(capture_context(ctx));
	return context_wait(ctx);
}

CUresult cuCtxSynchronize(void)
{
	return cuCtxSynchronize_v2(NULL);
}
