/* Uses the GPU without libweir: opens the driver by its path and holds the GPU until the stop file
 * appears. Programs that look for libcuda.so.1 get libweir instead. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALL(name, ...)                                                            \
	do {                                                                       \
		__typeof__(&(name)) function = (__typeof__(&(name)))symbol(#name); \
		if (function(__VA_ARGS__) != CUDA_SUCCESS)                         \
			fail(#name);                                               \
	} while (0)

static void *driver;

static void fail(const char *what)
{
	fprintf(stderr, "bypass: %s fails\n", what);
	exit(1);
}

static void *symbol(const char *name)
{
	void *address = dlsym(driver, name);

	if (!address)
		fail(name);
	return address;
}

int main(int argc, char **argv)
{
	const char *path = getenv("WEIR_DRIVER");
	CUcontext context;
	CUdeviceptr memory;
	CUdevice device;

	driver = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	if (argc != 2 || !driver)
		fail(argc != 2 ? "an argument, the file to wait for," : "the driver");
	CALL(cuInit, 0);
	CALL(cuDeviceGet, &device, 0);
	CALL(cuDevicePrimaryCtxRetain, &context, device);
	CALL(cuCtxSetCurrent, context);
	CALL(cuMemAlloc_v2, &memory, 1 << 20);
	printf("bypass: at work\n");
	fflush(stdout);
	while (access(argv[1], F_OK) != 0)
		usleep(50000);
	return 0;
}
