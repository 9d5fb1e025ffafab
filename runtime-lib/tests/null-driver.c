#include "null-driver.h"

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct null_driver null_driver = {.elapsed_ns = 50000,
				  .form_elapsed_ns = 50000,
				  .shared_max = 200000,
				  .form_shared_max = 200000,
				  .globals = 64};

static __thread CUcontext current;

CUresult cuInit(unsigned flags)
{
	(void)flags;
	return CUDA_SUCCESS;
}

/* From the environment: a test asks for it before the driver is loaded. */
CUresult cuDriverGetVersion(int *version)
{
	const char *text = getenv("NULL_DRIVER_VERSION");

	*version = text ? atoi(text) : 0;
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
	if (null_driver.destroy_fails)
		return null_driver.destroy_fails;
	null_driver.contexts_destroyed++;
	return CUDA_SUCCESS;
}

/* A green context and the context that it is have one handle. */
CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green)
{
	*context = (CUcontext)green;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
	(void)green;
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

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	void *none = NULL;

	(void)mode;
	return atomic_compare_exchange_strong(&null_driver.captured, &none, stream)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_ILLEGAL_STATE;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	void *captured = stream;

	*graph = NULL;
	if (null_driver.end_fails)
		return null_driver.end_fails;
	return atomic_compare_exchange_strong(&null_driver.captured, &captured, NULL)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_ILLEGAL_STATE;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	if (null_driver.broken)
		return null_driver.broken;
	*status = stream == null_driver.captured ? CU_STREAM_CAPTURE_STATUS_ACTIVE
						 : CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream)
{
	(void)stream;
	null_driver.spoilt += null_driver.captured != NULL;
	null_driver.queries_stuck++;
	while (null_driver.streams_stuck)
		usleep(1000);
	null_driver.queries_stuck--;
	if (null_driver.broken)
		return null_driver.broken;
	return null_driver.streams_busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	(void)stream;
	null_driver.streams_destroyed++;
	return CUDA_SUCCESS;
}

/* An event remembers which the last kernel was that its thread launched. */
static _Atomic int events_made;
static _Atomic int is_timed[4096];
static _Atomic uintptr_t behind[4096];
static _Atomic(CUevent) last_timed; /* that was recorded */
static __thread uintptr_t last_launched;

static size_t number(CUevent event)
{
	return ((uintptr_t)event - 0x770000) / 16;
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
	*event = (CUevent)(uintptr_t)(0x770000 + 16 * (atomic_fetch_add(&events_made, 1) % 4096));
	is_timed[number(*event)] = !(flags & CU_EVENT_DISABLE_TIMING);
	return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event)
{
	if (null_driver.broken)
		return null_driver.broken;
	return null_driver.events_busy || (null_driver.last_busy && event == last_timed)
		       ? CUDA_ERROR_NOT_READY
		       : CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	(void)stream;
	if (null_driver.broken)
		return null_driver.broken;
	behind[number(event)] = last_launched;
	if (is_timed[number(event)])
		last_timed = event;
	else
		null_driver.markers_recorded++;
	null_driver.events_recorded++;
	return CUDA_SUCCESS;
}

static bool is_form(uintptr_t function)
{
	return function >= NULL_FORM && function < NULL_FORM + 0x1000;
}

static uint64_t elapsed(uintptr_t function)
{
	if (function == NULL_WIDE && null_driver.wide_elapsed_ns)
		return null_driver.wide_elapsed_ns;
	return is_form(function) ? null_driver.form_elapsed_ns : null_driver.elapsed_ns;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	(void)start;
	*ms = (float)elapsed(behind[number(end)]) / 1e6f;
	return CUDA_SUCCESS;
}

static struct null_op *op_new(enum null_op_kind kind, CUstream stream)
{
	static __thread struct null_op beyond;
	size_t n = atomic_fetch_add(&null_driver.n_ops, 1);
	struct null_op *op = n < NULL_OPS ? &null_driver.ops[n] : &beyond;

	*op = (struct null_op){.kind = kind, .stream = stream};
	return op;
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
	(void)from, (void)size;
	op_new(NULL_COPY, stream)->address = to;
	return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size)
{
	static _Atomic uint64_t next = 0x10000000;

	if (null_driver.full > 0) {
		atomic_fetch_sub(&null_driver.full, 1);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*address = atomic_fetch_add(&next, (size + 0xfff) & ~0xfffull);
	return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
	(void)flags;
	*stream = (CUstream)(uintptr_t)0xdddd00;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
						     size_t shared)
{
	(void)function, (void)threads, (void)shared;
	*blocks = null_driver.occupancy ? null_driver.occupancy : (int)NULL_OCCUPANCY;
	*blocks -= (uintptr_t)function == NULL_WIDE;
	return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *memory, size_t size, unsigned flags)
{
	(void)memory, (void)size, (void)flags;
	if (null_driver.refuses_pages) {
		null_driver.pages_refused++;
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
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
	struct null_op *op = op_new(NULL_GATE, stream);

	(void)flags;
	op->address = ops[0].waitValue.address;
	op->n_waits = count;
	for (unsigned i = 0; i < count && i < NULL_WAITS; i++) {
		bool wide = ops[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
		op->waits[i].address = ops[i].waitValue.address;
		op->waits[i].value = wide ? ops[i].waitValue.value64 : ops[i].waitValue.value;
		op->waits[i].flags = ops[i].waitValue.flags;
	}
	null_driver.gates++;
	null_driver.waits_in_gates += (int)count;
	return CUDA_SUCCESS;
}

static void see(void)
{
	if (null_driver.watched)
		null_driver.seen = *null_driver.watched;
}

/* @priority: 1: none. */
static CUresult launch(CUfunction f, const unsigned grid[3], const unsigned block[3],
		       CUstream stream, void **extra, unsigned attributes, int priority)
{
	null_driver.launches_waiting++;
	while (null_driver.launches_stuck)
		usleep(1000);
	null_driver.launches_waiting--;
	if (is_form((uintptr_t)f) && null_driver.forms_fail)
		return null_driver.forms_fail;
	struct null_op *op = op_new(NULL_LAUNCH, stream);
	op->function = f;
	op->attributes = attributes;
	op->priority = priority;
	memcpy(op->grid, grid, sizeof(op->grid));
	memcpy(op->block, block, sizeof(op->block));
	for (void **at = extra; at && *at != CU_LAUNCH_PARAM_END; at += 2) {
		if (*at == CU_LAUNCH_PARAM_BUFFER_SIZE)
			op->size = *(size_t *)at[1];
	}
	for (void **at = extra; at && *at != CU_LAUNCH_PARAM_END; at += 2) {
		if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER && op->size <= sizeof(op->parameters))
			memcpy(op->parameters, at[1], op->size);
	}
	last_launched = (uintptr_t)f;
	see();
	null_driver.launches++;
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params,
			void **extra)
{
	(void)params, (void)shared;
	return launch(f, (unsigned[3]){gx, gy, gz}, (unsigned[3]){bx, by, bz}, stream, extra, 0, 1);
}

static int priority_of(const CUlaunchConfig *config)
{
	for (unsigned i = 0; i < config->numAttrs; i++) {
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
			return config->attrs[i].value.priority;
	}
	return 1;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
	int priority = priority_of(config);

	(void)params;
	if (priority < 1 && null_driver.priorities_fail)
		return null_driver.priorities_fail;
	return launch(f, (unsigned[3]){config->gridDimX, config->gridDimY, config->gridDimZ},
		      (unsigned[3]){config->blockDimX, config->blockDimY, config->blockDimZ},
		      config->hStream, extra, config->numAttrs, priority);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
				   unsigned by, unsigned bz, unsigned shared, CUstream stream,
				   void **params)
{
	(void)params, (void)shared;
	return launch(f, (unsigned[3]){gx, gy, gz}, (unsigned[3]){bx, by, bz}, stream, NULL, 0, 1);
}

CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream)
{
	(void)graph, (void)stream;
	null_driver.graph_launches++;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	(void)device;
	*value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR  ? 9
		 : attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT    ? (int)NULL_SMS
		 : attribute == CU_DEVICE_ATTRIBUTE_CLOCK_RATE              ? 1000000
		 : attribute == CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE       ? 1000000
		 : attribute == CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH ? 8000
		 : attribute == CU_DEVICE_ATTRIBUTE_MPS_ENABLED             ? null_driver.mps
									    : 0;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	*least = 0;
	*greatest = -5;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
	(void)stream;
	*priority = null_driver.priority;
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	void (*meanwhile)(void) = null_driver.while_synchronising;

	null_driver.while_synchronising = NULL;
	if (meanwhile)
		meanwhile();
	null_driver.synchronised++;
	see();
	return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
	(void)stream;
	see();
	return CUDA_SUCCESS;
}
