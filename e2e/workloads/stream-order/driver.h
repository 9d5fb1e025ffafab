/* The driver's stream functions in every way that programs reach them: linked, by cuGetProcAddress,
 * by dlsym; the last two also for the per-thread default stream. */
#pragma once

#include <cuda.h>

/* name in this program, name for cuGetProcAddress, exported name. */
#define STREAM_CALLS(X)                                                             \
	X(launch_kernel, cuLaunchKernel, cuLaunchKernel)                            \
	X(launch_kernel_ex, cuLaunchKernelEx, cuLaunchKernelEx)                     \
	X(launch_cooperative, cuLaunchCooperativeKernel, cuLaunchCooperativeKernel) \
	X(launch_host_func, cuLaunchHostFunc, cuLaunchHostFunc)                     \
	X(launch_graph, cuGraphLaunch, cuGraphLaunch)                               \
	X(copy_to_device, cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2)                  \
	X(copy_to_host, cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2)                    \
	X(copy_on_device, cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2)                  \
	X(set, cuMemsetD32Async, cuMemsetD32Async)                                  \
	X(record, cuEventRecord, cuEventRecord)                                     \
	X(wait_event, cuStreamWaitEvent, cuStreamWaitEvent)                         \
	X(wait_value, cuStreamWaitValue32, cuStreamWaitValue32_v2)                  \
	X(write_value, cuStreamWriteValue32, cuStreamWriteValue32_v2)               \
	X(batch, cuStreamBatchMemOp, cuStreamBatchMemOp_v2)                         \
	X(alloc, cuMemAllocAsync, cuMemAllocAsync)                                  \
	X(free, cuMemFreeAsync, cuMemFreeAsync)                                     \
	X(synchronize, cuStreamSynchronize, cuStreamSynchronize)                    \
	X(query, cuStreamQuery, cuStreamQuery)

struct stream_calls {
#define X(field, name, symbol) __typeof__(name) *field;
	STREAM_CALLS(X)
#undef X
};

enum spelling {
	SPELLING_LINKED,
	SPELLING_ASKED,
	SPELLING_NAMED,
	SPELLING_ASKED_PER_THREAD,
	SPELLING_NAMED_PER_THREAD,
	SPELLINGS,
};
/* From here on, stream NULL is the thread's own default stream. */
#define SPELLING_FIRST_PER_THREAD SPELLING_ASKED_PER_THREAD

/* Fails the program when a spelling is missing. After cuInit(). */
void stream_calls_init(struct stream_calls calls[SPELLINGS]);
