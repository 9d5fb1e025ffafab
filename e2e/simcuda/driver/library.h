/* Images, modules and libraries: shared by code/module.c, code/library.c and code/function.c. */
#pragma once

#include "simcuda/driver/driver.h"

struct library {
	CUlibrary handle;
	struct library *prev, *next;
	char *text; /* PTX; a context that uses the library gets a module of its own */
	size_t length;
	struct ptx_module *prototype; /* for names and attributes */
	struct kernel *kernels;
	size_t n_kernels;
};

struct kernel {
	CUkernel handle;
	struct library *library;
	const struct ptx_kernel *ptx;
	int max_dynamic_shared; /* initial attributes of functions in new contexts */
};

CUresult image_load(struct ptx_module **out, const void *image, size_t size,
		    struct ptx_error *error);
CUresult image_read(const char *path, char **out, size_t *size);
void jit_log(unsigned n, const CUjit_option *options, void *const *values,
	     const struct ptx_error *error);
/* Takes over @ptx. */
CUresult module_new(struct module **out, struct context *ctx, struct ptx_module *ptx);
struct function *module_function(struct module *m, const char *name);
CUresult module_global(struct module *m, const char *name, CUdeviceptr *address, size_t *bytes);

/* Attributes that functions and kernels share. */
CUresult kernel_attribute(int *out, CUfunction_attribute attribute, const struct ptx_kernel *kernel,
			  int max_dynamic_shared, int carveout);
CUresult kernel_set_attribute(CUfunction_attribute attribute, int value,
			      const struct ptx_kernel *kernel, int *max_dynamic_shared,
			      int *carveout);
