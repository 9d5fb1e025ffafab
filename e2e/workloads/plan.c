#include "plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#define SHARED_USUAL (48u << 10) /* bytes */

const char *const class_names[CLASS_COUNT] = {"large", "small", "trivial"};

enum input_class class_find(const char *name)
{
	enum input_class class = 0;

	while (class < CLASS_COUNT && strcmp(name, class_names[class]) != 0)
		class ++;
	return class;
}

static struct buffer *new_buffer(struct plan *plan, size_t bytes)
{
	if (plan->buffer_count == PLAN_BUFFERS_MAX)
		workload_fail("%s: too many buffers", plan->benchmark->name);
	struct buffer *buffer = &plan->buffers[plan->buffer_count++];
	*buffer = (struct buffer){.bytes = bytes};
	return buffer;
}

struct buffer *plan_buffer(struct plan *plan, size_t bytes)
{
	struct buffer *buffer = new_buffer(plan, bytes);

	CU(cuMemAlloc(&buffer->device, bytes));
	return buffer;
}

struct buffer *plan_mapped(struct plan *plan, size_t bytes)
{
	struct buffer *buffer = new_buffer(plan, bytes);

	buffer->mapped = true;
	CU(cuMemHostAlloc(&buffer->result, bytes, CU_MEMHOSTALLOC_DEVICEMAP));
	CU(cuMemHostGetDevicePointer(&buffer->device, buffer->result, 0));
	return buffer;
}

void *buffer_input(struct buffer *buffer)
{
	return buffer->input = workload_alloc(buffer->bytes);
}

void *buffer_start(struct buffer *buffer)
{
	CU(cuMemAlloc(&buffer->original, buffer->bytes));
	return buffer_input(buffer);
}

void *buffer_zeros(struct buffer *buffer)
{
	return memset(buffer_start(buffer), 0, buffer->bytes);
}

void buffer_keep(struct buffer *buffer)
{
	buffer->result = workload_alloc(buffer->bytes);
}

void *buffer_want(struct buffer *buffer)
{
	if (!buffer->mapped)
		buffer_keep(buffer);
	return buffer->want = workload_alloc(buffer->bytes);
}

static void buffer_deinit(struct buffer *buffer)
{
	if (buffer->mapped) {
		CU(cuMemFreeHost(buffer->result));
	} else {
		CU(cuMemFree(buffer->device));
		if (buffer->original)
			CU(cuMemFree(buffer->original));
		free(buffer->result);
	}
	free(buffer->input);
	free(buffer->want);
}

void plan_constant(struct plan *plan, const char *name, const void *data, size_t bytes)
{
	CUdeviceptr address;
	size_t size;

	CU(cuModuleGetGlobal(&address, &size, plan->module, name));
	if (size < bytes)
		workload_fail("%s: %s has %zu bytes, not %zu", plan->benchmark->name, name, size,
			      bytes);
	workload_upload(address, data, bytes);
}

static struct plan_kernel *find_kernel(struct plan *plan, const char *name)
{
	for (unsigned i = 0; i < plan->kernel_count; i++)
		if (strcmp(plan->kernels[i].name, name) == 0)
			return &plan->kernels[i];
	if (plan->kernel_count == PLAN_KERNELS_MAX)
		workload_fail("%s: too many kernels", plan->benchmark->name);
	struct plan_kernel *kernel = &plan->kernels[plan->kernel_count++];
	*kernel = (struct plan_kernel){.name = name};
	CU(cuModuleGetFunction(&kernel->function, plan->module, name));
	return kernel;
}

static void copy_argument(struct plan_launch *launch, size_t i, const struct argument *argument)
{
	void *to = &launch->arguments[i];

	if (argument->size > sizeof(launch->arguments[i]))
		to = launch->large[i] = workload_alloc(argument->size);
	memcpy(to, argument->value, argument->size);
}

void plan_add_launch(struct plan *plan, const char *kernel, struct shape shape,
		     const struct argument *arguments, size_t count)
{
	struct plan_launch *launch;

	if (plan->launch_count == plan->launch_capacity) {
		plan->launch_capacity = plan->launch_capacity ? 2 * plan->launch_capacity : 16;
		plan->launches =
			realloc(plan->launches, plan->launch_capacity * sizeof(*plan->launches));
		if (!plan->launches)
			workload_fail("out of memory");
	}
	launch = &plan->launches[plan->launch_count++];
	*launch = (struct plan_launch){.kernel = find_kernel(plan, kernel), .shape = shape};
	launch->kernel->launches++;
	launch->argument_count = (unsigned)count;
	for (size_t i = 0; i < count && i < PLAN_ARGUMENTS_MAX; i++)
		copy_argument(launch, i, &arguments[i]);
	/* More has to be asked for. */
	if (shape.shared > SHARED_USUAL)
		CU(cuFuncSetAttribute(launch->kernel->function,
				      CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
				      (int)shape.shared));
}

void plan_init(struct plan *plan, const struct benchmark *benchmark,
	       const struct workload *workload, uint32_t size)
{
	*plan = (struct plan){.benchmark = benchmark,
			      .workload = workload,
			      .random = {workload->seed},
			      .size = size};
	CU(cuModuleLoadData(&plan->module, benchmark->ptx));
	CU(cuStreamCreate(&plan->stream, CU_STREAM_NON_BLOCKING));
	benchmark->plan(plan, size);
}

void plan_deinit(struct plan *plan)
{
	for (size_t i = 0; i < plan->launch_count; i++) {
		for (unsigned k = 0; k < PLAN_ARGUMENTS_MAX; k++)
			free(plan->launches[i].large[k]);
		if (plan->launches[i].before) {
			CU(cuEventDestroy(plan->launches[i].before));
			CU(cuEventDestroy(plan->launches[i].after));
		}
	}
	free(plan->launches);
	for (unsigned i = 0; i < plan->kernel_count; i++) {
		samples_deinit(&plan->kernels[i].single);
		samples_deinit(&plan->kernels[i].rounds);
	}
	samples_deinit(&plan->wall);
	for (unsigned i = 0; i < plan->buffer_count; i++)
		buffer_deinit(&plan->buffers[i]);
	free(plan->state);
	CU(cuStreamDestroy(plan->stream));
	CU(cuModuleUnload(plan->module));
}

void plan_expect(struct plan *plan, uint64_t passes)
{
	for (unsigned i = 0; i < plan->buffer_count; i++) {
		const struct buffer *buffer = &plan->buffers[i];
		uint64_t *want = buffer->want;

		for (size_t k = 0; buffer->adds && k < buffer->bytes / sizeof(*want); k++)
			want[k] *= passes;
	}
}

/* Once. */
static void upload(const struct plan *plan)
{
	for (unsigned i = 0; i < plan->buffer_count; i++) {
		const struct buffer *buffer = &plan->buffers[i];

		if (buffer->input)
			CU(cuMemcpyHtoD(buffer->original ? buffer->original : buffer->device,
					buffer->input, buffer->bytes));
	}
	CU(cuCtxSynchronize());
}

void plan_renew(const struct plan *plan)
{
	for (unsigned i = 0; i < plan->buffer_count; i++) {
		const struct buffer *buffer = &plan->buffers[i];

		if (buffer->original && !buffer->mapped)
			CU(cuMemcpyDtoDAsync(buffer->device, buffer->original, buffer->bytes,
					     plan->stream));
	}
}

/* Queues what makes all buffers as they are before the launches. */
static void restore(const struct plan *plan)
{
	plan_renew(plan);
	for (unsigned i = 0; i < plan->buffer_count; i++) {
		const struct buffer *buffer = &plan->buffers[i];

		if (buffer->mapped)
			memset(buffer->result, 0, buffer->bytes);
		else if (!buffer->input)
			CU(cuMemsetD8Async(buffer->device, 0xff, buffer->bytes, plan->stream));
	}
}

static void start(struct plan *plan, struct plan_launch *launch, bool measure)
{
	void *parameters[PLAN_ARGUMENTS_MAX + 1];
	const struct shape *shape = &launch->shape;

	for (unsigned i = 0; i < PLAN_ARGUMENTS_MAX; i++)
		parameters[i] = launch->large[i] ? launch->large[i] : &launch->arguments[i];
	if (measure && !launch->before) {
		CU(cuEventCreate(&launch->before, CU_EVENT_DEFAULT));
		CU(cuEventCreate(&launch->after, CU_EVENT_DEFAULT));
	}
	if (measure)
		CU(cuEventRecord(launch->before, plan->stream));
	if (plan->launcher)
		plan->launcher(plan->launcher_data, plan, launch, parameters);
	else
		CU(cuLaunchKernel(launch->kernel->function, shape->grid[0], shape->grid[1],
				  shape->grid[2], shape->block[0], shape->block[1], shape->block[2],
				  shape->shared, plan->stream, parameters, NULL));
	if (measure)
		CU(cuEventRecord(launch->after, plan->stream));
}

static void note_times(struct plan *plan)
{
	for (unsigned i = 0; i < plan->kernel_count; i++)
		plan->kernels[i].round_us = 0;
	for (size_t i = 0; i < plan->launch_count; i++) {
		struct plan_launch *launch = &plan->launches[i];
		float ms;

		CU(cuEventElapsedTime(&ms, launch->before, launch->after));
		launch->us = (double)ms * 1e3;
		samples_add(&launch->kernel->single, launch->us);
		launch->kernel->round_us += launch->us;
	}
	for (unsigned i = 0; i < plan->kernel_count; i++)
		samples_add(&plan->kernels[i].rounds, plan->kernels[i].round_us);
}

static void check_floats(const struct plan *plan, const struct buffer *buffer)
{
	const float *want = buffer->want, *result = buffer->result;

	for (size_t i = 0; i < buffer->bytes / sizeof(float); i++) {
		double scale = fmax(1, fabs((double)want[i]));

		if (!(fabs((double)result[i] - (double)want[i]) <= buffer->tolerance * scale))
			workload_fail("%s: wrong result: buffer %zu, [%zu] is %.9g, not %.9g; "
				      "seed %llu",
				      plan->benchmark->name, (size_t)(buffer - plan->buffers), i,
				      (double)result[i], (double)want[i],
				      (unsigned long long)plan->workload->seed);
	}
}

static void check_bytes(const struct plan *plan, const struct buffer *buffer)
{
	const uint8_t *want = buffer->want, *result = buffer->result;
	size_t at = 0;
	uint32_t is = 0, not = 0;

	if (memcmp(want, result, buffer->bytes) == 0)
		return;
	while (want[at] == result[at])
		at++;
	at = at / sizeof(is) * sizeof(is);
	memcpy(&is, result + at, buffer->bytes - at < sizeof(is) ? buffer->bytes - at : sizeof(is));
	memcpy(&not, want + at, buffer->bytes - at < sizeof(is) ? buffer->bytes - at : sizeof(is));
	workload_fail("%s: wrong result: buffer %zu of %zu bytes, at %zu: %#x, not %#x; seed %llu",
		      plan->benchmark->name, (size_t)(buffer - plan->buffers), buffer->bytes, at,
		      is, not, (unsigned long long)plan->workload->seed);
}

/* Goes on with @hash over the bytes. Words at a time: results may have a gigabyte. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
	const uint8_t *p = data;
	uint64_t word;

	for (; bytes; p += word, bytes -= word) {
		uint64_t value = 0;

		word = bytes < sizeof(value) ? bytes : sizeof(value);
		memcpy(&value, p, word);
		hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 32;
	}
	return hash;
}

void plan_check(struct plan *plan)
{
	plan->hash = 0;
	for (unsigned i = 0; i < plan->buffer_count; i++) {
		const struct buffer *buffer = &plan->buffers[i];

		if (!buffer->result)
			continue;
		if (!buffer->mapped)
			CU(cuMemcpyDtoH(buffer->result, buffer->device, buffer->bytes));
		if (buffer->want && buffer->tolerance > 0)
			check_floats(plan, buffer);
		else if (buffer->want)
			check_bytes(plan, buffer);
		if (buffer->want)
			plan->hash = hash_bytes(plan->hash, buffer->result, buffer->bytes);
	}
	if (plan->benchmark->judge)
		plan->benchmark->judge(plan);
}

static void launch_all(struct plan *plan, bool measure)
{
	for (size_t i = 0; i < plan->launch_count; i++)
		start(plan, &plan->launches[i], measure);
	if (plan->benchmark->meanwhile)
		plan->benchmark->meanwhile(plan);
}

void plan_prepare(struct plan *plan)
{
	if (plan->rounds++ == 0)
		upload(plan);
	restore(plan);
	CU(cuStreamSynchronize(plan->stream));
}

void plan_queue(struct plan *plan)
{
	launch_all(plan, false);
}

struct plan_launch *plan_find_launch(struct plan *plan, const char *kernel)
{
	for (size_t i = 0; i < plan->launch_count; i++)
		if (strcmp(plan->launches[i].kernel->name, kernel) == 0)
			return &plan->launches[i];
	return NULL;
}

void plan_queue_launch(struct plan *plan, struct plan_launch *launch)
{
	start(plan, launch, false);
}

void plan_round(struct plan *plan, uint64_t repeat)
{
	if (plan->rounds++ == 0)
		upload(plan);
	if (plan->benchmark->meanwhile)
		repeat = 1;
	while (repeat--) {
		restore(plan);
		launch_all(plan, false);
	}
	CU(cuStreamSynchronize(plan->stream));
	plan_check(plan);
}

void plan_forget(struct plan *plan)
{
	plan->wall.n = 0;
	for (unsigned i = 0; i < plan->kernel_count; i++)
		plan->kernels[i].single.n = plan->kernels[i].rounds.n = 0;
}

void plan_measure(struct plan *plan)
{
	uint64_t began;

	plan_prepare(plan);
	began = now_ns();
	launch_all(plan, true);
	CU(cuStreamSynchronize(plan->stream));
	samples_add(&plan->wall, (double)(now_ns() - began) / 1e3);
	note_times(plan);
}
