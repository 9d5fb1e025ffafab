/* Hooks of code that the program loads and unloads, and of the attributes that it gives its
 * kernels, which hold for their forms as well. */
#include "client/client.h"
#include "preempt/code.h"
#include "preempt/function.h"

static CUresult module_loaded(CUresult result, const CUmodule *module, const void *data,
			      const char *path)
{
	if (result == CUDA_SUCCESS && module)
		code_loaded(*module, false, data, path);
	return result;
}

static CUresult library_loaded(CUresult result, const CUlibrary *library, const void *data,
			       const char *path)
{
	if (result == CUDA_SUCCESS && library)
		code_loaded(*library, true, data, path);
	return result;
}

EXPORT CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	driver_ready();
	return module_loaded(real(cuModuleLoad)(module, path), module, NULL, path);
}

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	driver_ready();
	return module_loaded(real(cuModuleLoadData)(module, image), module, image, NULL);
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n,
				   CUjit_option *options, void **values)
{
	driver_ready();
	return module_loaded(real(cuModuleLoadDataEx)(module, image, n, options, values), module,
			     image, NULL);
}

EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	driver_ready();
	return module_loaded(real(cuModuleLoadFatBinary)(module, image), module, image, NULL);
}

EXPORT CUresult cuModuleUnload(CUmodule module)
{
	if (driver_ready())
		code_unload(module, function_unload);
	return real(cuModuleUnload)(module);
}

EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit,
				  void **jit_values, unsigned n_jit, CUlibraryOption *options,
				  void **values, unsigned n)
{
	driver_ready();
	return library_loaded(
		real(cuLibraryLoadData)(library, image, jit, jit_values, n_jit, options, values, n),
		library, image, NULL);
}

EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit,
				      void **jit_values, unsigned n_jit, CUlibraryOption *options,
				      void **values, unsigned n)
{
	driver_ready();
	return library_loaded(real(cuLibraryLoadFromFile)(library, path, jit, jit_values, n_jit,
							  options, values, n),
			      library, NULL, path);
}

EXPORT CUresult cuLibraryUnload(CUlibrary library)
{
	if (driver_ready())
		code_unload(library, function_unload);
	return real(cuLibraryUnload)(library);
}

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

EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	driver_ready();
	CUresult result = real(cuFuncSetAttribute)(function, attribute, value);
	struct client *client = result == CUDA_SUCCESS ? client_here() : NULL;

	if (client)
		function_changed(client, function);
	return result;
}

/* In all contexts of the device. */
EXPORT CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
				     CUdevice device)
{
	driver_ready();
	CUresult result = real(cuKernelSetAttribute)(attribute, value, kernel, device);

	for (size_t i = 0; result == CUDA_SUCCESS && i < CLIENTS_MAX; i++) {
		if (is_on(&clients[i], device))
			function_changed(&clients[i], (CUfunction)kernel);
	}
	return result;
}

EXPORT CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
	driver_ready();
	CUresult result = real(cuFuncSetCacheConfig)(function, config);
	struct client *client = result == CUDA_SUCCESS ? client_here() : NULL;

	if (client)
		function_prefers(client, function, config);
	return result;
}

EXPORT CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device)
{
	driver_ready();
	CUresult result = real(cuKernelSetCacheConfig)(kernel, config, device);

	for (size_t i = 0; result == CUDA_SUCCESS && i < CLIENTS_MAX; i++) {
		if (is_on(&clients[i], device))
			function_prefers(&clients[i], (CUfunction)kernel, config);
	}
	return result;
}
