#include "null-driver.h"

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <dlfcn.h>
#include <string.h>

struct null_driver null_driver = {.elapsed_ns = 50000};

static __thread CUcontext current;

CUresult cuInit(unsigned flags)
{
	(void)flags;
	return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *status)
{
	(void)version, (void)flags, (void)status;
	void *self = dlopen(NULL, RTLD_NOW);
	Dl_info info;
	void *own =
		dladdr(&null_driver, &info) ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : self;
	*function = dlsym(own, symbol);
	return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
	*context = current;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	current = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	current = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
	*context = current;
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
	(void)context;
	null_driver.contexts_destroyed++;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	*device = 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	(void)device;
	memset(uuid, 7, sizeof(*uuid));
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
	(void)device;
	*flags = 0;
	*active = 0;
	return CUDA_SUCCESS;
}

/* The context is hidden in the handle of a stream: 0x1CCxx belongs to context 0x1CC00. */
CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
	*context = (CUcontext)((uintptr_t)stream & ~(uintptr_t)0xff);
	return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	(void)stream;
	*status = null_driver.capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE
					: CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream)
{
	(void)stream;
	return null_driver.streams_busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	(void)stream;
	null_driver.streams_destroyed++;
	return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
	(void)flags;
	*event = (CUevent)(uintptr_t)0x77;
	return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	(void)event, (void)stream;
	null_driver.events_recorded++;
	return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	(void)start, (void)end;
	*ms = (float)null_driver.elapsed_ns / 1e6f;
	return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *memory, size_t size, unsigned flags)
{
	(void)memory, (void)size, (void)flags;
	null_driver.registered++;
	return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pointer, void *memory, unsigned flags)
{
	(void)flags;
	*pointer = (CUdeviceptr)(uintptr_t)memory;
	return CUDA_SUCCESS;
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned count, CUstreamBatchMemOpParams *ops,
			       unsigned flags)
{
	(void)stream, (void)ops, (void)flags;
	null_driver.gates++;
	null_driver.waits_in_gates += (int)count;
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params,
			void **extra)
{
	(void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared,
		(void)stream;
	(void)params, (void)extra;
	null_driver.launches++;
	return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream)
{
	(void)graph, (void)stream;
	null_driver.graph_launches++;
	return CUDA_SUCCESS;
}
