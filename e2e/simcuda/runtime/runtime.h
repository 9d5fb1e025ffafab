/* What a program built with the CUDA runtime needs from it, over the driver API: a stand-in for
 * libcudart_static.a. The real one asks the driver for tables of functions without names
 * (cuGetExportTable), which the simulated driver does not have.
 *
 * Errors of the runtime have the driver's numbers. A function of the runtime that is missing here
 * is missing when a program is linked. */
#pragma once

#include <cuda.h>
#include <driver_types.h>
#include <stdbool.h>
#include <stddef.h>

#define API __attribute__((visibility("default")))

/* The primary context of device 0 is current in this thread from here on. */
cudaError_t runtime_enter(void);

/* @result as the runtime's error; cudaGetLastError() will return it if it is one. */
cudaError_t runtime_result(CUresult result);

/* runtime_enter(), and the driver's call if that worked. */
#define RUNTIME_CALL(call)                                  \
	({                                                  \
		cudaError_t entered_ = runtime_enter();     \
		entered_ ? entered_ : runtime_result(call); \
	})

/* Stream 0 of code whose default streams are per thread. */
static inline cudaStream_t per_thread(cudaStream_t stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

/* The variable that the program's code knows by the address @host. */
cudaError_t runtime_variable(CUdeviceptr *out, const void *host);
