/* The loop's use of the CUDA driver: memory, launches of the kernel, copies beside it. */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir/loop-abi.h"

struct gpu {
	CUfunction kernel;
	CUcontext context;
	CUstream stream, in, out; /* the kernel; copies to and from the GPU */
	uint32_t blocks, threads, shared;
	CUdeviceptr device, state;  /* struct weir_loop_device, struct weir_loop_block of each */
	struct weir_loop_args args; /* of the last launch */
	char error[160];
};

/* @blocks: 0: as many as fit at a time. -EINVAL, -EIO; `error` says why. What it made is taken down
 * by gpu_deinit() also after an error. */
int gpu_init(struct gpu *gpu, CUfunction kernel, uint32_t blocks, uint32_t threads,
	     uint32_t shared);
/* The kernel has left. */
void gpu_deinit(struct gpu *gpu);

/* Zeroed device memory for the state. */
int gpu_make_state(struct gpu *gpu);
/* Memory of the host that the GPU sees at the same address; NULL: none. */
void *gpu_host_alloc(struct gpu *gpu, size_t size);
void gpu_host_free(void *memory);

/* Puts the kernel into its stream. Writes @params[0]. */
int gpu_launch(struct gpu *gpu, const struct weir_loop_args *args, void **params);

/* 0: all that was launched has ended. -EAGAIN: not yet. -EIO: the kernel failed. */
int gpu_ended(struct gpu *gpu);

/* The calling thread may use the context from here on. -EIO. */
int gpu_use(const struct gpu *gpu);

/* Copies, and marks the end by @event. -EFAULT: the driver refuses these addresses. */
int gpu_copy_in(struct gpu *gpu, CUdeviceptr to, const void *from, size_t size, CUevent event);
int gpu_copy_out(struct gpu *gpu, void *to, CUdeviceptr from, size_t size, CUevent event);
/* As gpu_ended(), of one copy. */
int gpu_copied(struct gpu *gpu, CUevent event);
