#include "workloads/memory/ways.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/base.h>

#define STACK 1024u      /* bytes, by default */
#define HEAP  (8u << 20) /* the same */
#define FIFO  (1u << 20)
/* Of arrays, in texels: a device takes at most 32768 by 32768 with mipmaps, and 16384 slices. */
#define ROW    8192u
#define SLICE  256u
#define TEXEL  16u /* bytes */
#define SUFFIX ".visible .entry k() { ret; }\n"

static CUresult take_alloc(struct taker *t, struct item *item)
{
	return cuMemAlloc(&item->address, t->piece);
}

static CUresult take_managed(struct taker *t, struct item *item)
{
	return cuMemAllocManaged(&item->address, t->piece, CU_MEM_ATTACH_GLOBAL);
}

static CUresult take_pitch(struct taker *t, struct item *item)
{
	size_t pitch;

	return cuMemAllocPitch(&item->address, &pitch, 4096, t->piece / 4096, 4);
}

static CUresult take_async(struct taker *t, struct item *item)
{
	return cuMemAllocAsync(&item->address, t->piece, t->stream);
}

static CUresult take_pool(struct taker *t, struct item *item)
{
	return cuMemAllocFromPoolAsync(&item->address, t->piece, t->pool, t->stream);
}

/* In a context that is not the primary one. */
static CUresult take_elsewhere(struct taker *t, struct item *item)
{
	CU(cuCtxPushCurrent(t->other));
	CUresult result = cuMemAlloc(&item->address, t->piece);
	CU(cuCtxPopCurrent(NULL));
	return result;
}

static void drop_address(struct taker *t, struct item *item)
{
	(void)t;
	CU(cuMemFree(item->address));
}

/* Never mapped: the handle has it. */
static CUresult take_handle(struct taker *t, struct item *item)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
					  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

	return cuMemCreate(&item->handle, t->piece, &properties, 0);
}

static void drop_handle(struct taker *t, struct item *item)
{
	(void)t;
	CU(cuMemRelease(item->handle));
}

static CUresult take_array(struct taker *t, struct item *item)
{
	CUDA_ARRAY_DESCRIPTOR array = {.Width = ROW,
				       .Height = t->piece / (ROW * TEXEL),
				       .Format = CU_AD_FORMAT_FLOAT,
				       .NumChannels = 4};

	return cuArrayCreate(&item->array, &array);
}

static CUresult take_cube(struct taker *t, struct item *item)
{
	CUDA_ARRAY3D_DESCRIPTOR cube = {.Width = SLICE,
					.Height = SLICE,
					.Depth = t->piece / (SLICE * SLICE * TEXEL),
					.Format = CU_AD_FORMAT_FLOAT,
					.NumChannels = 4};

	return cuArray3DCreate(&item->array, &cube);
}

static void drop_array(struct taker *t, struct item *item)
{
	(void)t;
	CU(cuArrayDestroy(item->array));
}

static CUresult take_levels(struct taker *t, struct item *item)
{
	CUDA_ARRAY3D_DESCRIPTOR first = {.Width = ROW,
					 .Height = t->piece / (ROW * TEXEL),
					 .Format = CU_AD_FORMAT_FLOAT,
					 .NumChannels = 4};

	return cuMipmappedArrayCreate(&item->levels, &first, 4);
}

static void drop_levels(struct taker *t, struct item *item)
{
	(void)t;
	CU(cuMipmappedArrayDestroy(item->levels));
}

static CUresult take_module(struct taker *t, struct item *item)
{
	return cuModuleLoadData(&item->module, t->ptx);
}

static CUresult take_module_with_options(struct taker *t, struct item *item)
{
	return cuModuleLoadDataEx(&item->module, t->ptx, 0, NULL, NULL);
}

static CUresult take_fatbin(struct taker *t, struct item *item)
{
	return cuModuleLoadFatBinary(&item->module, &t->fatbin);
}

static CUresult take_file(struct taker *t, struct item *item)
{
	char path[] = "/tmp/memory-ways-XXXXXX";
	int fd = mkstemp(path);

	if (fd < 0 || write(fd, t->ptx, strlen(t->ptx)) != (ssize_t)strlen(t->ptx))
		workload_fail("a file in /tmp");
	close(fd);
	CUresult result = cuModuleLoad(&item->module, path);
	unlink(path);
	return result;
}

static void drop_module(struct taker *t, struct item *item)
{
	(void)t;
	CU(cuModuleUnload(item->module));
}

/* Twice a piece: its variable is used in both contexts. */
static CUresult take_library(struct taker *t, struct item *item)
{
	CUdeviceptr here, there;
	size_t size;
	CUresult result = cuLibraryLoadData(&item->library, t->ptx, NULL, NULL, 0, NULL, NULL, 0);

	if (result != CUDA_SUCCESS)
		return result;
	CU(cuLibraryGetGlobal(&here, &size, item->library, "big"));
	CU(cuCtxPushCurrent(t->other));
	CU(cuLibraryGetGlobal(&there, &size, item->library, "big"));
	CU(cuCtxPopCurrent(NULL));
	if (here == there)
		workload_fail("one variable in two contexts");
	return CUDA_SUCCESS;
}

static void drop_library(struct taker *t, struct item *item)
{
	(void)t;
	CU(cuLibraryUnload(item->library));
}

/* Launches the graph, and waits for nothing. */
static CUresult launch(struct taker *t, struct item *item, CUresult built)
{
	CUresult result = built ? built : cuGraphInstantiate(&item->exec, item->graph, 0);

	if (result == CUDA_SUCCESS)
		CU(cuGraphLaunch(item->exec, t->stream));
	else
		CU(cuGraphDestroy(item->graph));
	return result;
}

static const CUmemPoolProps pinned = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

static CUresult take_graph(struct taker *t, struct item *item)
{
	CUDA_MEM_ALLOC_NODE_PARAMS parameters = {.poolProps = pinned, .bytesize = t->piece};
	CUgraphNode node;

	CU(cuGraphCreate(&item->graph, 0));
	CUresult result = cuGraphAddMemAllocNode(&node, item->graph, NULL, 0, &parameters);
	item->address = parameters.dptr;
	return launch(t, item, result);
}

static CUresult take_node(struct taker *t, struct item *item)
{
	CUgraphNodeParams parameters = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
					.alloc = {.poolProps = pinned, .bytesize = t->piece}};
	CUgraphNode node;

	CU(cuGraphCreate(&item->graph, 0));
	CUresult result = cuGraphAddNode(&node, item->graph, NULL, NULL, 0, &parameters);
	item->address = parameters.alloc.dptr;
	return launch(t, item, result);
}

static CUresult take_captured(struct taker *t, struct item *item)
{
	CU(cuStreamBeginCapture(t->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	CUresult result = cuMemAllocAsync(&item->address, t->piece, t->stream);
	CU(cuStreamEndCapture(t->stream, &item->graph));
	return launch(t, item, result);
}

/* What a graph has allocated outlives it, unless it is freed. */
static void drop_graph(struct taker *t, struct item *item)
{
	CU(cuStreamSynchronize(t->stream));
	CU(cuMemFree(item->address));
	CU(cuGraphExecDestroy(item->exec));
	CU(cuGraphDestroy(item->graph));
	CU(cuDeviceGraphMemTrim(t->workload->device));
}

/* One more piece than before. A driver with a greatest size of its own does less: then it is not a
 * way to take so much. */
static CUresult enlarge(CUlimit limit, size_t by)
{
	size_t size, now;

	CU(cuCtxGetLimit(&size, limit));
	CUresult result = cuCtxSetLimit(limit, size + by);
	if (result != CUDA_SUCCESS)
		return result;
	CU(cuCtxGetLimit(&now, limit));
	if (now >= size + by)
		return CUDA_SUCCESS;
	CU(cuCtxSetLimit(limit, size));
	return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult take_heap(struct taker *t, struct item *item)
{
	(void)item;
	return enlarge(CU_LIMIT_MALLOC_HEAP_SIZE, t->piece);
}

static CUresult take_fifo(struct taker *t, struct item *item)
{
	(void)item;
	return enlarge(CU_LIMIT_PRINTF_FIFO_SIZE, t->piece);
}

static CUresult take_stack(struct taker *t, struct item *item)
{
	(void)item;
	return enlarge(CU_LIMIT_STACK_SIZE, t->stack);
}

static void drop_heap(struct taker *t, struct item *item)
{
	(void)t, (void)item;
	CU(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, HEAP));
}

static void drop_fifo(struct taker *t, struct item *item)
{
	(void)t, (void)item;
	CU(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, FIFO));
}

static void drop_stack(struct taker *t, struct item *item)
{
	(void)t, (void)item;
	CU(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, STACK));
}

/* A primary context is not destroyed, and what it has stays charged. */
static CUresult take_after_destroy(struct taker *t, struct item *item)
{
	if (cuCtxDestroy(t->workload->context) == CUDA_SUCCESS)
		workload_fail("a primary context was destroyed");
	return cuMemAlloc(&item->address, t->piece);
}

const struct way ways[] = {
	{"cuMemAlloc", take_alloc, drop_address},
	{"cuMemAllocManaged", take_managed, drop_address},
	{"cuMemAllocPitch", take_pitch, drop_address},
	{"cuMemAllocAsync", take_async, drop_address},
	{"cuMemAllocFromPoolAsync", take_pool, drop_address},
	{"another-context", take_elsewhere, drop_address},
	{"cuCtxDestroy", take_after_destroy, drop_address},
	{"cuMemCreate", take_handle, drop_handle},
	{"cuArrayCreate", take_array, drop_array},
	{"cuArray3DCreate", take_cube, drop_array},
	{"cuMipmappedArrayCreate", take_levels, drop_levels},
	{"cuModuleLoadData", take_module, drop_module},
	{"cuModuleLoadDataEx", take_module_with_options, drop_module},
	{"cuModuleLoadFatBinary", take_fatbin, drop_module},
	{"cuModuleLoad", take_file, drop_module},
	{"cuLibraryLoadData", take_library, drop_library},
	{"cuGraphAddMemAllocNode", take_graph, drop_graph},
	{"cuGraphAddNode", take_node, drop_graph},
	{"captured-graph", take_captured, drop_graph},
	{"heap", take_heap, drop_heap},
	{"printf", take_fifo, drop_fifo},
	{"stack", take_stack, drop_stack},
};
const size_t n_ways = countof(ways);

void taker_open(struct taker *t)
{
	struct workload *w = t->workload;
	int threads;

	workload_open(w, NULL);
	CU(cuDeviceTotalMem(&t->limit, w->device));
	CU(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
				w->device));
	t->piece = w->size;
	t->stack = t->piece / ((size_t)threads * (size_t)w->sm_count) / 16 * 16;
	snprintf(t->ptx, sizeof(t->ptx),
		 ".version 8.0\n.target sm_70\n.address_size 64\n"
		 ".visible .global .align 8 .b8 big[%zu];\n" SUFFIX,
		 t->piece);
	t->fatbin.head = (struct fatbin_container){FATBIN_MAGIC, 1, sizeof(t->fatbin.head),
						   sizeof(t->fatbin) - sizeof(t->fatbin.head)};
	t->fatbin.entry = (struct fatbin_entry){.kind = FATBIN_PTX,
						.version = 0x101,
						.header_size = sizeof(t->fatbin.entry),
						.payload_size = sizeof(t->fatbin.ptx),
						.sm = 70};
	memcpy(t->fatbin.ptx, t->ptx, sizeof(t->ptx));
	CU(cuCtxCreate(&t->other, NULL, 0, w->device));
	CU(cuCtxSetCurrent(w->context));
	CU(cuStreamCreate(&t->stream, CU_STREAM_NON_BLOCKING));
	CU(cuMemPoolCreate(&t->pool, &pinned));
}
