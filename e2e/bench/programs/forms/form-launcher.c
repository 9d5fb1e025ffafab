#include "form-launcher.h"

#include <weir/drain.h>
#include <weir/tickets.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD_NS 8000
#define UNSEEN_NS 10000u    /* an eviction in which nobody looked for so long has no delay */
#define FINISHES  INT32_MAX /* cycles, longer than any block */

void form_init(struct form *form, struct benchmark *copy, const struct benchmark *benchmark,
	       unsigned more)
{
	*form = (struct form){.random = {1},
			      .more = more,
			      .drain_percent = 100,
			      .period_ns = PERIOD_NS,
			      .look = WEIR_LOOK,
			      .lead = WEIR_LEAD};
	form->ptx = form_text(benchmark, more, &form->saves);
	*copy = *benchmark;
	copy->ptx = form->ptx;
	CU(cuMemHostAlloc((void **)&form->page, sizeof(*form->page), CU_MEMHOSTALLOC_DEVICEMAP));
	*form->page = (struct form_page){0};
	group_watch_init(&form->watch);
	CU(cuMemHostGetDevicePointer(&form->page_address, form->page, 0));
}

void form_deinit(struct form *form)
{
	for (unsigned i = 0; i < PLAN_KERNELS_MAX; i++) {
		CU(cuMemFree(form->kernels[i].words));
		if (form->kernels[i].saves)
			CU(cuMemFree(form->kernels[i].saves));
	}
	CU(cuMemFreeHost(form->page));
	group_watch_deinit(&form->watch);
	free(form->us);
	free(form->ptx);
}

static uint32_t blocks_of(const struct shape *shape)
{
	return shape->grid[0] * shape->grid[1] * shape->grid[2];
}

static const struct form_kernel *kernel_of(const struct form *form, const struct plan *plan,
					   const struct plan_launch *launch)
{
	return &form->kernels[launch->kernel - plan->kernels];
}

uint32_t form_resident(const struct form *form, const struct plan *plan,
		       const struct plan_launch *launch, enum weir_form kind)
{
	const struct shape *shape = &launch->shape;
	unsigned threads = shape->block[0] * shape->block[1] * shape->block[2];
	int resident;

	CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(
		&resident, kernel_of(form, plan, launch)->function[kind], (int)threads,
		shape->shared));
	return (uint32_t)resident * (uint32_t)plan->workload->sm_count;
}

static void start(const struct plan *plan, const struct plan_launch *launch, CUfunction function,
		  const unsigned grid[3], void **parameters)
{
	const struct shape *shape = &launch->shape;

	CU(cuLaunchKernel(function, grid[0], grid[1], grid[2], shape->block[0], shape->block[1],
			  shape->block[2], shape->shared, plan->stream, parameters, NULL));
}

/* Slices cut the outermost axis that is long enough, else the longest one. */
static void run_sliced(struct form *form, const struct plan *plan, const struct plan_launch *launch,
		       CUfunction function, uint32_t parts, void **parameters)
{
	const unsigned *grid = launch->shape.grid;
	struct weir_slice *slice = &form->slice;
	unsigned axis = 0;

	for (unsigned k = 1; k < 3; k++)
		if (grid[k] >= parts || grid[k] > grid[axis])
			axis = k;
	*slice = (struct weir_slice){.grid = {grid[0], grid[1], grid[2]}};
	parameters[launch->argument_count] = slice;
	for (uint32_t part = 0; part < parts; part++) {
		uint32_t end = (uint32_t)((uint64_t)grid[axis] * (part + 1) / parts);
		unsigned size[3] = {grid[0], grid[1], grid[2]};

		size[axis] = end - slice->first[axis];
		if (size[axis])
			start(plan, launch, function, size, parameters);
		slice->first[axis] = end;
	}
}

static bool is_done(const struct form_kernel *kernel)
{
	uint32_t done;

	CU(cuMemcpyDtoH(&done, kernel->words + offsetof(struct weir_words, done), sizeof(done)));
	return done == kernel->serial;
}

static void await(const struct plan *plan)
{
	CU(cuStreamSynchronize(plan->stream));
}

/* Waits for the end. Returns the longest time in ns between two looks: now and then a virtual
 * machine's processor is away for longer than a kernel takes to leave. */
static uint64_t watch_end(const struct plan *plan, uint64_t last)
{
	uint64_t longest = 0;
	CUresult result;

	do {
		result = cuStreamQuery(plan->stream);
		uint64_t now = now_ns();
		longest = now - last > longest ? now - last : longest;
		last = now;
	} while (result == CUDA_ERROR_NOT_READY);
	CU(result);
	return longest;
}

/* A random moment of the first @part per cent of the launch's native time. */
static uint64_t moment_of(struct form *form, const struct plan *plan,
			  const struct plan_launch *launch, unsigned part)
{
	double ns = form->us[launch - plan->launches] * 1e3;

	return (uint64_t)(ns * random_below(&form->random, 10 * part) / 1000);
}

/* Evicts the launch. The delay counts if the launch stopped before its end, and was seen. */
static void evict(struct form *form, const struct plan *plan, const struct plan_launch *launch)
{
	unsigned index = (unsigned)(launch->kernel - plan->kernels);
	uint64_t until = now_ns() + moment_of(form, plan, launch, 100), asked;

	while (now_ns() < until)
		;
	asked = now_ns();
	__atomic_store_n(&form->page->demand, 1, __ATOMIC_SEQ_CST);
	bool unseen = watch_end(plan, asked) > UNSEEN_NS && plan->workload->gpu;
	double us = (double)(now_ns() - asked) / 1e3;
	__atomic_store_n(&form->page->demand, 0, __ATOMIC_SEQ_CST);
	if (is_done(&form->kernels[index]))
		return;
	if (unseen)
		form->evictions[index].unseen++;
	else
		samples_add(&form->delays[index], us);
}

/* Room for the state of all workers. */
static void prepare_saves(struct form_kernel *kernel, const struct shape *shape, unsigned workers,
			  struct weir_persistent *hidden)
{
	uint64_t threads = (uint64_t)shape->block[0] * shape->block[1] * shape->block[2];
	uint64_t stride = kernel->save_fixed + kernel->save_per_thread * threads + shape->shared;

	stride = (stride + 255) / 256 * 256;
	if (kernel->saves_size < workers * stride) {
		if (kernel->saves)
			CU(cuMemFree(kernel->saves));
		kernel->saves_size = workers * stride;
		CU(cuMemAlloc(&kernel->saves, kernel->saves_size));
	}
	hidden->saves = kernel->saves;
	hidden->save_stride = stride;
}

static int attribute(const struct plan *plan, CUdevice_attribute attribute)
{
	int value;

	CU(cuDeviceGetAttribute(&value, attribute, plan->workload->device));
	return value;
}

static uint32_t drain_cycles(const struct form *form, uint64_t bytes)
{
	uint64_t cycles =
		weir_drain_cycles(bytes, form->clock_khz, form->memory_khz, form->bus_bits);
	uint64_t part = cycles * form->drain_percent / 100;

	return form->variant.finishes || part > FINISHES ? FINISHES : (uint32_t)part;
}

/* Adds the blocks that were saved and drained since this was last called. */
static void count_blocks(struct form_kernel *kernel, struct form_evictions *evictions)
{
	struct weir_words words;

	CU(cuMemcpyDtoH(&words, kernel->words, sizeof(words)));
	evictions->saved += words.saved - kernel->saved;
	evictions->drained += words.drained - kernel->drained;
	evictions->block_bytes = kernel->block_bytes;
	kernel->saved = words.saved;
	kernel->drained = words.drained;
}

/* The launch has begun: it leaves a part of the SMs in its first half, and comes back in the
 * continuation, which stands behind it as libweir's do. */
static void leave_a_part(struct form *form, const struct plan *plan,
			 const struct plan_launch *launch, CUfunction function,
			 const unsigned workers[3], void **parameters)
{
	unsigned index = (unsigned)(launch->kernel - plan->kernels);
	uint64_t wait = moment_of(form, plan, launch, 50);
	struct weir_persistent *hidden = &form->persistent;

	hidden->fresh = 0;
	hidden->dealt = 0;
	start(plan, launch, function, workers, parameters);
	hidden->demand = hidden->room = 0;
	hidden->poller = 0;
	hidden->dealt = workers[0];
	start(plan, launch, function, workers, parameters);
	struct group_times times = group_leave_and_return(&form->watch, form->page, form->sms_left,
							  (uint32_t)plan->workload->sm_count,
							  workers[0], wait, plan->stream);
	if (times.leave_us > 0)
		samples_add(&form->leaves[index], times.leave_us);
	if (times.leave_us > 0 && times.first)
		samples_add(&form->first_leaves[index], times.leave_us);
	if (form->each)
		group_times_tell(&times, launch->kernel->name, wait);
	if (times.return_us > 0)
		samples_add(&form->returns[index], times.return_us);
	await(plan);
	group_watch_end(&form->watch);
	if (!is_done(kernel_of(form, plan, launch)))
		workload_fail("the last continuation did not end the launch");
}

/* Persistent or resumable. */
static void run_persistent(struct form *form, const struct plan *plan,
			   const struct plan_launch *launch, struct form_kernel *kernel,
			   void **parameters)
{
	const unsigned *grid = launch->shape.grid;
	uint32_t blocks = blocks_of(&launch->shape);
	struct weir_persistent *hidden = &form->persistent;
	enum weir_form kind = form->variant.form;
	unsigned workers[3] = {form_resident(form, plan, launch, kind), 1, 1};

	*hidden = (struct weir_persistent){
		.words = kernel->words,
		.demand = form->page_address + offsetof(struct form_page, demand),
		.grid = {grid[0], grid[1], grid[2]},
		.blocks = blocks,
		.serial = ++kernel->serial,
		.period = (uint32_t)form->period_ns,
		.look = (uint32_t)form->look,
		.lead = form->variant.together ? 0 : (uint32_t)form->lead,
		.ahead = form->variant.ahead,
		.fresh = 1};
	if (form->variant.groups)
		hidden->room = form->page_address + offsetof(struct form_page, sms);
	if (form->variant.spare && workers[0] > (uint32_t)plan->workload->sm_count)
		workers[0] -= (uint32_t)plan->workload->sm_count;
	bool leaves = form->sms_left && form->variant.groups;
	if (leaves && workers[0] > 1) /* the place of the watching kernel */
		workers[0]--;
	weir_cut(hidden, form->variant.parts, workers[0], form->variant.even, form->variant.order);
	workers[0] = workers[0] < hidden->tickets ? workers[0] : hidden->tickets;
	hidden->poller = hidden->room && weir_affords_poller(hidden, workers[0]);
	hidden->dealt = workers[0] - hidden->poller;
	if (kind == WEIR_RESUMABLE && kernel->save_fixed) {
		prepare_saves(kernel, &launch->shape, workers[0], hidden);
		kernel->block_bytes = hidden->save_stride;
		if (!form->variant.saves)
			hidden->drain = drain_cycles(form, hidden->save_stride * workers[0]);
	}
	parameters[launch->argument_count] = hidden;
	if (form->evict || leaves) /* earlier work must not count */
		await(plan);
	if (leaves)
		group_watch_begin(&form->watch, kernel->words);
	start(plan, launch, kernel->function[kind], workers, parameters);
	if (leaves) {
		leave_a_part(form, plan, launch, kernel->function[kind], workers, parameters);
		return;
	}
	if (form->chained && !form->evict) {
		hidden->fresh = 0;
		start(plan, launch, kernel->function[kind], workers, parameters);
	}
	if (!form->evict)
		return;
	evict(form, plan, launch);
	hidden->fresh = 0;
	while (!is_done(kernel)) {
		start(plan, launch, kernel->function[kind], workers, parameters);
		await(plan);
	}
	if (hidden->saves)
		count_blocks(kernel, &form->evictions[launch->kernel - plan->kernels]);
}

static void launch_form(void *data, struct plan *plan, const struct plan_launch *launch,
			void **parameters)
{
	struct form *form = data;
	struct form_kernel *kernel = &form->kernels[launch->kernel - plan->kernels];

	switch (form->variant.form) {
	case WEIR_PERSISTENT:
	case WEIR_RESUMABLE:
		run_persistent(form, plan, launch, kernel, parameters);
		break;
	case WEIR_SLICED:
		run_sliced(form, plan, launch, kernel->function[WEIR_SLICED], form->variant.parts,
			   parameters);
		break;
	default:
		start(plan, launch, kernel->function[WEIR_NATIVE], launch->shape.grid, parameters);
	}
}

/* As much dynamic shared memory as natively. */
static void allow_shared(CUfunction function, CUfunction native)
{
	int bytes;

	CU(cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, native));
	CU(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes));
}

static void look_up(const struct form *form, const struct plan *plan, struct form_kernel *kernel,
		    const struct plan_kernel *native)
{
	for (unsigned i = 0; i < form->saves.count; i++) {
		if (strcmp(form->saves.of[i].name, native->name) != 0)
			continue;
		kernel->save_fixed = form->saves.of[i].fixed;
		kernel->save_per_thread = form->saves.of[i].per_thread;
	}
	kernel->function[WEIR_NATIVE] = native->function;
	for (enum weir_form kind = WEIR_NATIVE + 1; kind < WEIR_FORM_COUNT; kind++) {
		char name[256];
		CUresult result;

		snprintf(name, sizeof(name), "%s%s", native->name, weir_form_suffix(kind));
		result = cuModuleGetFunction(&kernel->function[kind], plan->module, name);
		if (result == CUDA_ERROR_NOT_FOUND) {
			kernel->function[kind] = NULL;
			continue;
		}
		CU(result);
		allow_shared(kernel->function[kind], native->function);
	}
}

void form_attach(struct form *form, struct plan *plan)
{
	plan->launcher = launch_form;
	plan->launcher_data = form;
	form->watch.unseen_ns = plan->workload->gpu ? UNSEEN_NS : UINT64_MAX;
	/* Not for each launch: the driver reads clocks from the GPU, which takes 0.7 ms. */
	form->clock_khz = attribute(plan, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
	form->memory_khz = attribute(plan, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
	form->bus_bits = attribute(plan, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
	for (unsigned i = 0; i < PLAN_KERNELS_MAX; i++) {
		struct form_kernel *kernel = &form->kernels[i];

		CU(cuMemAlloc(&kernel->words, sizeof(struct weir_words)));
		CU(cuMemsetD8(kernel->words, 0, sizeof(struct weir_words)));
		if (i < plan->kernel_count)
			look_up(form, plan, kernel, &plan->kernels[i]);
	}
	CU(cuCtxSynchronize());
}

void form_note_native(struct form *form, const struct plan *plan)
{
	if (!form->us)
		form->us = calloc(plan->launch_count, sizeof(*form->us));
	if (!form->us)
		workload_fail("out of memory");
	for (size_t i = 0; i < plan->launch_count; i++)
		form->us[i] = plan->launches[i].us;
}

bool form_has(const struct form *form, const struct plan *plan, enum weir_form kind)
{
	for (unsigned i = 0; i < plan->kernel_count; i++)
		if (!form->kernels[i].function[kind])
			return false;
	return true;
}
