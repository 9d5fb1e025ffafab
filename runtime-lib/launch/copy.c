/* Copies to the GPU, which tell that a launch may come (early.h). */
#include "client/early.h"
#include "client/stream.h"

#include "weir/base.h"

static void begin(void)
{
	CUcontext context;
	struct client *client;

	if (!driver_ready() || real(cuCtxGetCurrent)(&context) != CUDA_SUCCESS || !context)
		return;
	client = client_find(context);
	if (client)
		early_copy(client);
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size)
{
	begin();
	return real(cuMemcpyHtoD_v2)(to, from, size);
}

EXPORT CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void *from, size_t size)
{
	begin();
	return real(cuMemcpyHtoD_v2_ptds)(to, from, size);
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
	begin();
	return real(cuMemcpyHtoDAsync_v2)(to, from, size, stream);
}

EXPORT CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void *from, size_t size,
					  CUstream stream)
{
	begin();
	return real(cuMemcpyHtoDAsync_v2_ptsz)(to, from, size, stream);
}
