/* Hooks where a process meets CUDA: cuInit, the look-up of functions by name, which returns ours in
 * place of the driver's, and the ends of streams and contexts, after which no thread of ours may
 * use their handles. */
#include "client/client.h"
#include "client/pipes.h"
#include "client/stream.h"
#include "client/worker.h"
#include "memory/memory.h"
#include "preempt/code.h"
#include "preempt/launch-queue.h"
#include "shim/weak-libc.h"

#include <pthread.h>

/* CUDA does not work in a forked child of a process that used it, so libweir must not either: no
 * demand in the parent's name, no socket that keeps the parent alive for the agent. */
static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, client_fork);
}

EXPORT CUresult cuInit(unsigned flags)
{
	static struct once forks, queue;

	if (driver_ready()) {
		once(&forks, watch_forks);
		pipes_join();
		once(&queue, launch_queue_lengthen);
	}
	return real(cuInit)(flags);
}

static CUresult swap(CUresult result, void **function)
{
	if (result == CUDA_SUCCESS && function && *function)
		*function = driver_swap(*function);
	return result;
}

EXPORT CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
	driver_ready();
	return swap(real(cuGetProcAddress)(symbol, function, version, flags), function);
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version,
				    cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	driver_ready();
	return swap(real(cuGetProcAddress_v2)(symbol, function, version, flags, status), function);
}

#define STREAM_ENDS(name)                     \
	EXPORT CUresult name(CUstream stream) \
	{                                     \
		if (driver_ready())           \
			stream_gone(stream);  \
		return real(name)(stream);    \
	}
STREAM_ENDS(cuStreamDestroy)
STREAM_ENDS(cuStreamDestroy_v2)

/* A context that the driver is asked to destroy. Its code and memory are taken off its handle
 * first, because the driver may give the handle to a new context at once. If the driver refuses, as
 * for a primary context, they go back to it. Its client is set up again by the next launch. */
struct ending {
	CUcontext context; /* NULL: there is none */
	struct code *code;
	CUcontext memory;
};

static struct ending end_begin(CUcontext context)
{
	struct ending ending = {.context = context};

	if (!context)
		return ending;
	client_remove(client_find(context));
	ending.code = code_take(context);
	ending.memory = memory_take_context(context);
	return ending;
}

static CUresult end_finish(const struct ending *ending, CUresult result)
{
	if (!ending->context)
		return result;
	if (result == CUDA_SUCCESS) {
		code_forget(ending->code);
		memory_forget_context(ending->memory);
	} else {
		code_put_back(ending->code);
		memory_put_back(ending->memory, ending->context);
	}
	return result;
}

#define CONTEXT_ENDS(name, type, handle, context)               \
	EXPORT CUresult name(type handle)                       \
	{                                                       \
		struct ending ending = {0};                     \
                                                                \
		if (driver_ready())                             \
			ending = end_begin(context);            \
		return end_finish(&ending, real(name)(handle)); \
	}
CONTEXT_ENDS(cuCtxDestroy, CUcontext, context, context)
CONTEXT_ENDS(cuCtxDestroy_v2, CUcontext, context, context)
CONTEXT_ENDS(cuDevicePrimaryCtxReset, CUdevice, device, client_primary(device))
CONTEXT_ENDS(cuDevicePrimaryCtxReset_v2, CUdevice, device, client_primary(device))

/* The last release destroys the context, but only afterwards is it known which one is the last. The
 * worker pauses in between. */
static CUcontext releasing(CUdevice device)
{
	worker_pause();
	return client_primary(device);
}

static void released(CUdevice device, CUcontext primary)
{
	unsigned flags;
	int active = 1;

	if (real(cuDevicePrimaryCtxGetState)(device, &flags, &active) == CUDA_SUCCESS && !active) {
		struct ending ending = end_begin(primary);
		end_finish(&ending, CUDA_SUCCESS);
	}
	worker_resume();
}

#define RELEASES(name)                                 \
	EXPORT CUresult name(CUdevice device)          \
	{                                              \
		driver_ready();                        \
		CUcontext primary = releasing(device); \
		CUresult result = real(name)(device);  \
                                                       \
		released(device, primary);             \
		return result;                         \
	}
RELEASES(cuDevicePrimaryCtxRelease)
RELEASES(cuDevicePrimaryCtxRelease_v2)

/* The device of any context. */
static bool device_of(CUcontext context, CUdevice *device)
{
	CUcontext dropped;

	if (real(cuCtxPushCurrent_v2)(context) != CUDA_SUCCESS)
		return false;
	CUresult result = real(cuCtxGetDevice)(device);
	real(cuCtxPopCurrent_v2)(&dropped);
	return result == CUDA_SUCCESS;
}

/* A part of the GPU. To us it is a context with streams of its own. Memory and code that were made
 * while it was current belong to the primary context, of which it holds a reference. */
EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
	CUcontext context = NULL;
	CUdevice device;

	if (!driver_ready() || real(cuCtxFromGreenCtx)(&context, green) != CUDA_SUCCESS ||
	    !context || !device_of(context, &device))
		return real(cuGreenCtxDestroy)(green);
	CUcontext primary = releasing(device);
	client_remove(client_find(context));
	CUresult result = real(cuGreenCtxDestroy)(green);
	released(device, primary);
	return result;
}
