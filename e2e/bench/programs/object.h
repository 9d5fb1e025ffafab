/* A kernel in one form, as an object (weir/object.h) that the transformer builds in this process.
 */
#pragma once

#include <cuda.h>

#include <weir/preempt-abi.h>
#include <weir/transform.h>

struct object {
	CUmodule module;
	CUfunction function;
	uint32_t save_fixed, save_per_thread;
};

/* The compute capability times ten: 90 is 9.0. */
unsigned object_sm(CUdevice device);

/* Ends the program if the kernel cannot have this form, or uses variables of its module. */
void object_load(struct object *object, const char *ptx, const char *kernel, enum weir_form form,
		 CUdevice device);

/* Allocates save areas of @workers of @threads into @hidden. They live as long as the context. */
void object_saves(const struct object *object, struct weir_persistent *hidden, uint32_t workers,
		  uint32_t threads);
