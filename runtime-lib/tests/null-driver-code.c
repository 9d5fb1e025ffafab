/* The null driver's modules, libraries, functions and kernels. */
#include "null-driver.h"

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <stdbool.h>
#include <string.h>

/* Modules and libraries are numbers, functions and kernels slots of a table. */
static _Atomic uintptr_t next_code = 0x100000;

struct slot {
	uintptr_t code; /* the module or library */
	int is_kernel;
	int max_dynamic, carveout, cluster_width, other;
	char name[64];
};
static struct slot slots[4096];
static _Atomic unsigned n_slots;

static struct slot *slot_of(const void *handle, int is_kernel)
{
	struct slot *slot = (struct slot *)handle;

	return slot >= slots && slot < slots + sizeof(slots) / sizeof(slots[0]) &&
			       slot->is_kernel == is_kernel
		       ? slot
		       : NULL;
}

static struct slot *slot_new(uintptr_t code, int is_kernel, const char *name)
{
	struct slot *slot =
		&slots[atomic_fetch_add(&n_slots, 1) % (sizeof(slots) / sizeof(slots[0]))];

	*slot = (struct slot){.code = code, .is_kernel = is_kernel, .max_dynamic = 49152};
	strncpy(slot->name, name, sizeof(slot->name) - 1);
	return slot;
}

static uintptr_t code_new(void)
{
	null_driver.modules_loaded++;
	return atomic_fetch_add(&next_code, 0x100);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	(void)image;
	if (null_driver.loads_fail)
		return CUDA_ERROR_INVALID_IMAGE;
	*module = (CUmodule)code_new();
	return CUDA_SUCCESS;
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	return cuModuleLoadData(module, path);
}

CUresult cuModuleUnload(CUmodule module)
{
	(void)module;
	null_driver.modules_unloaded++;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	if (strcmp(name, "missing") == 0)
		return CUDA_ERROR_NOT_FOUND;
	*function = (CUfunction)slot_new((uintptr_t)module, 0, name);
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module)
{
	(void)module;
	*count = (unsigned)null_driver.listed;
	null_driver.lists++;
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary library)
{
	(void)library;
	return cuModuleGetFunctionCount(count, NULL);
}

/* The same handles each time. */
static CUresult list(void **out, unsigned n, uintptr_t code, int is_kernel)
{
	char name[] = "k0";

	for (unsigned i = 0; i < n && i < (unsigned)null_driver.listed; i++, name[1]++) {
		struct slot *slot = slots;
		while (slot < slots + n_slots &&
		       !(slot->code == code && strcmp(slot->name, name) == 0))
			slot++;
		out[i] = slot < slots + n_slots ? slot : slot_new(code, is_kernel, name);
	}
	return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned n, CUmodule module)
{
	return list((void **)functions, n, (uintptr_t)module, 0);
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned n, CUlibrary library)
{
	return list((void **)kernels, n, (uintptr_t)library, 1);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, CUmodule module, const char *name)
{
	if (!null_driver.globals)
		return CUDA_ERROR_NOT_FOUND;
	*address = (CUdeviceptr)(uintptr_t)module + (unsigned char)name[0];
	*size = (size_t)null_driver.globals;
	return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit,
			   void **jit_values, unsigned n_jit, CUlibraryOption *options,
			   void **values, unsigned n)
{
	(void)image, (void)jit, (void)jit_values, (void)n_jit, (void)options, (void)values, (void)n;
	*library = (CUlibrary)code_new();
	return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary library)
{
	return cuModuleUnload((CUmodule)library);
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	*kernel = (CUkernel)slot_new((uintptr_t)library, 1, name);
	return CUDA_SUCCESS;
}

/* A library's part in a context is the library's number and the context's. */
CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	CUcontext current;

	cuCtxGetCurrent(&current);
	*module = (CUmodule)((uintptr_t)library + ((uintptr_t)current << 32));
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *size, CUlibrary library, const char *name)
{
	CUmodule module;

	cuLibraryGetModule(&module, library);
	return cuModuleGetGlobal_v2(address, size, module, name);
}

CUresult cuLibraryGetManaged(CUdeviceptr *address, size_t *size, CUlibrary library,
			     const char *name)
{
	(void)address, (void)size, (void)library, (void)name;
	return CUDA_ERROR_NOT_FOUND;
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
	const struct slot *slot = slot_of(kernel, 1);

	if (!slot)
		return CUDA_ERROR_INVALID_HANDLE;
	*library = (CUlibrary)slot->code;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
	const struct slot *slot = slot_of(kernel, 1);

	if (!slot)
		return CUDA_ERROR_INVALID_HANDLE;
	*name = slot->name;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	const struct slot *slot = slot_of(kernel, 1);
	CUmodule module;

	if (!slot)
		return CUDA_ERROR_INVALID_HANDLE;
	cuLibraryGetModule(&module, (CUlibrary)slot->code);
	for (struct slot *s = slots; s < slots + n_slots; s++) {
		if (s->code == (uintptr_t)module && strcmp(s->name, slot->name) == 0) {
			*function = (CUfunction)s;
			return CUDA_SUCCESS;
		}
	}
	*function = (CUfunction)slot_new((uintptr_t)module, 0, slot->name);
	return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function)
{
	const struct slot *slot = slot_of(function, 0);

	if (!slot)
		return CUDA_ERROR_INVALID_HANDLE;
	*module = (CUmodule)slot->code;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
	const struct slot *slot = slot_of(function, 0);

	if (!slot)
		return CUDA_ERROR_INVALID_HANDLE;
	*name = slot->name;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size)
{
	(void)function;
	if (index >= (size_t)null_driver.parameters)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = 8 * index;
	*size = 8;
	return CUDA_SUCCESS;
}

static int *attribute_of(struct slot *slot, CUfunction_attribute attribute)
{
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		return &slot->max_dynamic;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return &slot->carveout;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
		return &slot->cluster_width;
	default:
		return &slot->other;
	}
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
	struct slot *slot = slot_of(function, 0);

	if (!slot)
		return CUDA_ERROR_INVALID_HANDLE;
	*value = *attribute_of(slot, attribute);
	return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	struct slot *slot = slot_of(function, 0);

	if (!slot || value > null_driver.shared_max ||
	    (strcmp(slot->name, "form") == 0 && value > null_driver.form_shared_max))
		return CUDA_ERROR_INVALID_VALUE;
	*attribute_of(slot, attribute) = value;
	return CUDA_SUCCESS;
}

/* What it links is an ELF file of two bytes more than its header: how often it linked. */
static unsigned char linked[66];

CUresult cuLinkCreate_v2(unsigned n, CUjit_option *options, void **values, CUlinkState *state)
{
	(void)n, (void)options, (void)values;
	*state = (CUlinkState)(uintptr_t)atomic_fetch_add(&next_code, 0x100);
	return CUDA_SUCCESS;
}

CUresult cuLinkComplete(CUlinkState state, void **code, size_t *size)
{
	static const unsigned char magic[] = {0x7f, 'E', 'L', 'F', 2, 1, 1};

	(void)state;
	memcpy(linked, magic, sizeof(magic));
	linked[40] = 64; /* where sections begin */
	linked[58] = 2;  /* bytes of one */
	linked[60] = 1;  /* how many */
	linked[64]++;
	*code = linked;
	*size = sizeof(linked);
	return CUDA_SUCCESS;
}
