/* Modules and their functions. */
#include "simcuda/driver/exec.h"
#include "simcuda/driver/library.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX   (256u << 20)
#define IMAGE_TAIL 16u

struct module *module_ref(struct module *m)
{
	m->refs++;
	return m;
}

void module_unref(struct module *m)
{
	if (!m || --m->refs)
		return;
	ptx_module_free(m->ptx);
	free(m->functions);
	free(m);
}

static bool add_functions(struct module *m)
{
	while (ptx_module_kernel_at(m->ptx, m->n_functions))
		m->n_functions++;
	m->functions = calloc(m->n_functions + 1, sizeof(*m->functions));
	if (!m->functions)
		return false;
	for (size_t i = 0; i < m->n_functions; i++) {
		struct function *f = &m->functions[i];

		f->module = m;
		f->kernel = ptx_module_kernel_at(m->ptx, i);
		f->max_dynamic_shared =
			(int)DEFAULT_SHARED - (int)ptx_kernel_static_shared(f->kernel);
		f->carveout = -1;
		f->handle = handle_new(HANDLE_FUNCTION, f);
		if (!f->handle)
			return false;
	}
	return true;
}

static void forget_handles(struct module *m)
{
	handle_free(m->handle);
	for (size_t i = 0; m->functions && i < m->n_functions; i++)
		handle_free(m->functions[i].handle);
}

CUresult module_new(struct module **out, struct context *ctx, struct ptx_module *ptx)
{
	struct module *m = calloc(1, sizeof(*m));
	struct range range = {.kind = RANGE_GLOBAL, .ctx = ctx};
	void *memory;
	CUresult r;

	if (!m) {
		ptx_module_free(ptx);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	m->refs = 1;
	m->ptx = ptx;
	m->ctx = ctx;
	m->handle = handle_new(HANDLE_MODULE, m);
	if (!m->handle || !add_functions(m)) {
		forget_handles(m);
		module_unref(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	ptx_module_memory(ptx, &memory, &range.size);
	range.base = (uintptr_t)memory;
	range.owner = m;
	r = machine_charge(&sim.machine, ctx->device->gpu, range.size) ? CUDA_ERROR_OUT_OF_MEMORY
								       : CUDA_SUCCESS;
	m->charge = r ? 0 : range.size;
	if (!r && range.size)
		r = range_add(&range);
	if (r) {
		machine_refund(&sim.machine, ctx->device->gpu, m->charge);
		forget_handles(m);
		module_unref(m);
		return r;
	}
	m->next = ctx->modules;
	if (m->next)
		m->next->prev = m;
	ctx->modules = m;
	*out = m;
	return CUDA_SUCCESS;
}

/* Graphs that use it may keep the code; its handle is invalid from here on. */
void module_unload(struct module *m)
{
	struct range range;

	forget_handles(m);
	while (range_take(m->ctx, m, &range))
		;
	machine_refund(&sim.machine, m->ctx->device->gpu, m->charge);
	if (m->prev)
		m->prev->next = m->next;
	else
		m->ctx->modules = m->next;
	if (m->next)
		m->next->prev = m->prev;
	module_unref(m);
}

CUresult image_load(struct ptx_module **out, const void *image, size_t size,
		    struct ptx_error *error)
{
	cleanup(freep) char *owned = NULL;
	const char *text;
	size_t length;

	RETURN_IF(image_find_ptx(image, size, &text, &length, &owned));
	switch (ptx_module_load(out, text, length, error)) {
	case 0:
		return CUDA_SUCCESS;
	case -ENOMEM:
		return CUDA_ERROR_OUT_OF_MEMORY;
	default:
		return CUDA_ERROR_INVALID_PTX;
	}
}

static CUresult load(CUmodule *out, const void *image, size_t size, struct ptx_error *error)
{
	struct ptx_module *ptx = NULL;
	struct context *ctx;
	struct module *m;

	if (atomic_load(&sim.state) != SIM_READY)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(image_load(&ptx, image, size, error)); /* without the lock: it may take long */

	cleanup(sim_leave) int entered __attribute__((unused)) = sim_enter();
	CUresult r = context_current(&ctx);

	if (!r)
		r = context_reach(ctx);
	if (r) {
		ptx_module_free(ptx);
		return r;
	}
	RETURN_IF(module_new(&m, ctx, ptx));
	*out = m->handle;
	return CUDA_SUCCESS;
}

/* Writes the error to the caller's log buffer, if there is one. */
void jit_log(unsigned n, const CUjit_option *options, void *const *values,
	     const struct ptx_error *error)
{
	char *buffer = NULL;
	size_t size = 0;

	for (unsigned i = 0; options && values && i < n; i++) {
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
			buffer = values[i];
		else if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
			size = (unsigned)(uintptr_t)values[i];
	}
	if (!buffer || !size)
		return;
	buffer[0] = '\0';
	if (error->message[0])
		snprintf(buffer, size, "line %d: %s", error->line, error->message);
}

CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
	struct ptx_error error = {0};

	return load(out, image, 0, &error);
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned int n, CUjit_option *options,
			    void **values)
{
	struct ptx_error error = {0};
	CUresult r = load(out, image, 0, &error);

	jit_log(n, options, values, &error);
	return r;
}

CUresult cuModuleLoadFatBinary(CUmodule *out, const void *image)
{
	struct ptx_error error = {0};

	return load(out, image, 0, &error);
}

/* Zeros behind the end terminate text. */
CUresult image_read(const char *path, char **out, size_t *size)
{
	cleanup(closep) int fd = -1;
	cleanup(freep) char *image = NULL;
	struct stat st;

	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return CUDA_ERROR_FILE_NOT_FOUND;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)FILE_MAX)
		return CUDA_ERROR_INVALID_IMAGE;
	image = calloc(1, (size_t)st.st_size + IMAGE_TAIL);
	if (!image)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (read(fd, image, (size_t)st.st_size) != (ssize_t)st.st_size)
		return CUDA_ERROR_INVALID_IMAGE;
	*size = (size_t)st.st_size + IMAGE_TAIL;
	*out = take(image);
	return CUDA_SUCCESS;
}

CUresult cuModuleLoad(CUmodule *out, const char *path)
{
	cleanup(freep) char *image = NULL;
	struct ptx_error error = {0};
	size_t size;

	RETURN_IF(image_read(path, &image, &size));
	return load(out, image, size, &error);
}

CUresult cuModuleUnload(CUmodule handle)
{
	API_ENTER();
	struct context *ctx;
	struct module *m = handle_get(HANDLE_MODULE, handle);

	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	if (m->library)
		return CUDA_ERROR_NOT_PERMITTED; /* the library's */
	ctx = m->ctx;
	if (!ctx->fault)
		RETURN_IF(context_wait(ctx));
	if (handle_get(HANDLE_MODULE, handle) != m)
		return CUDA_ERROR_INVALID_HANDLE; /* another thread did it meanwhile */
	module_unload(m);
	return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = CU_MODULE_EAGER_LOADING;
	return CUDA_SUCCESS;
}

struct function *module_function(struct module *m, const char *name)
{
	for (size_t i = 0; i < m->n_functions; i++)
		if (!strcmp(ptx_kernel_name(m->functions[i].kernel), name))
			return &m->functions[i];
	return NULL;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name)
{
	API_ENTER();
	struct module *m = handle_get(HANDLE_MODULE, handle);
	const struct function *f;

	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || !name)
		return CUDA_ERROR_INVALID_VALUE;
	f = module_function(m, name);
	if (!f)
		return CUDA_ERROR_NOT_FOUND;
	*out = f->handle;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned int *out, CUmodule handle)
{
	API_ENTER();
	const struct module *m = handle_get(HANDLE_MODULE, handle);

	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (unsigned)m->n_functions;
	return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *out, unsigned int n, CUmodule handle)
{
	API_ENTER();
	const struct module *m = handle_get(HANDLE_MODULE, handle);

	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || !n)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n && i < m->n_functions; i++)
		out[i] = m->functions[i].handle;
	return CUDA_SUCCESS;
}

CUresult module_global(struct module *m, const char *name, CUdeviceptr *address, size_t *bytes)
{
	void *base;
	size_t size;

	if (!ptx_module_global(m->ptx, name, &base, &size))
		return CUDA_ERROR_NOT_FOUND;
	if (address)
		*address = (CUdeviceptr)base;
	if (bytes)
		*bytes = size;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule handle,
			      const char *name)
{
	API_ENTER();
	struct module *m = handle_get(HANDLE_MODULE, handle);

	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!name || (!address && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return module_global(m, name, address, bytes);
}
