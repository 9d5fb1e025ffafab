/* Attributes that the program gives its kernels hold for their forms as well. */
#include "preempt/function.h"

static struct client *here(CUresult result)
{
	CUcontext context = NULL;

	return result == CUDA_SUCCESS && real(cuCtxGetCurrent)(&context) == CUDA_SUCCESS && context
		       ? client_find(context)
		       : NULL;
}

static bool is_on(const struct client *client, CUdevice device)
{
	return atomic_load(&client->state) == CLIENT_LIVE && client->device == device;
}

EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	driver_ready();
	CUresult result = real(cuFuncSetAttribute)(function, attribute, value);
	struct client *client = here(result);

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
	struct client *client = here(result);

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
