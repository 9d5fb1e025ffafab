/* Stream-ordered memory. An allocation is usable at once, which no correct program can notice; its
 * release is an op of the stream. A pool keeps released memory up to its threshold for later
 * requests. Such memory counts as used by the process. */
#include "simcuda/driver/graph.h"

#include <stdlib.h>
#include <string.h>

struct spare {
	struct range range;
	struct spare *next;
};

struct pool {
	CUmemoryPool handle;
	struct device *device;
	struct spare *spares;
	uint64_t threshold;
	uint64_t used, used_high;         /* handed out */
	uint64_t reserved, reserved_high; /* and the spares */
	uint64_t max;                     /* 0: none */
	int reuse[3];
	bool is_default;
	bool destroyed; /* stays until its last allocation is released */
};

static struct pool *pool_new(struct device *d)
{
	struct pool *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->device = d;
	for (size_t i = 0; i < countof(p->reuse); i++)
		p->reuse[i] = 1;
	p->handle = handle_new(HANDLE_POOL, p);
	if (p->handle)
		return p;
	free(p);
	return NULL;
}

CUmemoryPool pool_handle(const struct pool *p)
{
	return p ? p->handle : NULL;
}

static void count(struct pool *p, int64_t used, int64_t reserved)
{
	p->used += (uint64_t)used;
	p->reserved += (uint64_t)reserved;
	if (p->used > p->used_high)
		p->used_high = p->used;
	if (p->reserved > p->reserved_high)
		p->reserved_high = p->reserved;
}

static void trim(struct pool *p, uint64_t keep)
{
	while (p->spares && p->reserved > keep) {
		struct spare *s = p->spares;

		p->spares = s->next;
		count(p, 0, -(int64_t)s->range.mapped);
		memory_unmap(&s->range);
		free(s);
	}
}

static void pool_free(struct pool *p)
{
	trim(p, 0);
	handle_free(p->handle);
	free(p);
}

static bool take_spare(struct pool *p, size_t size, struct range *out)
{
	for (struct spare **at = &p->spares; *at; at = &(*at)->next) {
		struct spare *s = *at;

		if (s->range.mapped < size || s->range.mapped / 2 > size)
			continue;
		*out = s->range;
		*at = s->next;
		free(s);
		return true;
	}
	return false;
}

static CUresult allocate(CUdeviceptr *out, struct pool *p, struct context *ctx, size_t size)
{
	struct range range;
	CUresult r;

	if (!size)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->max && (size > p->max || p->used > p->max - size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (take_spare(p, size, &range)) {
		count(p, (int64_t)range.mapped, 0);
		range.size = size;
		range.ctx = ctx;
	} else {
		range = (struct range){.size = size, .kind = RANGE_POOL, .ctx = ctx, .pool = p};
		r = memory_map(&range);
		if (r == CUDA_ERROR_OUT_OF_MEMORY) {
			trim(p, 0);
			r = memory_map(&range);
		}
		RETURN_IF(r);
		count(p, (int64_t)range.mapped, (int64_t)range.mapped);
	}
	r = range_add(&range);
	if (r) {
		count(p, -(int64_t)range.mapped, -(int64_t)range.mapped);
		memory_unmap(&range);
		return r;
	}
	*out = range.base;
	return CUDA_SUCCESS;
}

/* Returns a range that is not in the table any more to its pool. */
void pool_take_back(const struct range *range)
{
	struct pool *p = range->pool;
	struct spare *s = NULL;

	if (p->reserved <= p->threshold && !p->destroyed)
		s = malloc(sizeof(*s));
	if (s) {
		count(p, -(int64_t)range->mapped, 0);
		s->range = *range;
		s->range.given_up = false;
		s->next = p->spares;
		p->spares = s;
		return;
	}
	count(p, -(int64_t)range->mapped, -(int64_t)range->mapped);
	memory_unmap(range);
	if (p->destroyed && !p->used)
		pool_free(p);
}

void pool_release(CUdeviceptr memory)
{
	struct range range;

	if (!range_remove(memory, &range))
		return;
	if (range.pool)
		pool_take_back(&range);
	else
		memory_unmap(&range);
}

static void start_free(struct op *op)
{
	pool_release(op->work.memory);
	op_done(op);
}

const struct op_type free_type = {.start = start_free, .always = true};

static CUresult default_pool(struct pool **out, struct device *d)
{
	if (!d->default_pool) {
		d->default_pool = pool_new(d);
		if (!d->default_pool)
			return CUDA_ERROR_OUT_OF_MEMORY;
		d->default_pool->is_default = true;
	}
	*out = d->default_pool;
	return CUDA_SUCCESS;
}

static CUresult current_pool(struct pool **out, struct device *d)
{
	if (d->pool) {
		*out = d->pool;
		return CUDA_SUCCESS;
	}
	return default_pool(out, d);
}

static CUresult allocate_async(CUdeviceptr *out, size_t size, struct pool *p, struct stream *s)
{
	struct work mark;

	if (!out || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->legacy)
		RETURN_IF(capture_legacy(s->ctx));
	if (!p)
		RETURN_IF(current_pool(&p, s->ctx->device));
	if (!s->capture)
		return allocate(out, p, s->ctx, size);
	RETURN_IF(allocation_work(&mark, s->ctx, size));
	*out = mark.alloc.memory;
	return stream_submit(s, &mark, NULL);
}

CUresult cuMemAllocAsync(CUdeviceptr *out, size_t size, CUstream stream)
{
	API_ENTER();
	struct stream *s;

	RETURN_IF(stream_get(&s, stream));
	return allocate_async(out, size, NULL, s);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream)
{
	API_ENTER();
	struct pool *p = handle_get(HANDLE_POOL, pool);
	struct stream *s;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(stream_get(&s, stream));
	return allocate_async(out, size, p, s);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
	API_ENTER();
	struct stream *s;
	struct work work = {.kind = WORK_FREE, .memory = address};

	RETURN_IF(stream_get(&s, stream));
	if (s->capture ? !range_allows(address, 1, false) : !range_give_up(address))
		return CUDA_ERROR_INVALID_VALUE;
	return stream_submit(s, &work, NULL);
}

static CUresult give_pool(CUmemoryPool *out, CUdevice dev,
			  CUresult (*find)(struct pool **, struct device *))
{
	struct device *d;
	struct pool *p;

	RETURN_IF(device_get(&d, dev));
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(find(&p, d));
	*out = p->handle;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice dev)
{
	API_ENTER();
	return give_pool(out, dev, default_pool);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice dev)
{
	API_ENTER();
	return give_pool(out, dev, current_pool);
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	API_ENTER();
	struct device *d;
	struct pool *p = handle_get(HANDLE_POOL, pool);

	RETURN_IF(device_get(&d, dev));
	if (!p || p->device != d)
		return CUDA_ERROR_INVALID_VALUE;
	d->pool = p;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
	API_ENTER();
	struct device *d;
	struct pool *p;

	if (!out || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
		return CUDA_ERROR_NOT_SUPPORTED;
	RETURN_IF(device_get(&d, props->location.id));
	p = pool_new(d);
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	p->max = props->maxSize;
	*out = p->handle;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle)
{
	API_ENTER();
	struct pool *p = handle_get(HANDLE_POOL, handle);

	if (!p || p->is_default)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->device->pool == p)
		p->device->pool = NULL;
	handle_free(p->handle);
	p->destroyed = true;
	trim(p, p->used);
	if (!p->used)
		pool_free(p);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep)
{
	API_ENTER();
	struct pool *p = handle_get(HANDLE_POOL, handle);

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	trim(p, keep);
	return CUDA_SUCCESS;
}

/* The attribute's variable; null: there is no such attribute. */
static uint64_t *counter(struct pool *p, CUmemPool_attribute attribute)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		return &p->threshold;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		return &p->reserved;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		return &p->reserved_high;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		return &p->used;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		return &p->used_high;
	default:
		return NULL;
	}
}

static int *reuse_flag(struct pool *p, CUmemPool_attribute attribute)
{
	if (attribute < CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
	    attribute > CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
		return NULL;
	return &p->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
	API_ENTER();
	struct pool *p = handle_get(HANDLE_POOL, handle);

	if (!p || !value)
		return CUDA_ERROR_INVALID_VALUE;
	if (counter(p, attribute))
		memcpy(value, counter(p, attribute), sizeof(uint64_t));
	else if (reuse_flag(p, attribute))
		memcpy(value, reuse_flag(p, attribute), sizeof(int));
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
	API_ENTER();
	struct pool *p = handle_get(HANDLE_POOL, handle);
	uint64_t number;

	if (!p || !value)
		return CUDA_ERROR_INVALID_VALUE;
	if (reuse_flag(p, attribute)) {
		memcpy(reuse_flag(p, attribute), value, sizeof(int));
		return CUDA_SUCCESS;
	}
	if (!counter(p, attribute))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&number, value, sizeof(number));
	if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
		p->threshold = number;
		return CUDA_SUCCESS;
	}
	if (number) /* high marks can only be reset */
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
		p->reserved_high = p->reserved;
	else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
		p->used_high = p->used;
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *map, size_t n)
{
	API_ENTER();

	return !handle_get(HANDLE_POOL, handle) || (n && !map) ? CUDA_ERROR_INVALID_VALUE
							       : CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *out, CUmemoryPool handle, CUmemLocation *location)
{
	API_ENTER();
	const struct pool *p = handle_get(HANDLE_POOL, handle);

	if (!p || !out || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	*out = location->id == (int)p->device->index ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
						     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}
