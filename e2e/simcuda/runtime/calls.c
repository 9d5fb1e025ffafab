/* Functions of the runtime that are one call of the driver each. */
#include "simcuda/runtime/runtime.h"

#include <stdint.h>

static __thread bool entered;
static __thread cudaError_t last;

cudaError_t runtime_result(CUresult result)
{
	if (result)
		last = (cudaError_t)result;
	return (cudaError_t)result;
}

cudaError_t runtime_enter(void)
{
	CUresult result;
	CUcontext context;

	if (entered)
		return cudaSuccess;
	result = cuInit(0);
	if (!result)
		result = cuDevicePrimaryCtxRetain(&context, 0);
	if (!result)
		result = cuCtxSetCurrent(context);
	entered = !result;
	return runtime_result(result);
}

/* A function of the runtime with its prototype, and the call of the driver that does its work. */
#define CALL(name, parameters, call)       \
	API cudaError_t name parameters;   \
	API cudaError_t name parameters    \
	{                                  \
		return RUNTIME_CALL(call); \
	}

API cudaError_t cudaGetLastError(void);
API cudaError_t cudaGetLastError(void)
{
	cudaError_t error = last;

	last = cudaSuccess;
	return error;
}

/* The driver's name of it. */
API const char *cudaGetErrorName(cudaError_t error);
API const char *cudaGetErrorName(cudaError_t error)
{
	const char *name;

	return cuGetErrorName((CUresult)error, &name) ? "unknown" : name;
}

CALL(cudaDeviceSynchronize, (void), cuCtxSynchronize())
CALL(cudaDeviceGetAttribute, (int *out, enum cudaDeviceAttr attribute, int device),
     cuDeviceGetAttribute(out, (CUdevice_attribute)attribute, device))
CALL(cudaDeviceSetLimit, (enum cudaLimit limit, size_t value), cuCtxSetLimit((CUlimit)limit, value))

CALL(cudaMalloc, (void **out, size_t size), cuMemAlloc((CUdeviceptr *)out, size))
CALL(cudaFree, (void *memory), memory ? cuMemFree((CUdeviceptr)memory) : CUDA_SUCCESS)
CALL(cudaHostAlloc, (void **out, size_t size, unsigned flags), cuMemHostAlloc(out, size, flags))
CALL(cudaFreeHost, (void *memory), cuMemFreeHost(memory))
CALL(cudaMallocAsync, (void **out, size_t size, cudaStream_t stream),
     cuMemAllocAsync((CUdeviceptr *)out, size, stream))
CALL(cudaFreeAsync, (void *memory, cudaStream_t stream),
     cuMemFreeAsync((CUdeviceptr)memory, stream))
CALL(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * out, int device),
     cuDeviceGetDefaultMemPool(out, device))
CALL(cudaMemPoolSetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value),
     cuMemPoolSetAttribute(pool, (CUmemPool_attribute)attribute, value))

/* Where pageable memory is on one side, the driver has to know which. */
static CUresult copy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return cuMemcpyHtoD((CUdeviceptr)to, from, size);
	case cudaMemcpyDeviceToHost:
		return cuMemcpyDtoH(to, (CUdeviceptr)from, size);
	default:
		return cuMemcpy((CUdeviceptr)to, (CUdeviceptr)from, size);
	}
}
CALL(cudaMemcpy, (void *to, const void *from, size_t size, enum cudaMemcpyKind kind),
     copy(to, from, size, kind))
CALL(cudaMemcpyAsync,
     (void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream),
     ((void)kind, cuMemcpyAsync((CUdeviceptr)to, (CUdeviceptr)from, size, stream)))
CALL(cudaMemcpyAsync_ptsz,
     (void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream),
     ((void)kind, cuMemcpyAsync((CUdeviceptr)to, (CUdeviceptr)from, size, per_thread(stream))))
CALL(cudaMemset, (void *to, int value, size_t size),
     cuMemsetD8((CUdeviceptr)to, (unsigned char)value, size))
CALL(cudaMemsetAsync, (void *to, int value, size_t size, cudaStream_t stream),
     cuMemsetD8Async((CUdeviceptr)to, (unsigned char)value, size, stream))

API cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset,
				   enum cudaMemcpyKind kind);
API cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset,
				   enum cudaMemcpyKind kind)
{
	CUdeviceptr to;
	cudaError_t error = runtime_variable(&to, symbol);

	return error ? error : cudaMemcpy((char *)to + offset, from, size, kind);
}

API cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t offset,
				     enum cudaMemcpyKind kind);
API cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t offset,
				     enum cudaMemcpyKind kind)
{
	CUdeviceptr from;
	cudaError_t error = runtime_variable(&from, symbol);

	return error ? error : cudaMemcpy(to, (const char *)from + offset, size, kind);
}

CALL(cudaStreamCreate, (cudaStream_t * out), cuStreamCreate(out, CU_STREAM_DEFAULT))
CALL(cudaStreamCreateWithFlags, (cudaStream_t * out, unsigned flags), cuStreamCreate(out, flags))
CALL(cudaStreamDestroy, (cudaStream_t stream), cuStreamDestroy(stream))
CALL(cudaStreamSynchronize, (cudaStream_t stream), cuStreamSynchronize(stream))
CALL(cudaStreamSynchronize_ptsz, (cudaStream_t stream), cuStreamSynchronize(per_thread(stream)))
CALL(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
     cuStreamWaitEvent(stream, event, flags))
CALL(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data),
     cuLaunchHostFunc(stream, function, data))
CALL(cudaEventCreateWithFlags, (cudaEvent_t * out, unsigned flags), cuEventCreate(out, flags))
CALL(cudaEventDestroy, (cudaEvent_t event), cuEventDestroy(event))
CALL(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), cuEventRecord(event, stream))
