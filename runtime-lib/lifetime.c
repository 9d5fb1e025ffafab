/* Streams and contexts that go: no thread of ours may use their handles afterwards. */
#include "client.h"
#include "memory.h"
#include "module.h"
#include "stream.h"
#include "worker.h"

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

/* The last release destroys the context; which one is the last is known only afterwards. */
static CUresult release(CUdevice device, CUresult (*function)(CUdevice))
{
	unsigned flags;
	int active = 1;

	worker_pause();
	CUcontext primary = client_primary(device);
	CUresult result = function(device);
	if (real(cuDevicePrimaryCtxGetState)(device, &flags, &active) == CUDA_SUCCESS && !active)
		remove_context(primary);
	worker_resume();
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
