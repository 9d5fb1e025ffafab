/* Virtual memory management: physical memory (a memfd) is created, mapped to reserved addresses,
 * and made accessible. A mapping keeps its memory alive after the handle is released. */
#include "simcuda/driver/exec.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define GRANULARITY (2u << 20)

struct physical {
	CUmemGenericAllocationHandle handle; /* 0: released */
	CUmemAllocationProp prop;
	unsigned device;
	unsigned handles, mappings;
	size_t size;
	int fd;
	bool charged; /* to this process; imported memory is charged to its creator */
};

struct reservation {
	uintptr_t base;
	size_t size;
	struct reservation *next;
};

static struct reservation *reservations;

static void *as_pointer(CUmemGenericAllocationHandle handle)
{
	return (void *)(uintptr_t)handle;
}

static void let_go(struct physical *p)
{
	if (!p->handles && p->handle) {
		handle_free(as_pointer(p->handle));
		p->handle = 0;
	}
	if (p->handles || p->mappings)
		return;
	if (p->charged)
		machine_refund(&sim.machine, sim.devices[p->device].gpu, p->size);
	close(p->fd);
	free(p);
}

static bool good_prop(const CUmemAllocationProp *prop)
{
	return prop && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
	       prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
	       !(prop->requestedHandleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

/* Not charged yet. */
static CUresult physical_new(struct physical **out, size_t size, unsigned device)
{
	struct physical *p = calloc(1, sizeof(*p));

	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	p->handle = (uintptr_t)handle_new(HANDLE_MEMORY, p);
	if (!p->handle) {
		free(p);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	p->handles = 1;
	p->fd = -1;
	p->size = size;
	p->device = device;
	p->prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	p->prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	p->prop.location.id = (int)device;
	*out = p;
	return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *prop,
				       CUmemAllocationGranularity_flags option)
{
	API_ENTER();

	if (!out || !good_prop(prop) || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	*out = GRANULARITY;
	return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t size,
		     const CUmemAllocationProp *prop, unsigned long long flags)
{
	API_ENTER();
	cleanup(closep) int fd = -1;
	struct physical *p;
	struct device *d;

	if (!out || !good_prop(prop) || flags || !size || size % GRANULARITY)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(device_get(&d, prop->location.id));
	if (size > sim.machine.config.memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	fd = memfd_create("simcuda", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (machine_charge(&sim.machine, d->gpu, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (physical_new(&p, size, d->index)) {
		machine_refund(&sim.machine, d->gpu, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	p->fd = take_fd(fd);
	p->charged = true;
	p->prop = *prop;
	*out = p->handle;
	return CUDA_SUCCESS;
}

static struct physical *get(CUmemGenericAllocationHandle handle)
{
	return handle_get(HANDLE_MEMORY, as_pointer(handle));
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	API_ENTER();
	struct physical *p = get(handle);

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	p->handles--;
	let_go(p);
	return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *out,
						CUmemGenericAllocationHandle handle)
{
	API_ENTER();
	const struct physical *p = get(handle);

	if (!p || !out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = p->prop;
	return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *address)
{
	API_ENTER();
	struct range range;
	struct physical *p;

	if (!out || !range_find((uintptr_t)address, &range) || range.kind != RANGE_MAPPED)
		return CUDA_ERROR_INVALID_VALUE;
	p = range.memory;
	if (!p->handle)
		p->handle = (uintptr_t)handle_new(HANDLE_MEMORY, p);
	if (!p->handle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	p->handles++;
	*out = p->handle;
	return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
				      CUmemAllocationHandleType type, unsigned long long flags)
{
	API_ENTER();
	const struct physical *p = get(handle);
	int fd;

	if (!out || !p || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    !(p->prop.requestedHandleTypes & type))
		return CUDA_ERROR_INVALID_VALUE;
	fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	*(int *)out = fd;
	return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *handle,
					CUmemAllocationHandleType type)
{
	API_ENTER();
	cleanup(closep) int fd = -1;
	struct physical *p;
	struct stat st;

	if (!out || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	fd = fcntl((int)(intptr_t)handle, F_DUPFD_CLOEXEC, 3);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    st.st_size % GRANULARITY)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(physical_new(&p, (size_t)st.st_size, 0));
	p->fd = take_fd(fd);
	p->prop.requestedHandleTypes = type;
	*out = p->handle;
	return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t alignment, CUdeviceptr hint,
			     unsigned long long flags)
{
	API_ENTER();
	struct reservation *r;
	size_t align = alignment > GRANULARITY ? alignment : GRANULARITY;
	uintptr_t base, aligned;
	void *map;

	(void)hint; /* a wish */
	if (!out || !size || size % GRANULARITY || flags || align & (align - 1) ||
	    size + align < size)
		return CUDA_ERROR_INVALID_VALUE;
	r = malloc(sizeof(*r));
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	map = mmap(NULL, size + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		   0);
	if (map == MAP_FAILED) {
		free(r);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	base = (uintptr_t)map;
	aligned = (base + align - 1) & ~(align - 1);
	if (aligned > base)
		munmap(map, aligned - base);
	munmap((void *)(aligned + size), base + align - aligned);
	*r = (struct reservation){aligned, size, reservations};
	reservations = r;
	*out = aligned;
	return CUDA_SUCCESS;
}

/* Is anything mapped in there? */
static bool in_use(uintptr_t base, size_t size)
{
	struct range range;

	for (uintptr_t at = base; at < base + size; at += GRANULARITY)
		if (range_find(at, &range))
			return true;
	return false;
}

CUresult cuMemAddressFree(CUdeviceptr base, size_t size)
{
	API_ENTER();

	for (struct reservation **at = &reservations; *at; at = &(*at)->next) {
		struct reservation *r = *at;

		if (r->base != base || r->size != size)
			continue;
		if (in_use(base, size))
			return CUDA_ERROR_INVALID_VALUE;
		*at = r->next;
		munmap((void *)base, size);
		free(r);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

static bool reserved(uintptr_t base, size_t size)
{
	for (const struct reservation *r = reservations; r; r = r->next)
		if (base >= r->base && base - r->base <= r->size &&
		    size <= r->size - (base - r->base))
			return true;
	return false;
}

CUresult cuMemMap(CUdeviceptr base, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
		  unsigned long long flags)
{
	API_ENTER();
	struct physical *p = get(handle);
	struct range range = {
		.base = base, .size = size, .kind = RANGE_MAPPED, .no_access = true, .memory = p};

	if (!p || flags || !size || size % GRANULARITY || base % GRANULARITY ||
	    offset % GRANULARITY || offset > p->size || size > p->size - offset ||
	    !reserved(base, size) || in_use(base, size))
		return CUDA_ERROR_INVALID_VALUE;
	range.device = p->device;
	RETURN_IF(range_add(&range));
	if (mmap((void *)base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, p->fd,
		 (off_t)offset) == MAP_FAILED) {
		range_remove(base, &range);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	p->mappings++;
	return CUDA_SUCCESS;
}

/* Do whole mappings fill [base, base + size)? */
static bool whole_mappings(uintptr_t base, size_t size)
{
	struct range range;
	uintptr_t at = base;

	while (at < base + size) {
		if (!range_find(at, &range) || range.kind != RANGE_MAPPED || range.base != at)
			return false;
		at += range.size;
	}
	return size && at == base + size;
}

CUresult cuMemUnmap(CUdeviceptr base, size_t size)
{
	API_ENTER();
	struct range range;

	if (base + size < base || !whole_mappings(base, size))
		return CUDA_ERROR_INVALID_VALUE;
	for (uintptr_t at = base; at < base + size; at += range.size) {
		struct physical *p;

		range_remove(at, &range);
		p = range.memory;
		(void)mmap((void *)at, range.size, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		p->mappings--;
		let_go(p);
	}
	return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr base, size_t size, const CUmemAccessDesc *desc, size_t n)
{
	API_ENTER();
	struct range range;

	if (!desc || !n || base + size < base || !whole_mappings(base, size))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++)
		if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE &&
		    desc[i].location.type != CU_MEM_LOCATION_TYPE_HOST)
			return CUDA_ERROR_INVALID_VALUE;
	for (uintptr_t at = base; at < base + size; at += range.size) {
		if (!range_find(at, &range))
			return CUDA_ERROR_INVALID_VALUE;
		for (size_t i = 0; i < n; i++)
			if (desc[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
			    desc[i].location.id == (int)range.device)
				range_set_access(at, desc[i].flags & CU_MEM_ACCESS_FLAGS_PROT_READ,
						 desc[i].flags ==
							 CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	}
	return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long *out, const CUmemLocation *location, CUdeviceptr address)
{
	API_ENTER();
	struct range range;

	if (!out || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    !range_find(address, &range) || range.kind != RANGE_MAPPED)
		return CUDA_ERROR_INVALID_VALUE;
	if (location->id != (int)range.device || range.no_access)
		*out = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	else
		*out = range.read_only ? CU_MEM_ACCESS_FLAGS_PROT_READ
				       : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return CUDA_SUCCESS;
}
