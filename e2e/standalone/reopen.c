/* Opens the library that it is told as its driver, works, closes it and works on with what it
 * looked up before, and opens it again, three times. Threads of the library run all the time. The
 * program must not have it preloaded. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCKS     4u
#define THREADS    32u
#define WORDS      (BLOCKS * THREADS)
#define ITERATIONS 100u
#define LAUNCHES   20u
#define TIMES      3u
#define CLOSED_US  300000 /* long enough for looks of the library's threads */

extern const char spin_ptx[];

static __attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("reopen: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(1);
}

#define FUNCTIONS(X)                \
	X(cuInit)                   \
	X(cuDeviceGet)              \
	X(cuDevicePrimaryCtxRetain) \
	X(cuCtxSetCurrent)          \
	X(cuCtxSynchronize)         \
	X(cuModuleLoadData)         \
	X(cuModuleGetFunction)      \
	X(cuMemAlloc_v2)            \
	X(cuMemcpyHtoD_v2)          \
	X(cuMemcpyDtoH_v2)          \
	X(cuLaunchKernel)

static struct {
#define MEMBER(name) __typeof__(&(name)) name;
	FUNCTIONS(MEMBER)
#undef MEMBER
} cuda;

#define CU(call)                                                   \
	do {                                                       \
		CUresult result_ = cuda.call;                      \
		if (result_ != CUDA_SUCCESS)                       \
			fail("%s: error %d", #call, (int)result_); \
	} while (0)

static void *look_up(void *library, const char *name)
{
	void *function = dlsym(library, name);

	if (!function)
		fail("%s", dlerror());
	return function;
}

static void *open_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		fail("%s", dlerror());
#define LOOK_UP(name) cuda.name = (__typeof__(cuda.name))look_up(library, #name);
	FUNCTIONS(LOOK_UP)
#undef LOOK_UP
	return library;
}

static uint32_t stepped(uint32_t x, unsigned n)
{
	while (n--)
		x = x * 1664525u + 1013904223u;
	return x;
}

static struct {
	CUfunction spin;
	CUdeviceptr data;
} world;

static void set_up(void)
{
	CUcontext context;
	CUmodule module;
	CUdevice device;

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuCtxSetCurrent(context));
	CU(cuModuleLoadData(&module, spin_ptx));
	CU(cuModuleGetFunction(&world.spin, module, "spin"));
	CU(cuMemAlloc_v2(&world.data, WORDS * sizeof(uint32_t)));
}

/* @when: what has happened to the library. */
static void work(const char *when)
{
	uint32_t words[WORDS];
	unsigned iterations = ITERATIONS;
	void *parameters[] = {&world.data, &iterations};

	for (unsigned i = 0; i < WORDS; i++)
		words[i] = i;
	CU(cuMemcpyHtoD_v2(world.data, words, sizeof(words)));
	for (unsigned i = 0; i < LAUNCHES; i++)
		CU(cuLaunchKernel(world.spin, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, parameters,
				  NULL));
	CU(cuCtxSynchronize());
	CU(cuMemcpyDtoH_v2(words, world.data, sizeof(words)));
	for (unsigned i = 0; i < WORDS; i++)
		if (words[i] != stepped(i, ITERATIONS * LAUNCHES))
			fail("%s: word %u is wrong", when, i);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		fail("expected the path of a library");
	for (unsigned i = 0; i < TIMES; i++) {
		void *library = open_library(argv[1]);

		if (!i)
			set_up();
		work("open");
		if (dlclose(library))
			fail("%s", dlerror());
		usleep(CLOSED_US);
		work("closed");
	}
	printf("reopen: ok, %u times\n", TIMES);
	return 0;
}
