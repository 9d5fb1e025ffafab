/* malloc() and free() of kernels: a range for each context, as large as its limit, which the limit
 * has paid for. Blocks have sizes of powers of 2, a header with the power, and a list of free ones
 * for each. Only a kernel that writes outside its blocks can make the lists wrong; the process is
 * its own. */
#include "simcuda/driver/exec.h"

#define HEADER   16u /* keeps blocks aligned for every type */
#define SMALLEST 5u  /* 2^5 bytes, with the header */

struct block {
	uint64_t power;
	struct block *next; /* free ones only; else the kernel's */
};

static CUresult open_heap(struct context *ctx)
{
	struct range range = {
		.size = ctx->limits[CU_LIMIT_MALLOC_HEAP_SIZE], .kind = RANGE_HEAP, .ctx = ctx};

	RETURN_IF(memory_map(&range));
	if (range_add(&range)) {
		memory_unmap(&range);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	ctx->heap.base = range.base;
	ctx->heap.size = range.size;
	return CUDA_SUCCESS;
}

static unsigned power_of(uint64_t size)
{
	unsigned power = SMALLEST;

	while (power < HEAP_POWERS && (UINT64_C(1) << power) < size + HEADER)
		power++;
	return power;
}

static struct block *take_block(struct heap *heap, unsigned power)
{
	struct block *block = heap->free[power];
	uint64_t bytes = UINT64_C(1) << power;

	if (block) {
		heap->free[power] = block->next;
		return block;
	}
	if (bytes > heap->size - heap->used)
		return NULL;
	block = (struct block *)(heap->base + heap->used);
	heap->used += bytes;
	block->power = power;
	return block;
}

void *heap_allocate(void *data, uint64_t size)
{
	struct context *ctx = data;
	struct block *block = NULL;
	unsigned power;

	if (!size || size > ctx->limits[CU_LIMIT_MALLOC_HEAP_SIZE])
		return NULL;
	power = power_of(size);
	pthread_mutex_lock(&sim.lock);
	if (power < HEAP_POWERS && (ctx->heap.base || !open_heap(ctx)))
		block = take_block(&ctx->heap, power);
	pthread_mutex_unlock(&sim.lock);
	return block ? (char *)block + HEADER : NULL;
}

void heap_release(void *data, void *memory)
{
	struct context *ctx = data;
	struct heap *heap = &ctx->heap;
	uint64_t offset = (uintptr_t)memory - heap->base - HEADER;
	struct block *block = (struct block *)((uintptr_t)memory - HEADER);

	pthread_mutex_lock(&sim.lock);
	if (memory && heap->base && offset < heap->used && block->power < HEAP_POWERS) {
		block->next = heap->free[block->power];
		heap->free[block->power] = block;
	}
	pthread_mutex_unlock(&sim.lock);
}
