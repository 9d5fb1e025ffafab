/* Streams and contexts that go: no thread of ours may use their handles afterwards. */
#include "client/client.h"
#include "memory/memory.h"
#include "preempt/module.h"
#include "client/stream.h"
#include "client/worker.h"

#include <stddef.h>

EXPORT CUresult cuStreamDestroy(CUstream stream)
{
	if (driver_ready())
		stream_gone(stream);
	return real(cuStreamDestroy)(stream);
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
	if (driver_ready())
		stream_gone(stream);
	return real(cuStreamDestroy_v2)(stream);
}

static void remove_context(CUcontext context)
{
	if (!context)
		return;
	client_remove(client_find(context));
	module_forget(context);
	memory_forget_context(context);
}

EXPORT CUresult cuCtxDestroy(CUcontext context)
{
	if (driver_ready())
		remove_context(context);
	return real(cuCtxDestroy)(context);
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext context)
{
	if (driver_ready())
		remove_context(context);
	return real(cuCtxDestroy_v2)(context);
}

/* The last release destroys the context; which one is the last is known only afterwards. Between
 * these two the worker is kept away. */
static CUcontext releasing(CUdevice device)
{
	worker_pause();
	return client_primary(device);
}

static void released(CUdevice device, CUcontext primary)
{
	unsigned flags;
	int active = 1;

	if (real(cuDevicePrimaryCtxGetState)(device, &flags, &active) == CUDA_SUCCESS && !active)
		remove_context(primary);
	worker_resume();
}

static CUresult release(CUdevice device, CUresult (*function)(CUdevice))
{
	CUcontext primary = releasing(device);
	CUresult result = function(device);

	released(device, primary);
	return result;
}

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	driver_ready();
	return release(device, real(cuDevicePrimaryCtxRelease));
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	driver_ready();
	return release(device, real(cuDevicePrimaryCtxRelease_v2));
}

EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
	if (driver_ready())
		remove_context(client_primary(device));
	return real(cuDevicePrimaryCtxReset)(device);
}

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	if (driver_ready())
		remove_context(client_primary(device));
	return real(cuDevicePrimaryCtxReset_v2)(device);
}

/* The device of a context that need not be current. */
static bool device_of(CUcontext context, CUdevice *device)
{
	CUcontext dropped;

	if (real(cuCtxPushCurrent_v2)(context) != CUDA_SUCCESS)
		return false;
	CUresult result = real(cuCtxGetDevice)(device);
	real(cuCtxPopCurrent_v2)(&dropped);
	return result == CUDA_SUCCESS;
}

/* A part of the GPU, which to us is a context with streams of its own. Memory and code that were
 * made while it was current are the primary context's, of which it is a holder. */
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
