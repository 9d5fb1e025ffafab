/* Copies and sets, as one kind of op each, run by the threads of `sim.copies`.
 *
 * How far a call waits follows the driver: copies between device memory and sets never do; copies
 * from pageable memory take their source before they return; copies to pageable memory are done
 * when they return. */
#include "simcuda/driver/exec.h"

#include <stdlib.h>
#include <string.h>

static void start_copy(struct op *op)
{
	worker_pool_push(&sim.copies, op);
}

static char *row_of(const struct copy_side *side, size_t slice, size_t row)
{
	return side->base + (slice * side->height + row) * side->pitch;
}

static void run_copy(struct op *op)
{
	const struct work *w = &op->work;

	for (size_t z = 0; z < w->copy.slices; z++)
		for (size_t y = 0; y < w->copy.rows; y++)
			memmove(row_of(&w->copy.to, z, y), row_of(&w->copy.from, z, y),
				w->copy.width);
}

static void set_row(char *at, const struct work *w)
{
	for (size_t i = 0; i < w->set.width; i++) {
		if (w->set.element == 4)
			((uint32_t *)at)[i] = w->set.value;
		else
			((uint16_t *)at)[i] = (uint16_t)w->set.value;
	}
}

static void run_set(struct op *op)
{
	const struct work *w = &op->work;

	for (size_t y = 0; y < w->set.rows; y++) {
		char *at = w->set.base + y * w->set.pitch;

		if (w->set.element == 1)
			memset(at, (int)w->set.value, w->set.width);
		else
			set_row(at, w);
	}
}

const struct op_type copy_type = {.start = start_copy, .run = run_copy};
const struct op_type set_type = {.start = start_copy, .run = run_set};

static bool is_device(const void *address)
{
	struct range range;

	return range_find((uintptr_t)address, &range) && range.kind != RANGE_HOST &&
	       range.kind != RANGE_REGISTERED;
}

static bool is_pageable(const void *address)
{
	struct range range;

	return !range_find((uintptr_t)address, &range);
}

/* @side must be memory of the device if @device, and then all rows must lie in it. */
static CUresult check_side(const struct work *w, const struct copy_side *side, bool device,
			   bool write)
{
	size_t span = 0;

	if (!side->base || side->pitch < w->copy.width || side->height < w->copy.rows)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device && is_pageable(side->base))
		return CUDA_SUCCESS;
	if (__builtin_mul_overflow((w->copy.slices - 1) * side->height + w->copy.rows - 1,
				   side->pitch, &span) ||
	    __builtin_add_overflow(span, w->copy.width, &span) ||
	    !range_allows((uintptr_t)side->base, span, write))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult check_copy(const struct work *w, bool from_device, bool to_device)
{
	RETURN_IF(check_side(w, &w->copy.from, from_device, false));
	return check_side(w, &w->copy.to, to_device, true);
}

/* The source in pageable memory belongs to the caller again when the call returns. */
static CUresult stage(struct work *w)
{
	size_t width = w->copy.width, rows = w->copy.rows;

	if (!is_pageable(w->copy.from.base))
		return CUDA_SUCCESS;
	w->copy.staged = malloc(width * rows * w->copy.slices);
	if (!w->copy.staged)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t z = 0; z < w->copy.slices; z++)
		for (size_t y = 0; y < rows; y++)
			memcpy(w->copy.staged + (z * rows + y) * width, row_of(&w->copy.from, z, y),
			       width);
	w->copy.from = (struct copy_side){w->copy.staged, width, rows};
	return CUDA_SUCCESS;
}

/* @sync: the call has no stream. */
static CUresult submit(struct work *w, CUstream stream, bool sync)
{
	cleanup(op_unrefp) struct op *op = NULL;
	struct stream *s;
	struct context *ctx;
	bool to_device = is_device(w->copy.to.base);
	bool within = is_device(w->copy.from.base) && to_device;
	bool pageable = is_pageable(w->copy.to.base);

	RETURN_IF(stream_get(&s, stream));
	ctx = s->ctx;
	if (sync && s->capture)
		return capture_stream_idle(s);
	if (!s->capture)
		RETURN_IF(stage(w));
	RETURN_IF(stream_submit(s, w, &op));
	if (!op || within || (!sync && !pageable))
		return CUDA_SUCCESS;
	op_wait(op);
	return ctx->fault;
}

enum sides { FROM_DEVICE = 1, TO_DEVICE = 2 };

static CUresult copy_linear(uintptr_t to, uintptr_t from, size_t size, unsigned sides,
			    CUstream stream, bool sync)
{
	API_CONTEXT(ctx);
	struct work w = {.kind = WORK_COPY,
			 .ctx = ctx,
			 .copy = {.from = {(char *)from, size, 1},
				  .to = {(char *)to, size, 1},
				  .width = size,
				  .rows = 1,
				  .slices = 1}};

	if (!size)
		return CUDA_SUCCESS;
	RETURN_IF(check_copy(&w, sides & FROM_DEVICE, sides & TO_DEVICE));
	return submit(&w, stream, sync);
}

/* Every linear copy, with its asynchronous and its per-thread spellings. */
#define LINEAR(name, version, sides, to_type, from_type)                                        \
	CUresult name##version(to_type to, from_type from, size_t size)                         \
	{                                                                                       \
		return copy_linear((uintptr_t)to, (uintptr_t)from, size, sides, NULL, true);    \
	}                                                                                       \
	CUresult name##version##_ptds(to_type to, from_type from, size_t size)                  \
	{                                                                                       \
		return copy_linear((uintptr_t)to, (uintptr_t)from, size, sides,                 \
				   CU_STREAM_PER_THREAD, true);                                 \
	}                                                                                       \
	CUresult name##Async##version(to_type to, from_type from, size_t size, CUstream stream) \
	{                                                                                       \
		return copy_linear((uintptr_t)to, (uintptr_t)from, size, sides, stream, false); \
	}                                                                                       \
	CUresult name##Async##version##_ptsz(to_type to, from_type from, size_t size,           \
					     CUstream stream)                                   \
	{                                                                                       \
		return copy_linear((uintptr_t)to, (uintptr_t)from, size, sides,                 \
				   per_thread(stream), false);                                  \
	}

LINEAR(cuMemcpy, , 0, CUdeviceptr, CUdeviceptr)
LINEAR(cuMemcpyHtoD, _v2, TO_DEVICE, CUdeviceptr, const void *)
LINEAR(cuMemcpyDtoH, _v2, FROM_DEVICE, void *, CUdeviceptr)
LINEAR(cuMemcpyDtoD, _v2, FROM_DEVICE | TO_DEVICE, CUdeviceptr, CUdeviceptr)

/* Addresses are valid in every context, so the named contexts do not matter. */
#define PEER(name, suffix, extra, stream, sync)                                            \
	CUresult name##suffix(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from,          \
			      CUcontext from_ctx, size_t size extra)                       \
	{                                                                                  \
		(void)to_ctx;                                                              \
		(void)from_ctx;                                                            \
		return copy_linear(to, from, size, FROM_DEVICE | TO_DEVICE, stream, sync); \
	}
#define WITH_STREAM , CUstream stream

PEER(cuMemcpyPeer, , , NULL, true)
PEER(cuMemcpyPeer, _ptds, , CU_STREAM_PER_THREAD, true)
PEER(cuMemcpyPeerAsync, , WITH_STREAM, stream, false)
PEER(cuMemcpyPeerAsync, _ptsz, WITH_STREAM, per_thread(stream), false)

static CUresult side_of(struct copy_side *out, CUmemorytype type, const void *host,
			CUdeviceptr device, const size_t at[4], size_t pitch, size_t height,
			const struct work *w)
{
	char *base;

	if (type == CU_MEMORYTYPE_HOST)
		base = (char *)(uintptr_t)host;
	else if (type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED)
		base = (char *)device;
	else
		return type == CU_MEMORYTYPE_ARRAY ? CUDA_ERROR_NOT_SUPPORTED
						   : CUDA_ERROR_INVALID_VALUE;
	*out = (struct copy_side){.pitch = pitch ? pitch : w->copy.width,
				  .height = height ? height : w->copy.rows};
	if (!base || at[3])
		return CUDA_ERROR_INVALID_VALUE;
	out->base = base + at[0] + (at[2] * out->height + at[1]) * out->pitch;
	return CUDA_SUCCESS;
}

CUresult copy3d_work(struct work *out, struct context *ctx, const CUDA_MEMCPY3D *c)
{
	struct work w = {.kind = WORK_COPY,
			 .ctx = ctx,
			 .copy = {.width = c->WidthInBytes, .rows = c->Height, .slices = c->Depth}};
	const size_t from[4] = {c->srcXInBytes, c->srcY, c->srcZ, c->srcLOD};
	const size_t to[4] = {c->dstXInBytes, c->dstY, c->dstZ, c->dstLOD};

	RETURN_IF(side_of(&w.copy.from, c->srcMemoryType, c->srcHost, c->srcDevice, from,
			  c->srcPitch, c->srcHeight, &w));
	RETURN_IF(side_of(&w.copy.to, c->dstMemoryType, c->dstHost, c->dstDevice, to, c->dstPitch,
			  c->dstHeight, &w));
	if (w.copy.width && w.copy.rows && w.copy.slices)
		RETURN_IF(check_copy(&w, c->srcMemoryType == CU_MEMORYTYPE_DEVICE,
				     c->dstMemoryType == CU_MEMORYTYPE_DEVICE));
	*out = w;
	return CUDA_SUCCESS;
}

static CUresult copy_3d(const CUDA_MEMCPY3D *c, CUstream stream, bool sync)
{
	API_CONTEXT(ctx);
	struct work w;

	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	RETURN_IF(copy3d_work(&w, ctx, c));
	if (!w.copy.width || !w.copy.rows || !w.copy.slices)
		return CUDA_SUCCESS;
	return submit(&w, stream, sync);
}

static CUresult copy_2d(const CUDA_MEMCPY2D *c, CUstream stream, bool sync)
{
	CUDA_MEMCPY3D c3;

	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	c3 = (CUDA_MEMCPY3D){
		.srcXInBytes = c->srcXInBytes,
		.srcY = c->srcY,
		.srcMemoryType = c->srcMemoryType,
		.srcHost = c->srcHost,
		.srcDevice = c->srcDevice,
		.srcArray = c->srcArray,
		.srcPitch = c->srcPitch,
		.dstXInBytes = c->dstXInBytes,
		.dstY = c->dstY,
		.dstMemoryType = c->dstMemoryType,
		.dstHost = c->dstHost,
		.dstDevice = c->dstDevice,
		.dstArray = c->dstArray,
		.dstPitch = c->dstPitch,
		.WidthInBytes = c->WidthInBytes,
		.Height = c->Height,
		.Depth = 1,
	};
	return copy_3d(&c3, stream, sync);
}

#define PLANAR(name, helper, type)                               \
	CUresult name##_v2(const type *copy)                     \
	{                                                        \
		return helper(copy, NULL, true);                 \
	}                                                        \
	CUresult name##_v2_ptds(const type *copy)                \
	{                                                        \
		return helper(copy, CU_STREAM_PER_THREAD, true); \
	}
#define PLANAR_ASYNC(name, helper, type)                           \
	CUresult name##_v2(const type *copy, CUstream stream)      \
	{                                                          \
		return helper(copy, stream, false);                \
	}                                                          \
	CUresult name##_v2_ptsz(const type *copy, CUstream stream) \
	{                                                          \
		return helper(copy, per_thread(stream), false);    \
	}

PLANAR(cuMemcpy2D, copy_2d, CUDA_MEMCPY2D)
PLANAR(cuMemcpy2DUnaligned, copy_2d, CUDA_MEMCPY2D)
PLANAR_ASYNC(cuMemcpy2DAsync, copy_2d, CUDA_MEMCPY2D)
PLANAR(cuMemcpy3D, copy_3d, CUDA_MEMCPY3D)
PLANAR_ASYNC(cuMemcpy3DAsync, copy_3d, CUDA_MEMCPY3D)

CUresult set_work(struct work *out, struct context *ctx, CUdeviceptr base, size_t pitch,
		  unsigned element, uint32_t value, size_t width, size_t rows)
{
	size_t row, span;

	if ((element != 1 && element != 2 && element != 4) || base % element ||
	    (rows > 1 && pitch % element) || __builtin_mul_overflow(width, element, &row) ||
	    (rows > 1 && pitch < row))
		return CUDA_ERROR_INVALID_VALUE;
	if (rows && row &&
	    (__builtin_mul_overflow(rows - 1, pitch, &span) ||
	     __builtin_add_overflow(span, row, &span) || !range_allows(base, span, true)))
		return CUDA_ERROR_INVALID_VALUE;
	*out = (struct work){.kind = WORK_SET,
			     .ctx = ctx,
			     .set = {.base = (char *)base,
				     .pitch = pitch,
				     .width = width,
				     .rows = rows,
				     .element = element,
				     .value = value}};
	return CUDA_SUCCESS;
}

static CUresult set(CUdeviceptr base, size_t pitch, unsigned element, uint32_t value, size_t width,
		    size_t rows, CUstream stream, bool sync)
{
	API_CONTEXT(ctx);
	struct work w;
	struct stream *s;

	RETURN_IF(set_work(&w, ctx, base, pitch, element, value, width, rows));
	if (!width || !rows)
		return CUDA_SUCCESS;
	RETURN_IF(stream_get(&s, stream));
	if (sync && s->capture)
		return capture_stream_idle(s);
	return stream_submit(s, &w, NULL);
}

#define SET(bits, type)                                                                            \
	CUresult cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t n)                        \
	{                                                                                          \
		return set(to, 0, bits / 8, value, n, 1, NULL, true);                              \
	}                                                                                          \
	CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr to, type value, size_t n)                   \
	{                                                                                          \
		return set(to, 0, bits / 8, value, n, 1, CU_STREAM_PER_THREAD, true);              \
	}                                                                                          \
	CUresult cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t n, CUstream stream)     \
	{                                                                                          \
		return set(to, 0, bits / 8, value, n, 1, stream, false);                           \
	}                                                                                          \
	CUresult cuMemsetD##bits##Async_ptsz(CUdeviceptr to, type value, size_t n,                 \
					     CUstream stream)                                      \
	{                                                                                          \
		return set(to, 0, bits / 8, value, n, 1, per_thread(stream), false);               \
	}                                                                                          \
	CUresult cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, type value, size_t width,    \
					size_t height)                                             \
	{                                                                                          \
		return set(to, pitch, bits / 8, value, width, height, NULL, true);                 \
	}                                                                                          \
	CUresult cuMemsetD2D##bits##_v2_ptds(CUdeviceptr to, size_t pitch, type value,             \
					     size_t width, size_t height)                          \
	{                                                                                          \
		return set(to, pitch, bits / 8, value, width, height, CU_STREAM_PER_THREAD, true); \
	}                                                                                          \
	CUresult cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value, size_t width,  \
					  size_t height, CUstream stream)                          \
	{                                                                                          \
		return set(to, pitch, bits / 8, value, width, height, stream, false);              \
	}                                                                                          \
	CUresult cuMemsetD2D##bits##Async_ptsz(CUdeviceptr to, size_t pitch, type value,           \
					       size_t width, size_t height, CUstream stream)       \
	{                                                                                          \
		return set(to, pitch, bits / 8, value, width, height, per_thread(stream), false);  \
	}

SET(8, unsigned char)
SET(16, unsigned short)
SET(32, unsigned int)
