/* Other spellings of functions: per-thread ones, in which stream 0 is the calling thread's, and
 * versions that differ in name only. A spelling that needs more than a forward is defined next to
 * its function. */
#include "simcuda/driver/driver.h"

#define FORWARD(name, params, to, arguments) \
	CUresult name params                 \
	{                                    \
		return to arguments;         \
	}

/* (stream, one argument) and so on: most are of these shapes. */
#define PER_THREAD_1(name, a) FORWARD(name##_ptsz, (CUstream s, a x), name, (per_thread(s), x))
#define PER_THREAD_2(name, a, b) \
	FORWARD(name##_ptsz, (CUstream s, a x, b y), name, (per_thread(s), x, y))
#define PER_THREAD_3(name, a, b, c) \
	FORWARD(name##_ptsz, (CUstream s, a x, b y, c z), name, (per_thread(s), x, y, z))

FORWARD(cuStreamQuery_ptsz, (CUstream s), cuStreamQuery, (per_thread(s)))
FORWARD(cuStreamSynchronize_ptsz, (CUstream s), cuStreamSynchronize, (per_thread(s)))
PER_THREAD_1(cuStreamGetPriority, int *)
PER_THREAD_1(cuStreamGetId, unsigned long long *)
PER_THREAD_1(cuStreamGetFlags, unsigned int *)
PER_THREAD_1(cuStreamGetDevice, CUdevice *)
PER_THREAD_1(cuStreamGetCtx, CUcontext *)
PER_THREAD_2(cuStreamGetCtx_v2, CUcontext *, CUgreenCtx *)
PER_THREAD_2(cuStreamWaitEvent, CUevent, unsigned int)
PER_THREAD_3(cuStreamAddCallback, CUstreamCallback, void *, unsigned int)
PER_THREAD_2(cuStreamGetAttribute, CUstreamAttrID, CUstreamAttrValue *)
PER_THREAD_2(cuStreamSetAttribute, CUstreamAttrID, const CUstreamAttrValue *)
FORWARD(cuStreamCopyAttributes_ptsz, (CUstream to, CUstream from), cuStreamCopyAttributes,
	(per_thread(to), per_thread(from)))

FORWARD(cuEventRecord_ptsz, (CUevent e, CUstream s), cuEventRecord, (e, per_thread(s)))
FORWARD(cuEventRecordWithFlags_ptsz, (CUevent e, CUstream s, unsigned int flags),
	cuEventRecordWithFlags, (e, per_thread(s), flags))

/* Their second versions only demand other devices. */
#define MEMORY_OPERATION(name, type)                                                       \
	FORWARD(name##_v2, (CUstream s, CUdeviceptr a, type v, unsigned int f), name,      \
		(s, a, v, f))                                                              \
	FORWARD(name##_ptsz, (CUstream s, CUdeviceptr a, type v, unsigned int f), name,    \
		(per_thread(s), a, v, f))                                                  \
	FORWARD(name##_v2_ptsz, (CUstream s, CUdeviceptr a, type v, unsigned int f), name, \
		(per_thread(s), a, v, f))

MEMORY_OPERATION(cuStreamWaitValue32, cuuint32_t)
MEMORY_OPERATION(cuStreamWaitValue64, cuuint64_t)
MEMORY_OPERATION(cuStreamWriteValue32, cuuint32_t)
MEMORY_OPERATION(cuStreamWriteValue64, cuuint64_t)
PER_THREAD_3(cuStreamBatchMemOp, unsigned int, CUstreamBatchMemOpParams *, unsigned int)
PER_THREAD_3(cuStreamBatchMemOp_v2, unsigned int, CUstreamBatchMemOpParams *, unsigned int)

FORWARD(cuLaunchKernel_ptsz,
	(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
	 unsigned int by, unsigned int bz, unsigned int shared, CUstream s, void **p, void **e),
	cuLaunchKernel, (f, gx, gy, gz, bx, by, bz, shared, per_thread(s), p, e))
FORWARD(cuLaunchCooperativeKernel_ptsz,
	(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
	 unsigned int by, unsigned int bz, unsigned int shared, CUstream s, void **p),
	cuLaunchCooperativeKernel, (f, gx, gy, gz, bx, by, bz, shared, per_thread(s), p))
PER_THREAD_2(cuLaunchHostFunc, CUhostFn, void *)

FORWARD(cuMemAllocAsync_ptsz, (CUdeviceptr * p, size_t n, CUstream s), cuMemAllocAsync,
	(p, n, per_thread(s)))
FORWARD(cuMemAllocFromPoolAsync_ptsz, (CUdeviceptr * p, size_t n, CUmemoryPool m, CUstream s),
	cuMemAllocFromPoolAsync, (p, n, m, per_thread(s)))
FORWARD(cuMemFreeAsync_ptsz, (CUdeviceptr p, CUstream s), cuMemFreeAsync, (p, per_thread(s)))

PER_THREAD_1(cuStreamBeginCapture_v2, CUstreamCaptureMode)
FORWARD(cuStreamBeginCapture_ptsz, (CUstream s), cuStreamBeginCapture, (per_thread(s)))
PER_THREAD_1(cuStreamEndCapture, CUgraph *)
PER_THREAD_1(cuStreamIsCapturing, CUstreamCaptureStatus *)
PER_THREAD_2(cuStreamGetCaptureInfo, CUstreamCaptureStatus *, cuuint64_t *)
FORWARD(cuStreamGetCaptureInfo_v2_ptsz,
	(CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
	 const CUgraphNode **nodes, size_t *n),
	cuStreamGetCaptureInfo_v2, (per_thread(s), status, id, graph, nodes, n))
FORWARD(cuStreamGetCaptureInfo_v3_ptsz,
	(CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
	 const CUgraphNode **nodes, const CUgraphEdgeData **edges, size_t *n),
	cuStreamGetCaptureInfo_v3, (per_thread(s), status, id, graph, nodes, edges, n))
PER_THREAD_3(cuStreamUpdateCaptureDependencies, CUgraphNode *, size_t, unsigned int)
FORWARD(cuStreamUpdateCaptureDependencies_v2_ptsz,
	(CUstream s, CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t n,
	 unsigned int flags),
	cuStreamUpdateCaptureDependencies_v2, (per_thread(s), nodes, edges, n, flags))
FORWARD(cuStreamBeginCaptureToGraph_ptsz,
	(CUstream s, CUgraph g, const CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t n,
	 CUstreamCaptureMode mode),
	cuStreamBeginCaptureToGraph, (per_thread(s), g, nodes, edges, n, mode))
FORWARD(cuGraphInstantiateWithParams_ptsz,
	(CUgraphExec * out, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
	cuGraphInstantiateWithParams, (out, g, params))
FORWARD(cuGraphLaunch_ptsz, (CUgraphExec g, CUstream s), cuGraphLaunch, (g, per_thread(s)))
FORWARD(cuGraphUpload_ptsz, (CUgraphExec g, CUstream s), cuGraphUpload, (g, per_thread(s)))

FORWARD(cuStreamDestroy, (CUstream s), cuStreamDestroy_v2, (s))
FORWARD(cuEventDestroy, (CUevent e), cuEventDestroy_v2, (e))
FORWARD(cuCtxCreate, (CUcontext * out, unsigned int flags, CUdevice d), cuCtxCreate_v2,
	(out, flags, d))
FORWARD(cuCtxDestroy, (CUcontext c), cuCtxDestroy_v2, (c))
FORWARD(cuCtxPushCurrent, (CUcontext c), cuCtxPushCurrent_v2, (c))
FORWARD(cuCtxPopCurrent, (CUcontext * out), cuCtxPopCurrent_v2, (out))
FORWARD(cuDevicePrimaryCtxRelease, (CUdevice d), cuDevicePrimaryCtxRelease_v2, (d))
FORWARD(cuDevicePrimaryCtxReset, (CUdevice d), cuDevicePrimaryCtxReset_v2, (d))
FORWARD(cuDevicePrimaryCtxSetFlags, (CUdevice d, unsigned int flags), cuDevicePrimaryCtxSetFlags_v2,
	(d, flags))
FORWARD(cuDeviceGetUuid, (CUuuid * out, CUdevice d), cuDeviceGetUuid_v2, (out, d))
FORWARD(cuMemHostRegister, (void *p, size_t n, unsigned int flags), cuMemHostRegister_v2,
	(p, n, flags))
