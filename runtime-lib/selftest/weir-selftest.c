/* weir-selftest GPU-UUID: whether channel groups can be stopped and have slices here. It makes two
 * contexts on that GPU with a kernel each that only counts, and looks at the counters. Prints one
 * line and exits with 0: they can; 1: they cannot, or it could not be found out. The agent runs it
 * when it takes up a GPU. */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#define __CUDA_API_VERSION_INTERNAL /* declares every spelling */
#include <cuda.h>

#include "shim/ioctl.h"

#include "weir/base.h"

#define SECONDS   15 /* then a signal ends us */
#define SETTLE_NS (20 * NS_PER_MS)
#define LOOK_NS   (30 * NS_PER_MS)
#define RUN_NS    (2 * NS_PER_S)
#define SHARE_NS  (200 * NS_PER_MS)
#define SHORT_US  1000 /* slices that differ so much that other load does not hide it */
#define LONG_US   10000
#define RATIO     3
#define TRIES     3

/* One thread adds 1 to a word of the host until the next word is not 0. */
static const char kernel_ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
				 ".visible .entry count(.param .u64 words)\n{\n"
				 ".reg .u64 %at;\n.reg .u32 %n, %stop;\n.reg .pred %go;\n"
				 "ld.param.u64 %at, [words];\n"
				 "mov.u32 %n, 0;\n"
				 "AGAIN:\n"
				 "add.u32 %n, %n, 1;\n"
				 "st.volatile.global.u32 [%at], %n;\n"
				 "ld.volatile.global.u32 %stop, [%at+4];\n"
				 "setp.eq.u32 %go, %stop, 0;\n"
				 "@%go bra AGAIN;\n"
				 "ret;\n}\n";

#define FUNCTIONS(X)                    \
	X(cuInit)                       \
	X(cuDeviceGetCount)             \
	X(cuDeviceGet)                  \
	X(cuDeviceGetUuid)              \
	X(cuCtxCreate_v2)               \
	X(cuModuleLoadData)             \
	X(cuModuleGetFunction)          \
	X(cuMemHostAlloc)               \
	X(cuMemHostGetDevicePointer_v2) \
	X(cuLaunchKernel)

static struct {
#define X(name) __typeof__(&(name)) name;
	FUNCTIONS(X)
#undef X
} cuda;

struct counter {
	CUcontext context;
	volatile uint32_t *words; /* the count, and whether to stop */
	struct channel_group group;
	int fd;
};

static int fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	return 1;
}

static const char *load(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	if (!driver)
		return dlerror();
#define X(name)                                                  \
	cuda.name = (__typeof__(cuda.name))dlsym(driver, #name); \
	if (!cuda.name)                                          \
		return "the driver lacks " #name;
	FUNCTIONS(X)
#undef X
	return NULL;
}

/* GPU-01234567-89ab-... */
static void uuid_text(const CUuuid *uuid, char text[48])
{
	char *end = text + sprintf(text, "GPU");

	for (int i = 0; i < 16; i++) {
		bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
		end += sprintf(end, dash ? "-%02x" : "%02x", (uint8_t)uuid->bytes[i]);
	}
}

static bool find_device(const char *wanted, CUdevice *device)
{
	char text[48];
	CUuuid uuid;
	int n = 0;

	if (cuda.cuInit(0) != CUDA_SUCCESS)
		return false;
	cuda.cuDeviceGetCount(&n);
	for (int i = 0; i < n; i++) {
		if (cuda.cuDeviceGet(device, i) != CUDA_SUCCESS ||
		    cuda.cuDeviceGetUuid(&uuid, *device) != CUDA_SUCCESS)
			continue;
		uuid_text(&uuid, text);
		if (strcmp(text, wanted) == 0)
			return true;
	}
	return false;
}

static CUresult open_context(struct counter *counter, CUdevice device)
{
	CUresult r = cuda.cuCtxCreate_v2(&counter->context, 0, device);

	if (r == CUDA_SUCCESS)
		channel_groups_bind(counter->context);
	return r;
}

static bool has_group(struct counter *counter)
{
	size_t at = 0;

	return channel_groups_next(counter->context, &at, &counter->group, &counter->fd) &&
	       channel_group_is_device(counter->fd);
}

/* In the current context. */
static CUresult start(struct counter *counter)
{
	CUdeviceptr words;
	void *params[] = {&words};
	CUmodule module;
	CUfunction function;
	CUresult r = cuda.cuMemHostAlloc((void **)&counter->words, 4096, CU_MEMHOSTALLOC_DEVICEMAP);

	if (r == CUDA_SUCCESS) {
		counter->words[0] = counter->words[1] = 0;
		r = cuda.cuMemHostGetDevicePointer_v2(&words, (void *)counter->words, 0);
	}
	if (r == CUDA_SUCCESS)
		r = cuda.cuModuleLoadData(&module, kernel_ptx);
	if (r == CUDA_SUCCESS)
		r = cuda.cuModuleGetFunction(&function, module, "count");
	if (r == CUDA_SUCCESS)
		r = cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
	return r;
}

static void rest(uint64_t ns)
{
	struct timespec time = {.tv_sec = (time_t)(ns / NS_PER_S),
				.tv_nsec = (long)(ns % NS_PER_S)};

	while (nanosleep(&time, &time) < 0 && errno == EINTR)
		;
}

static uint32_t counted(const struct counter *counter, uint64_t ns)
{
	uint32_t before = counter->words[0];

	rest(ns);
	return counter->words[0] - before;
}

/* On a busy machine it may take a while until it does. */
static bool runs(const struct counter *counter)
{
	for (uint64_t waited = 0; waited < RUN_NS; waited += LOOK_NS)
		if (counted(counter, LOOK_NS))
			return true;
	return false;
}

/* What a call of channel-group.h says. */
static int refused(const char *what, int r)
{
	return r < 0 ? fail("%s: %s", what, strerror(-r))
		     : fail("%s: the driver says 0x%x", what, (unsigned)r);
}

static int test_stop(const struct counter *counter)
{
	if (!runs(counter))
		return fail("a kernel does not run");
	int r = channel_group_stop(counter->fd, &counter->group, true);
	if (r)
		return refused("groups cannot be stopped", r);
	rest(SETTLE_NS);
	uint32_t n = counted(counter, LOOK_NS);
	r = channel_group_stop(counter->fd, &counter->group, false);
	if (r)
		return refused("groups cannot go on", r);
	if (n)
		return fail("a stopped group runs");
	rest(SETTLE_NS);
	return runs(counter) ? 0 : fail("a group that may go on does not run");
}

/* How much each counts in a while. */
static void count_both(const struct counter *first, const struct counter *second, uint32_t n[2])
{
	uint32_t before[] = {first->words[0], second->words[0]};

	rest(SHARE_NS);
	n[0] = first->words[0] - before[0];
	n[1] = second->words[0] - before[1];
}

static int test_slices(const struct counter *first, const struct counter *second)
{
	int r = channel_group_set_slice(first->fd, &first->group, SHORT_US);
	uint32_t n[2];

	r = r ? r : channel_group_set_slice(second->fd, &second->group, LONG_US);
	if (r)
		return refused("slices cannot be set", r);
	rest(SETTLE_NS);
	/* Others may use the GPU meanwhile. */
	for (int i = 0; i < TRIES; i++) {
		count_both(first, second, n);
		if (n[1] > 0 && n[1] >= RATIO * (uint64_t)n[0])
			return 0;
	}
	return fail("slices have no effect: %u and %u in slices of %d and %d us", n[0], n[1],
		    SHORT_US, LONG_US);
}

static int test(CUdevice device)
{
	struct counter counters[2] = {0};
	CUresult r = CUDA_SUCCESS;
	int failed = 0;

	for (int i = 0; i < 2 && !failed; i++) {
		r = open_context(&counters[i], device);
		if (r == CUDA_SUCCESS && !has_group(&counters[i]))
			return fail("the driver makes no channel group that can be seen");
		if (r == CUDA_SUCCESS)
			r = start(&counters[i]);
		if (r != CUDA_SUCCESS)
			return fail("no context with a kernel: CUDA error %d", r);
		/* Alone, before there is another one. */
		failed = i == 0 ? test_stop(&counters[0]) : 0;
	}
	failed = failed ? failed : test_slices(&counters[0], &counters[1]);
	return failed ? failed : test_slices(&counters[1], &counters[0]);
}

int main(int argc, char **argv)
{
	CUdevice device;

	bool help = argc == 2 && strcmp(argv[1], "--help") == 0;
	if (argc != 2 || help) {
		puts("usage: weir-selftest GPU-UUID");
		return !help;
	}
	alarm(SECONDS);
	setvbuf(stdout, NULL, _IOLBF, 0);
	const char *wrong = load();
	if (wrong)
		return fail("%s", wrong);
	if (!find_device(argv[1], &device))
		return fail("CUDA does not list %s", argv[1]);
	int failed = test(device);
	if (!failed)
		puts("works");
	fflush(stdout);
	/* The kernels go with the process: no destructor of the driver may wait for them. */
	_exit(failed);
}
