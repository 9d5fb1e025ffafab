#include "spin-timed.h"

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <weir/base.h>

#define DRIFT \
	10000 /* between two requests the clocks drift apart by less than this part of the time */

extern const char spin_timed_ptx[];

void timed_init(struct timed *timed, struct spin *spin, uint64_t kernels, bool spans)
{
	void *times;

	*timed = (struct timed){.spin = spin, .kernels = kernels};
	CU(cuModuleLoadData(&timed->module, spin_timed_ptx));
	CU(cuModuleGetFunction(&timed->kernel, timed->module, "spin_timed"));
	CU(cuMemAlloc(&timed->ended, sizeof(uint32_t)));
	CU(cuMemsetD32(timed->ended, 0, 1));
	if (spans)
		CU(cuEventCreate(&timed->front, CU_EVENT_DEFAULT));
	CU(cuEventCreate(&timed->first, CU_EVENT_DEFAULT));
	CU(cuEventCreate(&timed->last, CU_EVENT_DEFAULT));
	CU(cuMemAllocHost(&times, kernels * sizeof(*timed->times)));
	timed->times = times;
	timed->launched = workload_alloc(kernels * sizeof(*timed->launched));
	timed->lengths = workload_alloc(kernels * sizeof(*timed->lengths));
	timed->cpu_file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

void timed_deinit(struct timed *timed)
{
	if (timed->cpu_file >= 0)
		close(timed->cpu_file);
	free(timed->launched);
	free(timed->lengths);
	CU(cuMemFreeHost((void *)timed->times));
	if (timed->front)
		CU(cuEventDestroy(timed->front));
	CU(cuEventDestroy(timed->last));
	CU(cuEventDestroy(timed->first));
	CU(cuMemFree(timed->ended));
	CU(cuModuleUnload(timed->module));
}

/* ns that the thread ran, and that it was ready to run and did not. The file's own time on CPUs is
 * that of the last tick. */
static void read_cpu_time(const struct timed *timed, uint64_t *ran, uint64_t *waited)
{
	struct timespec now;
	char text[64] = "";
	char *rest = text;

	if (timed->cpu_file >= 0 && pread(timed->cpu_file, text, sizeof(text) - 1, 0) < 0)
		workload_fail("/proc/thread-self/schedstat: cannot be read");
	strtoull(text, &rest, 10);
	*waited = strtoull(rest, NULL, 10);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	*ran = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void timed_begin(struct timed *timed)
{
	read_cpu_time(timed, &timed->ran, &timed->waited);
}

void timed_launch(struct timed *timed, uint64_t k, CUstream stream)
{
	struct spin *spin = timed->spin;
	CUdeviceptr times = (CUdeviceptr)(uintptr_t)timed->times[k];
	void *parameters[] = {&spin->state, &spin->iterations, &timed->ended, &times};

	if (!k && timed->front)
		CU(cuEventRecord(timed->front, stream));
	CU(cuLaunchKernel(timed->kernel, spin->blocks, 1, 1, spin->threads, 1, 1, 0, stream,
			  parameters, NULL));
	spin->launches++;
	timed->launched[k] = now_ns();
	if (!k)
		CU(cuEventRecord(timed->first, stream));
	if (k == timed->kernels - 1)
		CU(cuEventRecord(timed->last, stream));
}

/* No kernel begins before its launch, and some begin soon after it: the smallest difference of the
 * two clocks is how far the GPU's is ahead. */
static void compare_clocks(struct timed *timed, uint64_t begin)
{
	int64_t ahead = (int64_t)(timed->times[0][0] - begin);
	int64_t limit = timed->ahead + (int64_t)((begin - timed->looked) / DRIFT);

	timed->ahead = timed->looked && limit < ahead ? limit : ahead;
	timed->looked = begin;
}

static uint64_t on_host(const struct timed *timed, uint64_t gpu)
{
	return gpu - (uint64_t)timed->ahead;
}

static uint64_t passed(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

static uint64_t between(CUevent from, CUevent to)
{
	float ms;

	CU(cuEventElapsedTime(&ms, from, to));
	return (uint64_t)((double)ms * 1e6);
}

/* How much later the last event came than its kernel's end, compared with the first one: both
 * events are what the driver waits for, and their times are the GPU's. */
static uint64_t released(const struct timed *timed)
{
	return passed(timed->times[timed->kernels - 1][1] - timed->times[0][1],
		      between(timed->first, timed->last));
}

static int compare(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static uint64_t median_length(const struct timed *timed)
{
	for (uint64_t k = 0; k < timed->kernels; k++)
		timed->lengths[k] = timed->times[k][1] - timed->times[k][0];
	qsort(timed->lengths, timed->kernels, sizeof(*timed->lengths), compare);
	return timed->lengths[timed->kernels / 2];
}

struct timed_parts timed_end(struct timed *timed, uint64_t begin, uint64_t end)
{
	struct timed_parts parts = {0};
	uint64_t before = begin, ran, waited;

	read_cpu_time(timed, &ran, &waited);
	compare_clocks(timed, begin);
	for (uint64_t k = 0; k < timed->kernels; k++) {
		uint64_t began = on_host(timed, timed->times[k][0]);
		uint64_t late = passed(before, smaller(timed->launched[k], began));

		*(k ? &parts.starved : &parts.call) += late;
		before = smaller(on_host(timed, timed->times[k][1]), end);
	}
	parts.kernel = median_length(timed);
	parts.kernels = timed->times[timed->kernels - 1][1] - timed->times[0][0];
	parts.spanned = timed->front ? between(timed->front, timed->last) : 0;
	parts.noticed = passed(before, end);
	parts.released = smaller(released(timed), parts.noticed);
	parts.served = passed(parts.call + parts.starved + parts.noticed, end - begin);
	if (timed->cpu_file >= 0) {
		parts.delayed = waited - timed->waited;
		parts.slept = passed(ran - timed->ran + parts.delayed, end - begin);
	}
	return parts;
}
