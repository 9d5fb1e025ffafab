/* A kernel in one form, as an object (weir/object.h) that the transformer builds here and now. */
#pragma once

#include <cuda.h>

#include <weir/preempt-abi.h>
#include <weir/transform.h>

struct object {
	CUmodule module;
	CUfunction function;
	uint32_t save_fixed, save_per_thread;
};

/* 90: compute capability 9.0. */
unsigned object_sm(CUdevice device);

/* Fails the program when the kernel cannot be had in this form, and for one that uses variables of
 * its module. */
void object_load(struct object *object, const char *ptx, const char *kernel, enum weir_form form,
		 CUdevice device);

/* Memory for what @workers of @threads save, as @hidden must say it. It goes with the context. */
void object_saves(const struct object *object, struct weir_persistent *hidden, uint32_t workers,
		  uint32_t threads);
