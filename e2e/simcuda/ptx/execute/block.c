/* A block from launch to end: its memory, its warps and its special registers. All its memory is
 * one allocation of the CPU thread, which keeps it for the next block. */
#include "simcuda/ptx/execute/async/bulk.h"
#include "simcuda/ptx/execute/warp.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define SCRATCH_KEEP_MAX (64u << 20)

/* Parts of the scratch memory of a CPU thread: one allocation, kept for its next block. */
struct parts {
	uint64_t registers, specials, frames, stacks, shared, partial, mbarriers, bulk, warps,
		total;
};

struct scratch {
	void *memory;
	uint64_t size;
};

static pthread_key_t scratch_key;
static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;
static bool scratch_usable;

static void fill32(struct ptx_warp *w, enum ptx_special row, uint32_t value)
{
	uint32_t *at = (uint32_t *)(w->specials + row * PTX_ROW_BYTES);

	for (uint32_t lane = 0; lane < PTX_LANES; lane++)
		at[lane] = value;
}

static void fill64(struct ptx_warp *w, enum ptx_special row, uint64_t value)
{
	uint64_t *at = (uint64_t *)(w->specials + row * PTX_ROW_BYTES);

	for (uint32_t lane = 0; lane < PTX_LANES; lane++)
		at[lane] = value;
}

static void set_lane(struct ptx_warp *w, enum ptx_special row, uint32_t lane, uint32_t value)
{
	((uint32_t *)(w->specials + row * PTX_ROW_BYTES))[lane] = value;
}

/* What is the same for all threads of the block. */
static void fill_block_specials(struct ptx_warp *w, uint64_t index)
{
	const struct ptx_block *block = w->block;
	const struct ptx_launch *launch = block->launch;
	const struct ptx_function *kernel = block->kernel;
	const uint32_t values[][2] = {
		{PTX_SPECIAL_ntid_x, launch->block.x},
		{PTX_SPECIAL_ntid_y, launch->block.y},
		{PTX_SPECIAL_ntid_z, launch->block.z},
		{PTX_SPECIAL_ctaid_x, (uint32_t)(index % launch->grid.x)},
		{PTX_SPECIAL_ctaid_y, (uint32_t)(index / launch->grid.x % launch->grid.y)},
		{PTX_SPECIAL_ctaid_z, (uint32_t)(index / launch->grid.x / launch->grid.y)},
		{PTX_SPECIAL_nctaid_x, launch->grid.x},
		{PTX_SPECIAL_nctaid_y, launch->grid.y},
		{PTX_SPECIAL_nctaid_z, launch->grid.z},
		{PTX_SPECIAL_warpid, w->index},
		{PTX_SPECIAL_nwarpid, 64},
		{PTX_SPECIAL_smid, block->sm},
		{PTX_SPECIAL_nsmid, launch->sm_count},
		{PTX_SPECIAL_dynamic_smem_size, launch->dynamic_shared},
		{PTX_SPECIAL_total_smem_size, block->shared_bytes},
		{PTX_SPECIAL_aggr_smem_size, block->shared_bytes},
		{PTX_SPECIAL_one, 1},
		{PTX_SPECIAL_dynamic_shared, kernel->dynamic_offset},
	};

	for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++)
		fill32(w, values[k][0], values[k][1]);
	fill32(w, PTX_SPECIAL_envreg1, (uint32_t)((uintptr_t)launch->workspace >> 32));
	fill32(w, PTX_SPECIAL_envreg2, (uint32_t)(uintptr_t)launch->workspace);
	fill64(w, PTX_SPECIAL_gridid, launch->grid_id);
	fill64(w, PTX_SPECIAL_dynamic_shared_wide, kernel->dynamic_offset);
}

static void fill_lane_specials(struct ptx_warp *w)
{
	const struct ptx_dim *dim = &w->block->launch->block;

	for (uint32_t lane = 0; lane < PTX_LANES; lane++) {
		uint32_t thread = w->index * PTX_LANES + lane;
		set_lane(w, PTX_SPECIAL_tid_x, lane, thread % dim->x);
		set_lane(w, PTX_SPECIAL_tid_y, lane, thread / dim->x % dim->y);
		set_lane(w, PTX_SPECIAL_tid_z, lane, thread / dim->x / dim->y);
		set_lane(w, PTX_SPECIAL_laneid, lane, lane);
		set_lane(w, PTX_SPECIAL_lanemask_eq, lane, 1u << lane);
		set_lane(w, PTX_SPECIAL_lanemask_lt, lane, (1u << lane) - 1);
		set_lane(w, PTX_SPECIAL_lanemask_le, lane, (2u << lane) - 1);
		set_lane(w, PTX_SPECIAL_lanemask_ge, lane, ~((1u << lane) - 1));
		set_lane(w, PTX_SPECIAL_lanemask_gt, lane, ~((2u << lane) - 1));
	}
}

static uint64_t reserve(uint64_t *total, uint64_t size)
{
	uint64_t at = *total;

	*total = (at + size + 63) / 64 * 64;
	return at;
}

static uint64_t mbarrier_bytes(const struct ptx_block *block)
{
	return block->shared_bytes / 64 + 1;
}

static struct parts measure(const struct ptx_block *block)
{
	const struct ptx_function *kernel = block->kernel;
	uint64_t n = block->n_warps;
	struct parts parts = {0};

	parts.warps = reserve(&parts.total, n * sizeof(struct ptx_warp));
	parts.partial = reserve(&parts.total, n * sizeof(*block->partial));
	parts.mbarriers = reserve(&parts.total, mbarrier_bytes(block));
	parts.bulk = reserve(&parts.total, PTX_BULK_MAX * sizeof(struct ptx_bulk));
	parts.registers = reserve(&parts.total, n * kernel->total_register_bytes);
	parts.specials = reserve(&parts.total, n * PTX_SPECIAL_COUNT * PTX_ROW_BYTES);
	parts.frames =
		reserve(&parts.total, n * kernel->frames * PTX_LANES * sizeof(struct ptx_frame));
	parts.shared = reserve(&parts.total, block->shared_bytes);
	parts.stacks = reserve(&parts.total, n * PTX_LANES * block->stack_bytes);
	return parts;
}

static void scratch_free(void *pointer)
{
	struct scratch *scratch = pointer;

	if (scratch->memory)
		munmap(scratch->memory, scratch->size);
	free(scratch);
}

static void make_scratch_key(void)
{
	scratch_usable = pthread_key_create(&scratch_key, scratch_free) == 0;
}

/* This CPU thread's memory, at least @size bytes; NULL: none. */
static struct scratch *scratch_get(uint64_t size)
{
	pthread_once(&scratch_once, make_scratch_key);
	struct scratch *scratch = scratch_usable ? pthread_getspecific(scratch_key) : NULL;

	if (!scratch && scratch_usable) {
		scratch = calloc(1, sizeof(*scratch));
		if (scratch && pthread_setspecific(scratch_key, scratch) != 0) {
			free(scratch);
			scratch = NULL;
		}
	}
	if (!scratch || scratch->size >= size)
		return scratch;
	if (scratch->memory)
		munmap(scratch->memory, scratch->size);
	scratch->size = (size + 65535) / 65536 * 65536;
	scratch->memory = mmap(NULL, scratch->size, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (scratch->memory == MAP_FAILED) {
		scratch->memory = NULL;
		scratch->size = 0;
		return NULL;
	}
	return scratch;
}

/* A very large one goes back to the system. */
static void scratch_trim(struct scratch *scratch)
{
	if (scratch->size <= SCRATCH_KEEP_MAX)
		return;
	munmap(scratch->memory, scratch->size);
	scratch->memory = NULL;
	scratch->size = 0;
}

static void set_up_warp(struct ptx_block *block, uint32_t k, uint8_t *memory,
			const struct parts *parts, uint64_t index)
{
	const struct ptx_function *kernel = block->kernel;
	const struct ptx_dim *dim = &block->launch->block;
	uint32_t threads = dim->x * dim->y * dim->z - k * PTX_LANES;
	struct ptx_warp *w = &block->warps[k];

	memset(w, 0, sizeof(*w));
	w->index = k;
	w->block = block;
	w->live = threads >= PTX_LANES ? PTX_ALL_LANES : (1u << threads) - 1;
	w->registers = memory + parts->registers + (uint64_t)k * kernel->total_register_bytes;
	w->specials = memory + parts->specials + (uint64_t)k * PTX_SPECIAL_COUNT * PTX_ROW_BYTES;
	w->frames = (struct ptx_frame *)(memory + parts->frames) +
		    (uint64_t)k * kernel->frames * PTX_LANES;
	w->stack = block->stacks + (uint64_t)k * PTX_LANES * block->stack_bytes;
	w->base[PTX_SPECIALS] = w->specials;
	w->base[PTX_SCRATCH] = (uint8_t *)w->scratch;
	memset(w->registers, 0, kernel->register_bytes);
	memset(w->specials, 0, PTX_SPECIAL_COUNT * PTX_ROW_BYTES);
	ptx_park(w, PTX_ALL_LANES, kernel->entry);
	fill_block_specials(w, index);
	fill_lane_specials(w);
}

static void set_up(struct ptx_block *block, uint8_t *memory, const struct parts *parts,
		   uint64_t index)
{
	block->warps = (struct ptx_warp *)(memory + parts->warps);
	block->partial = (void *)(memory + parts->partial);
	block->bulk = (struct ptx_bulk *)(memory + parts->bulk);
	block->shared = memory + parts->shared;
	block->stacks = memory + parts->stacks;
	block->stacks_bytes = (uint64_t)block->n_warps * PTX_LANES * block->stack_bytes;
	memset(block->partial, 0, block->n_warps * sizeof(*block->partial));
	memset(block->shared, 0, block->shared_bytes);
	block->mbarriers = memory + parts->mbarriers;
	memset(block->mbarriers, 0, mbarrier_bytes(block));
	for (uint32_t k = 0; k < block->n_warps; k++)
		set_up_warp(block, k, memory, parts, index);
}

static int refuse(struct ptx_error *error, const char *what)
{
	if (error)
		snprintf(error->message, sizeof(error->message), "%s", what);
	return -EINVAL;
}

static int check_launch(const struct ptx_function *kernel, const struct ptx_launch *launch,
			uint64_t index, struct ptx_error *error)
{
	const struct ptx_dim *block = &launch->block, *grid = &launch->grid;
	const struct ptx_dim *required = &kernel->required_block;
	uint64_t threads = (uint64_t)block->x * block->y * block->z;
	uint64_t plane = (uint64_t)grid->x * grid->y;

	if (block->x > 1024 || block->y > 1024 || block->z > 1024 || threads == 0 || threads > 1024)
		return refuse(error, "a block has 1 to 1024 threads");
	if (threads > kernel->max_threads)
		return refuse(error, "the block has more threads than the kernel allows");
	if (required->x &&
	    (required->x != block->x || required->y != block->y || required->z != block->z))
		return refuse(error, "the block has not the shape that the kernel requires");
	if (plane == 0 || grid->z == 0 || index / plane >= grid->z)
		return refuse(error, "there is no such block in the grid");
	if (launch->dynamic_shared > PTX_SHARED_BYTES_MAX ||
	    kernel->dynamic_offset + launch->dynamic_shared > PTX_SHARED_BYTES_MAX)
		return refuse(error, "too much shared memory");
	if (kernel->param_bytes && !launch->params)
		return refuse(error, "there are no parameters");
	return 0;
}

int ptx_run_block(const struct ptx_kernel *handle, const struct ptx_launch *launch, uint64_t index,
		  uint32_t sm, const volatile int *stop, struct ptx_error *error, bool *wrote)
{
	const struct ptx_function *kernel = (const struct ptx_function *)handle;
	uint32_t threads;
	int r;

	if (error)
		*error = (struct ptx_error){0};
	if (wrote)
		*wrote = false;
	if ((r = ptx_kernel_check(handle, error)) ||
	    (r = check_launch(kernel, launch, index, error)))
		return r;
	threads = launch->block.x * launch->block.y * launch->block.z;

	struct ptx_block block = {
		.kernel = kernel,
		.launch = launch,
		.n_warps = (threads + PTX_LANES - 1) / PTX_LANES,
		.shared_bytes = launch->dynamic_shared
					? kernel->dynamic_offset + launch->dynamic_shared
					: kernel->static_shared,
		.stack_bytes = kernel->total_frame_bytes,
		.params = launch->params,
		.param_bytes = kernel->param_bytes,
		.sm = sm,
	};
	block.live_warps = block.n_warps;
	struct parts parts = measure(&block);
	struct scratch *scratch = scratch_get(parts.total);
	if (!scratch)
		return -ENOMEM;
	set_up(&block, scratch->memory, &parts, index);
	r = ptx_run_warps(&block, stop);
	if (error)
		*error = block.error;
	if (wrote)
		*wrote = block.wrote;
	scratch_trim(scratch);
	return r;
}
