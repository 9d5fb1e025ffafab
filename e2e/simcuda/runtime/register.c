/* The code that compilers register before main(), and launches of it. Code is loaded when a launch
 * or a copy first needs it. Registration has no lock: it comes from constructors. */
#include "simcuda/runtime/runtime.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector_types.h>

struct image {
	const void *data;
	CUlibrary library;
	struct image *next;
};

/* A kernel or a variable, by the address that the host's code has for it. */
struct symbol {
	const void *host;
	const char *name;
	struct image *image;
	struct symbol *next;
};

static struct image *images;
static struct symbol *symbols;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static void *registered(size_t size)
{
	void *memory = calloc(1, size);

	if (!memory) {
		fputs("simulated CUDA runtime: no memory before main()\n", stderr);
		abort();
	}
	return memory;
}

API void **__cudaRegisterFatBinary(void *data);
API void **__cudaRegisterFatBinary(void *data)
{
	struct image *image = registered(sizeof(*image));

	*image = (struct image){.data = data, .next = images};
	images = image;
	return (void **)image;
}

API void __cudaRegisterFatBinaryEnd(void **handle);
API void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

/* The driver ends with the process. */
API void __cudaUnregisterFatBinary(void **handle);
API void __cudaUnregisterFatBinary(void **handle)
{
	(void)handle;
}

static void add_symbol(void **handle, const void *host, const char *name)
{
	struct symbol *symbol = registered(sizeof(*symbol));

	*symbol = (struct symbol){host, name, (struct image *)handle, symbols};
	symbols = symbol;
}

API void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
				int limit, struct uint3 *thread, struct uint3 *block,
				struct dim3 *block_size, struct dim3 *grid_size, int *warp);
API void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
				int limit, struct uint3 *thread, struct uint3 *block,
				struct dim3 *block_size, struct dim3 *grid_size, int *warp)
{
	(void)device, (void)limit, (void)thread, (void)block;
	(void)block_size, (void)grid_size, (void)warp;
	add_symbol(handle, host, name);
}

API void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
			   size_t size, int constant, int global);
API void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
			   size_t size, int constant, int global)
{
	(void)device, (void)external, (void)size, (void)constant, (void)global;
	add_symbol(handle, host, name);
}

static const struct symbol *find(const void *host)
{
	const struct symbol *s = symbols;

	while (s && s->host != host)
		s = s->next;
	return s;
}

static CUresult load(struct image *image)
{
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&loading);
	if (!image->library)
		result = cuLibraryLoadData(&image->library, image->data, NULL, NULL, 0, NULL, NULL,
					   0);
	pthread_mutex_unlock(&loading);
	return result;
}

cudaError_t runtime_variable(CUdeviceptr *out, const void *host)
{
	const struct symbol *s = find(host);
	cudaError_t error;

	if (!s)
		return runtime_result((CUresult)cudaErrorInvalidSymbol);
	error = RUNTIME_CALL(load(s->image));
	return error ? error
		     : runtime_result(cuLibraryGetGlobal(out, NULL, s->image->library, s->name));
}

API cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *host);
API cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *host)
{
	const struct symbol *s = find(host);
	cudaError_t error;

	if (!s)
		return runtime_result((CUresult)cudaErrorInvalidDeviceFunction);
	error = RUNTIME_CALL(load(s->image));
	return error ? error
		     : runtime_result(
			       cuLibraryGetKernel((CUkernel *)out, s->image->library, s->name));
}

/* What stands in <<<...>>>, between the two calls around the evaluation of the arguments. */
static __thread struct {
	struct dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
} configuration;

API unsigned __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared,
					 cudaStream_t stream);
API unsigned __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared,
					 cudaStream_t stream)
{
	configuration.grid = grid;
	configuration.block = block;
	configuration.shared = shared;
	configuration.stream = stream;
	return 0;
}

API cudaError_t __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared,
					   cudaStream_t *stream);
API cudaError_t __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared,
					   cudaStream_t *stream)
{
	*grid = configuration.grid;
	*block = configuration.block;
	*shared = configuration.shared;
	*stream = configuration.stream;
	return cudaSuccess;
}

#define LAUNCH(name, in)                                                                        \
	API cudaError_t name(cudaKernel_t kernel, struct dim3 grid, struct dim3 block,          \
			     void **arguments, size_t shared, cudaStream_t stream);             \
	API cudaError_t name(cudaKernel_t kernel, struct dim3 grid, struct dim3 block,          \
			     void **arguments, size_t shared, cudaStream_t stream)              \
	{                                                                                       \
		return RUNTIME_CALL(cuLaunchKernel((CUfunction)kernel, grid.x, grid.y, grid.z,  \
						   block.x, block.y, block.z, (unsigned)shared, \
						   in, arguments, NULL));                       \
	}
LAUNCH(__cudaLaunchKernel, stream)
LAUNCH(__cudaLaunchKernel_ptsz, per_thread(stream))

API cudaError_t cudaLaunchCooperativeKernel(const void *host, struct dim3 grid, struct dim3 block,
					    void **arguments, size_t shared, cudaStream_t stream);
API cudaError_t cudaLaunchCooperativeKernel(const void *host, struct dim3 grid, struct dim3 block,
					    void **arguments, size_t shared, cudaStream_t stream)
{
	cudaKernel_t kernel = NULL;
	cudaError_t error = __cudaGetKernel(&kernel, host);

	return error ? error
		     : runtime_result(cuLaunchCooperativeKernel(
			       (CUfunction)kernel, grid.x, grid.y, grid.z, block.x, block.y,
			       block.z, (unsigned)shared, stream, arguments));
}

API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, const void *host,
								       int block, size_t shared,
								       unsigned flags);
API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, const void *host,
								       int block, size_t shared,
								       unsigned flags)
{
	cudaKernel_t kernel = NULL;
	cudaError_t error = __cudaGetKernel(&kernel, host);

	return error ? error
		     : runtime_result(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
			       out, (CUfunction)kernel, block, shared, flags));
}
