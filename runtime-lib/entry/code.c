/* Hooks of code that the program loads and unloads, and of the attributes that it gives its
 * kernels, which hold for their forms as well. */
#include "client/client.h"
#include "memory/memory.h"
#include "preempt/code.h"
#include "preempt/function.h"

#include "weir/transform.h"

/* Bytes of the device's memory that the variables of an image take. */
static uint64_t variables(const void *image, size_t size)
{
	int devices = 0;

	image = image_extent(image, &size);
	if (!image)
		return 0; /* the driver refuses it */
	bool alone = real(cuDeviceGetCount)(&devices) == CUDA_SUCCESS && devices == 1;
	return weir_image_variables(image, size, alone ? driver_capability(0) : 0);
}

/* @code: the parameter that receives the handle; @data or @path: where the code comes from. */
#define LOADS(name, code, library, parameters, arguments, data, path)                             \
	EXPORT CUresult name parameters                                                           \
	{                                                                                         \
		struct memory_claim claim = {0};                                                  \
		size_t size = 0;                                                                  \
		cleanup(freep) char *file = (path) ? image_read(path, &size) : NULL;              \
		const void *from = (path) ? file : (data);                                        \
                                                                                                  \
		if ((path) && !file) /* what is no regular file has no size */                    \
			return CUDA_ERROR_FILE_NOT_FOUND;                                         \
		if (driver_ready() && !memory_claim_code(&claim, library, variables(from, size))) \
			return CUDA_ERROR_OUT_OF_MEMORY;                                          \
		driver_waits();                                                                   \
		CUresult result = real(name) arguments;                                           \
		bool done = result == CUDA_SUCCESS && (code);                                     \
		if (done && from)                                                                 \
			code_loaded(*(code), library, from, size);                                \
		return memory_made(&claim, result, RECORD_CODE, done ? (uintptr_t) * (code) : 0); \
	}
#define UNLOADS(name, type)                                                     \
	EXPORT CUresult name(type code)                                         \
	{                                                                       \
		struct record record;                                           \
		bool known = table_take(RECORD_CODE, (uintptr_t)code, &record); \
                                                                                \
		if (driver_ready())                                             \
			code_unload(code, function_unload);                     \
		driver_waits();                                                 \
		CUresult result = real(name)(code);                             \
		return known ? memory_released(&record, result) : result;       \
	}
#define FROM_IMAGE (CUmodule * module, const void *image)
#define LIBRARY(source)                                                                      \
	(CUlibrary * library, source, CUjit_option * jit, void **jit_values, unsigned n_jit, \
	 CUlibraryOption *options, void **values, unsigned n)
LOADS(cuModuleLoad, module, false, (CUmodule * module, const char *path), (module, path), NULL,
      path)
LOADS(cuModuleLoadData, module, false, FROM_IMAGE, (module, image), image, NULL)
LOADS(cuModuleLoadDataEx, module, false,
      (CUmodule * module, const void *image, unsigned n, CUjit_option *options, void **values),
      (module, image, n, options, values), image, NULL)
LOADS(cuModuleLoadFatBinary, module, false, FROM_IMAGE, (module, image), image, NULL)
LOADS(cuLibraryLoadData, library, true, LIBRARY(const void *image),
      (library, image, jit, jit_values, n_jit, options, values, n), image, NULL)
LOADS(cuLibraryLoadFromFile, library, true, LIBRARY(const char *path),
      (library, path, jit, jit_values, n_jit, options, values, n), NULL, path)
UNLOADS(cuModuleUnload, CUmodule)
UNLOADS(cuLibraryUnload, CUlibrary)

EXPORT CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	driver_ready();
	CUresult result = real(cuLibraryGetModule)(module, library);

	if (result == CUDA_SUCCESS && module && *module)
		code_part_of(library, *module);
	return result;
}

EXPORT CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	CUlibrary library = NULL;
	CUmodule module = NULL;

	driver_ready();
	CUresult result = real(cuKernelGetFunction)(function, kernel);
	if (result == CUDA_SUCCESS && function &&
	    real(cuKernelGetLibrary)(&library, kernel) == CUDA_SUCCESS && library &&
	    real(cuFuncGetModule)(&module, *function) == CUDA_SUCCESS && module)
		code_part_of(library, module);
	return result;
}

static bool is_on(const struct client *client, CUdevice device)
{
	return atomic_load(&client->state) == CLIENT_LIVE && client->device == device;
}

/* @tell is called for the @client of the current context; */
#define CHANGES(name, parameters, arguments, tell)                                     \
	EXPORT CUresult name parameters                                                \
	{                                                                              \
		driver_ready();                                                        \
		CUresult result = real(name) arguments;                                \
		struct client *client = result == CUDA_SUCCESS ? client_here() : NULL; \
                                                                                       \
		if (client)                                                            \
			tell;                                                          \
		return result;                                                         \
	}
/* or for each client of the device. */
#define CHANGES_ON_DEVICE(name, parameters, arguments, tell)                 \
	EXPORT CUresult name parameters                                      \
	{                                                                    \
		driver_ready();                                              \
		CUresult result = real(name) arguments;                      \
                                                                             \
		client_for_each (client) {                                   \
			if (result == CUDA_SUCCESS && is_on(client, device)) \
				tell;                                        \
		}                                                            \
		return result;                                               \
	}
CHANGES(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value),
	(function, attribute, value), function_changed(client, function))
CHANGES_ON_DEVICE(cuKernelSetAttribute,
		  (CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device),
		  (attribute, value, kernel, device), function_changed(client, (CUfunction)kernel))
CHANGES(cuFuncSetCacheConfig, (CUfunction function, CUfunc_cache config), (function, config),
	function_prefers(client, function, config))
CHANGES_ON_DEVICE(cuKernelSetCacheConfig, (CUkernel kernel, CUfunc_cache config, CUdevice device),
		  (kernel, config, device), function_prefers(client, (CUfunction)kernel, config))
