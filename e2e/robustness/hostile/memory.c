/* Ways around a memory limit, each of which asks for more than the limit in parts. The driver is
 * found at run time: where libweir is preloaded, it is libweir. */
#include "robustness/hostile/siege.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PARTS     4 /* of three quarters of the limit: the first may be had */
#define STRING(x) #x
/* The header's macros lead to the newest versions' names. */
#define CU(name, ...) (((__typeof__(&(name)))symbol(STRING(name)))(__VA_ARGS__))

static void *driver;
static size_t part;
static CUdevice device;
static CUcontext primary;

static void *symbol(const char *name)
{
	void *address = dlsym(driver, name);

	if (!address) {
		printf("hostile: the driver has no %s\n", name);
		exit(2);
	}
	return address;
}

static void must(const char *what, CUresult result)
{
	if (result != CUDA_SUCCESS) {
		printf("hostile: %s: error %d\n", what, (int)result);
		exit(2);
	}
}

static void begin(void)
{
	size_t total;

	driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	if (!driver) {
		printf("hostile: %s\n", dlerror());
		exit(2);
	}
	must("cuInit", CU(cuInit, 0));
	must("cuDeviceGet", CU(cuDeviceGet, &device, 0));
	must("cuDevicePrimaryCtxRetain", CU(cuDevicePrimaryCtxRetain, &primary, device));
	must("cuCtxSetCurrent", CU(cuCtxSetCurrent, primary));
	must("cuDeviceTotalMem",
	     CU(cuDeviceTotalMem, &total, device)); /* the limit, if there is one */
	part = total / 4 * 3;
}

/* Each way makes one part. */

static bool by_destroying(unsigned i)
{
	CUdeviceptr address;

	if (i > 0)
		CU(cuCtxDestroy, primary);
	return CU(cuMemAlloc, &address, part) == CUDA_SUCCESS;
}

static bool by_variables(unsigned i)
{
	CUmodule module;
	char text[256];

	snprintf(text, sizeof(text),
		 ".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .align 8 .b8 "
		 "v%u[%zu];\n"
		 ".visible .entry k%u()\n{\n\tret;\n}\n",
		 i, part, i);
	return CU(cuModuleLoadData, &module, text) == CUDA_SUCCESS;
}

static bool by_heap(unsigned i)
{
	CUdeviceptr address;

	if (i == 0)
		return CU(cuCtxSetLimit, CU_LIMIT_MALLOC_HEAP_SIZE, part) == CUDA_SUCCESS;
	return CU(cuMemAlloc, &address, part) == CUDA_SUCCESS;
}

/* Launched, but nothing is synchronised. */
static bool by_graphs(unsigned i)
{
	CUDA_MEM_ALLOC_NODE_PARAMS want = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = part};
	static CUstream stream;
	CUgraphExec ready;
	CUgraphNode node;
	CUgraph graph;

	if (i == 0)
		must("cuStreamCreate", CU(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING));
	must("cuGraphCreate", CU(cuGraphCreate, &graph, 0));
	return CU(cuGraphAddMemAllocNode, &node, graph, NULL, 0, &want) == CUDA_SUCCESS &&
	       CU(cuGraphInstantiate, &ready, graph, 0) == CUDA_SUCCESS &&
	       CU(cuGraphLaunch, ready, stream) == CUDA_SUCCESS;
}

static const struct way {
	const char *name;
	bool (*take)(unsigned i);
} ways[] = {
	{"destroying the primary context", by_destroying},
	{"variables of modules", by_variables},
	{"a heap of kernels", by_heap},
	{"graphs that are not waited for", by_graphs},
};

/* In a process of its own, whose memory goes with it. Returns how many parts it got. */
static unsigned try_way(const struct way *way)
{
	int status = 0;
	pid_t child = fork();

	if (child < 0)
		cannot("fork");
	if (child == 0) {
		unsigned got = 0;
		begin();
		for (unsigned i = 0; i < PARTS; i++)
			got += way->take(i);
		_exit((int)got << 2);
	}
	waitpid(child, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) == 2)
		exit(2);
	return (unsigned)WEXITSTATUS(status) >> 2;
}

/* The way that leads to more than the limit; NULL: none. Needs a limit. */
static const char *find_way(void)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (try_way(&ways[i]) > 1)
			return ways[i].name;
	return NULL;
}

void attack_memory(void)
{
	const char *way = find_way();

	if (way)
		harm("more than the limit by %s", way);
}

/* Says once what it finds. */
void siege_memory(void)
{
	for (bool said = false;; siege_ready()) {
		const char *way = find_way();
		if (!way || said)
			continue;
		printf("hostile: more than the limit by %s\n", way);
		fflush(stdout);
		said = true;
	}
}
