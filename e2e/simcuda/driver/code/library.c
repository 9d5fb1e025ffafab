/* Libraries: code that belongs to no context. Each context that uses one gets a module of its own,
 * with variables of its own, when it first does. */
#include "simcuda/driver/exec.h"
#include "simcuda/driver/library.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void library_free(struct library *l)
{
	if (!l)
		return;
	for (size_t i = 0; l->kernels && i < l->n_kernels; i++)
		handle_free(l->kernels[i].handle);
	handle_free(l->handle);
	ptx_module_free(l->prototype);
	free(l->kernels);
	free(l->text);
	free(l);
}

static void library_freep(struct library **l)
{
	library_free(*l);
}

static struct library *library_new(const char *text, size_t length)
{
	struct library *l = calloc(1, sizeof(*l));
	char *copy = malloc(length + 1);

	if (!l || !copy) {
		free(l);
		free(copy);
		return NULL;
	}
	memcpy(copy, text, length);
	copy[length] = '\0';
	l->text = copy;
	l->length = length;
	return l;
}

static CUresult add_kernels(struct library *l)
{
	while (ptx_module_kernel_at(l->prototype, l->n_kernels))
		l->n_kernels++;
	l->kernels = calloc(l->n_kernels + 1, sizeof(*l->kernels));
	if (!l->kernels)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < l->n_kernels; i++) {
		struct kernel *k = &l->kernels[i];

		k->library = l;
		k->ptx = ptx_module_kernel_at(l->prototype, i);
		k->max_dynamic_shared = (int)DEFAULT_SHARED - (int)ptx_kernel_static_shared(k->ptx);
		k->handle = handle_new(HANDLE_KERNEL, k);
		if (!k->handle)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

static CUresult load(CUlibrary *out, const void *image, size_t size, struct ptx_error *error)
{
	cleanup(freep) char *owned = NULL;
	const char *text;
	size_t length;

	if (atomic_load(&sim.state) != SIM_READY)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(image_find_ptx(image, size, &text, &length, &owned));

	cleanup(sim_leave) int entered __attribute__((unused)) = sim_enter();
	cleanup(library_freep) struct library *l = library_new(text, length);

	if (!l)
		return CUDA_ERROR_OUT_OF_MEMORY;
	switch (ptx_module_load(&l->prototype, l->text, length, error)) {
	case 0:
		break;
	case -ENOMEM:
		return CUDA_ERROR_OUT_OF_MEMORY;
	default:
		return CUDA_ERROR_INVALID_PTX;
	}
	RETURN_IF(add_kernels(l));
	l->handle = handle_new(HANDLE_LIBRARY, l);
	if (!l->handle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = take(l)->handle;
	return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *out, const void *code, CUjit_option *jit, void **jit_values,
			   unsigned int n_jit, CUlibraryOption *options, void **values,
			   unsigned int n)
{
	struct ptx_error error = {0};
	CUresult r = load(out, code, 0, &error);

	(void)options; /* no option that exists changes anything here */
	(void)values;
	(void)n;
	jit_log(n_jit, jit, jit_values, &error);
	return r;
}

CUresult cuLibraryLoadFromFile(CUlibrary *out, const char *path, CUjit_option *jit,
			       void **jit_values, unsigned int n_jit, CUlibraryOption *options,
			       void **values, unsigned int n)
{
	cleanup(freep) char *image = NULL;
	struct ptx_error error = {0};
	size_t size;
	CUresult r;

	(void)options;
	(void)values;
	(void)n;
	RETURN_IF(image_read(path, &image, &size));
	r = load(out, image, size, &error);
	jit_log(n_jit, jit, jit_values, &error);
	return r;
}

static struct module *module_in(const struct library *l, const struct context *ctx)
{
	for (struct module *m = ctx->modules; m; m = m->next)
		if (m->library == l)
			return m;
	return NULL;
}

/* The names of the kernels' functions in this context. */
static void link_kernels(struct library *l, struct module *m)
{
	m->library = l;
	for (size_t i = 0; i < m->n_functions && i < l->n_kernels; i++) {
		m->functions[i].of = l->kernels[i].handle;
		m->functions[i].max_dynamic_shared = l->kernels[i].max_dynamic_shared;
	}
}

static CUresult have_module(struct module **out, struct library *l, struct context *ctx)
{
	struct ptx_module *ptx;
	struct ptx_error error;

	*out = module_in(l, ctx);
	if (*out)
		return CUDA_SUCCESS;
	if (ptx_module_load(&ptx, l->text, l->length, &error))
		return CUDA_ERROR_OUT_OF_MEMORY; /* cannot fail: it was checked before */
	RETURN_IF(module_new(out, ctx, ptx));
	link_kernels(l, *out);
	return CUDA_SUCCESS;
}

CUresult library_function(struct function **out, CUkernel kernel, struct context *ctx)
{
	const struct kernel *k = handle_get(HANDLE_KERNEL, kernel);
	struct module *m;

	if (!k)
		return CUDA_ERROR_INVALID_HANDLE;
	RETURN_IF(have_module(&m, k->library, ctx));
	*out = module_function(m, ptx_kernel_name(k->ptx));
	return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult wait_users(const struct library *l)
{
	for (struct context *ctx = sim.contexts; ctx; ctx = ctx->next)
		if (!ctx->fault && module_in(l, ctx))
			RETURN_IF(context_wait(ctx));
	return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary handle)
{
	API_ENTER();
	struct library *l = handle_get(HANDLE_LIBRARY, handle);
	struct module *m;

	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	handle_free(handle); /* so that no other thread unloads it while we wait */
	(void)wait_users(l);
	for (struct context *ctx = sim.contexts; ctx; ctx = ctx->next) {
		m = module_in(l, ctx);
		if (m)
			module_unload(m);
	}
	library_free(l);
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary handle, const char *name)
{
	API_ENTER();
	const struct library *l = handle_get(HANDLE_LIBRARY, handle);

	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || !name)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < l->n_kernels; i++) {
		if (!strcmp(ptx_kernel_name(l->kernels[i].ptx), name)) {
			*out = l->kernels[i].handle;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_NOT_FOUND;
}

CUresult cuLibraryGetKernelCount(unsigned int *out, CUlibrary handle)
{
	API_ENTER();
	const struct library *l = handle_get(HANDLE_LIBRARY, handle);

	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (unsigned)l->n_kernels;
	return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel *out, unsigned int n, CUlibrary handle)
{
	API_ENTER();
	const struct library *l = handle_get(HANDLE_LIBRARY, handle);

	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || !n)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n && i < l->n_kernels; i++)
		out[i] = l->kernels[i].handle;
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule *out, CUlibrary handle)
{
	API_CONTEXT(ctx);
	struct library *l = handle_get(HANDLE_LIBRARY, handle);
	struct module *m;

	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(have_module(&m, l, ctx));
	*out = m->handle;
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary handle, const char *name)
{
	API_CONTEXT(ctx);
	struct library *l = handle_get(HANDLE_LIBRARY, handle);
	struct module *m;

	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!name || (!address && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(have_module(&m, l, ctx));
	return module_global(m, name, address, bytes);
}

static CUresult get(struct kernel **out, CUkernel handle)
{
	*out = handle_get(HANDLE_KERNEL, handle);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelGetFunction(CUfunction *out, CUkernel handle)
{
	API_CONTEXT(ctx);
	struct function *f;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(library_function(&f, handle, ctx));
	*out = f->handle;
	return CUDA_SUCCESS;
}

API_TELLS(cuKernelGetLibrary, (OUT(CUlibrary), CUkernel handle), kernel, k, get(&k, handle),
	  k->library->handle)
API_TELLS(cuKernelGetName, (OUT(const char *), CUkernel handle), kernel, k, get(&k, handle),
	  ptx_kernel_name(k->ptx))

CUresult cuKernelGetParamInfo(CUkernel handle, size_t index, size_t *offset, size_t *size)
{
	API_ENTER();
	struct kernel *k;
	struct ptx_param param;

	RETURN_IF(get(&k, handle));
	if (!offset || index >= ptx_kernel_param_count(k->ptx))
		return CUDA_ERROR_INVALID_VALUE;
	param = ptx_kernel_param(k->ptx, index);
	*offset = param.offset;
	if (size)
		*size = param.size;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int *out, CUfunction_attribute attribute, CUkernel handle,
			      CUdevice dev)
{
	API_ENTER();
	struct kernel *k;
	struct device *d;

	RETURN_IF(device_get(&d, dev));
	RETURN_IF(get(&k, handle));
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	return kernel_attribute(out, attribute, k->ptx, k->max_dynamic_shared, -1);
}

/* Also for the contexts of the device that have the library already. */
CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle,
			      CUdevice dev)
{
	API_ENTER();
	struct kernel *k;
	struct device *d;
	int carveout;

	RETURN_IF(device_get(&d, dev));
	RETURN_IF(get(&k, handle));
	RETURN_IF(
		kernel_set_attribute(attribute, value, k->ptx, &k->max_dynamic_shared, &carveout));
	for (struct context *ctx = sim.contexts; ctx; ctx = ctx->next) {
		struct module *m = ctx->device == d ? module_in(k->library, ctx) : NULL;

		if (m)
			module_function(m, ptx_kernel_name(k->ptx))->max_dynamic_shared =
				k->max_dynamic_shared;
	}
	return CUDA_SUCCESS;
}

CUresult cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice dev)
{
	API_ENTER();
	struct kernel *k;
	struct device *d;

	RETURN_IF(device_get(&d, dev));
	RETURN_IF(get(&k, handle));
	return config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
