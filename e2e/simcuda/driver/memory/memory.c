/* Memory of the device and of the host. Device addresses are addresses of this process, so host and
 * device pointers of mapped memory are equal, as with unified addressing. */
#include "simcuda/driver/exec.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE        4096u
#define PITCH_ALIGN 512u

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

static bool of_device(enum range_kind kind)
{
	return kind == RANGE_DEVICE || kind == RANGE_POOL || kind == RANGE_MANAGED;
}

CUresult memory_map(struct range *range)
{
	size_t mapped = (range->size + PAGE - 1) & ~(size_t)(PAGE - 1);
	bool charged = of_device(range->kind);
	void *base;

	if (mapped < range->size || !range->size)
		return !range->size ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
	if (charged && machine_charge(&sim.machine, range->ctx->device->gpu, mapped))
		return CUDA_ERROR_OUT_OF_MEMORY;
	base = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED) {
		if (charged)
			machine_refund(&sim.machine, range->ctx->device->gpu, mapped);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	range->base = (uintptr_t)base;
	range->mapped = mapped;
	return CUDA_SUCCESS;
}

void memory_unmap(const struct range *range)
{
	if (!range->mapped)
		return;
	munmap((void *)range->base, range->mapped);
	if (of_device(range->kind))
		machine_refund(&sim.machine, range->ctx->device->gpu, range->mapped);
}

void range_free_context(struct context *ctx)
{
	struct range range;

	while (range_take(ctx, NULL, &range)) {
		if (range.pool)
			pool_take_back(&range);
		else
			memory_unmap(&range);
	}
}

CUresult memory_new(CUdeviceptr *out, struct context *ctx, size_t size, enum range_kind kind,
		    unsigned flags)
{
	struct range range = {.size = size, .kind = kind, .flags = flags, .ctx = ctx};
	CUresult r;

	RETURN_IF(memory_map(&range));
	r = range_add(&range);
	if (r) {
		memory_unmap(&range);
		return r;
	}
	*out = range.base;
	return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size)
{
	API_CONTEXT(ctx);

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(capture_allows());
	return memory_new(out, ctx, size, RANGE_DEVICE, 0);
}

CUresult cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned int flags)
{
	API_CONTEXT(ctx);

	if (!out || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(capture_allows());
	return memory_new(out, ctx, size, RANGE_MANAGED, flags);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
			    unsigned int element)
{
	API_CONTEXT(ctx);
	size_t row = (width + PITCH_ALIGN - 1) & ~(size_t)(PITCH_ALIGN - 1);

	if (!out || !pitch || (element != 4 && element != 8 && element != 16) || !width || !height)
		return CUDA_ERROR_INVALID_VALUE;
	if (row < width || height > SIZE_MAX / row)
		return CUDA_ERROR_OUT_OF_MEMORY;
	RETURN_IF(capture_allows());
	RETURN_IF(memory_new(out, ctx, row * height, RANGE_DEVICE, 0));
	*pitch = row;
	return CUDA_SUCCESS;
}

/* Waits for all work of the context, as the driver does. */
static CUresult free_range(CUdeviceptr address, bool device)
{
	struct context *ctx;
	struct range range;

	RETURN_IF(context_any(&ctx));
	if (!range_find(address, &range) || range.base != address || !range.mapped ||
	    range.given_up || (of_device(range.kind) || range.kind == RANGE_GRAPH) != device)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(capture_allows());
	if (!range.ctx->fault)
		RETURN_IF(context_wait(range.ctx));
	if (!range_remove(address, &range))
		return CUDA_ERROR_INVALID_VALUE; /* another thread did it meanwhile */
	if (range.pool)
		pool_take_back(&range);
	else
		memory_unmap(&range);
	return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
	API_ENTER();

	return address ? free_range(address, true) : CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	API_CONTEXT(ctx);
	uint64_t used = machine_used(&sim.machine, ctx->device->gpu);

	if (free_bytes)
		*free_bytes = sim.machine.config.memory - used;
	if (total)
		*total = sim.machine.config.memory;
	return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
	API_CONTEXT(ctx);
	struct range range;

	(void)ctx;
	if (!range_find(address, &range))
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = range.base;
	if (size)
		*size = range.size;
	return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **out, size_t size, unsigned int flags)
{
	API_CONTEXT(ctx);
	CUdeviceptr address;

	if (!out || !size ||
	    flags & ~(unsigned)(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |
				CU_MEMHOSTALLOC_WRITECOMBINED))
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(capture_allows());
	RETURN_IF(memory_new(&address, ctx, size, RANGE_HOST, flags));
	*out = (void *)address;
	return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void **out, size_t size)
{
	return cuMemHostAlloc(out, size, 0);
}

CUresult cuMemFreeHost(void *address)
{
	API_ENTER();

	return free_range((CUdeviceptr)address, false);
}

/* Faults the pages in, which also shows whether the access is allowed. A Linux kernel that cannot
 * do this answers EINVAL for all pages. */
static bool pages_allow(void *address, size_t size, bool write)
{
	static char good[2 * PAGE];
	const int advice = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
	uintptr_t first = (uintptr_t)address & ~(uintptr_t)(PAGE - 1);
	uintptr_t probe = ((uintptr_t)good + PAGE - 1) & ~(uintptr_t)(PAGE - 1);

	if (madvise((void *)first, (uintptr_t)address + size - first, advice) == 0)
		return true;
	return errno == EINVAL && madvise((void *)probe, PAGE, advice) < 0;
}

CUresult cuMemHostRegister_v2(void *address, size_t size, unsigned int flags)
{
	API_CONTEXT(ctx);
	struct range range = {.base = (uintptr_t)address,
			      .size = size,
			      .kind = RANGE_REGISTERED,
			      .flags = flags,
			      .ctx = ctx,
			      .read_only = flags & CU_MEMHOSTREGISTER_READ_ONLY};

	if (!address || !size || (uintptr_t)address + size < size ||
	    flags & ~(unsigned)(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
				CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_MEMHOSTREGISTER_IOMEMORY)
		return CUDA_ERROR_NOT_SUPPORTED;
	RETURN_IF(capture_allows());
	if (!pages_allow(address, size, !range.read_only))
		return CUDA_ERROR_INVALID_VALUE;
	return range_add(&range);
}

CUresult cuMemHostUnregister(void *address)
{
	API_ENTER();
	struct context *ctx;
	struct range range;

	RETURN_IF(context_any(&ctx));
	if (!range_find((uintptr_t)address, &range) || range.base != (uintptr_t)address ||
	    range.kind != RANGE_REGISTERED)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	RETURN_IF(capture_allows());
	if (!range.ctx->fault)
		RETURN_IF(context_wait(range.ctx));
	return range_remove(range.base, &range) ? CUDA_SUCCESS
						: CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *address, unsigned int flags)
{
	API_CONTEXT(ctx);
	struct range range;

	(void)ctx;
	if (!out || flags || !range_find((uintptr_t)address, &range) || of_device(range.kind))
		return CUDA_ERROR_INVALID_VALUE;
	*out = (CUdeviceptr)address;
	return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *out, void *address)
{
	API_CONTEXT(ctx);
	struct range range;

	(void)ctx;
	if (!out || !range_find((uintptr_t)address, &range) || range.kind != RANGE_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	*out = range.flags | CU_MEMHOSTALLOC_DEVICEMAP; /* always, with unified addressing */
	return CUDA_SUCCESS;
}
