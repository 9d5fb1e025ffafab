#include "host.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

struct weir_loop *host_loop(CUfunction kernel, const struct weir_loop_options *options)
{
	struct weir_loop *loop = NULL;

	if (weir_loop_new(&loop, kernel, options))
		workload_fail("weir_loop_new: %s", weir_loop_error(NULL));
	return loop;
}

double host_loop_run(struct weir_loop *loop, void **parameters)
{
	uint64_t began = now_ns();
	int code = 0, error = weir_loop_run(loop, parameters, &code);
	double seconds = host_seconds(began);

	if (error)
		workload_fail("weir_loop_run: %s", weir_loop_error(loop));
	if (code)
		workload_fail("the loop has ended with %d: %s", code,
			      strerror(code < 0 ? -code : code));
	return seconds;
}

void host_loop_end(struct weir_loop *loop)
{
	struct weir_loop_stats stats;

	weir_loop_stats(loop, &stats);
	fprintf(stderr,
		"loop: on the GPU for %.3f ms; %" PRIu64 " requests in %" PRIu64 " batches\n",
		(double)stats.ran_ns / 1e6, stats.requests, stats.batches);
	weir_loop_free(loop);
}

const struct host_way *host_way_find(const struct host_way *ways, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(ways[i].name, name) == 0)
			return &ways[i];
	fprintf(stderr, "--way: one of");
	for (size_t i = 0; i < n; i++)
		fprintf(stderr, " %s", ways[i].name);
	fputc('\n', stderr);
	exit(2);
}

void *host_mapped(size_t bytes, CUdeviceptr *device)
{
	void *memory;

	CU(cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_DEVICEMAP));
	CU(cuMemHostGetDevicePointer(device, memory, 0));
	return memset(memory, 0, bytes);
}

CUdeviceptr host_zeros(size_t bytes)
{
	CUdeviceptr memory;

	CU(cuMemAlloc(&memory, bytes));
	CU(cuMemsetD8(memory, 0, bytes));
	CU(cuCtxSynchronize());
	return memory;
}

/* As in weir/loop/leaving.cuh. */
struct leaving {
	unsigned long long longest, times, asked, back;
	unsigned took[256];
};

double host_leaving_us(CUmodule module)
{
	struct leaving leaving;
	CUdeviceptr on_gpu;
	unsigned long long left = 0;
	size_t size;
	unsigned us;

	CU(cuCtxSynchronize());
	CU(cuModuleGetGlobal(&on_gpu, &size, module, "weir_loop_leaving"));
	if (size != sizeof(leaving))
		workload_fail("weir_loop_leaving has %zu bytes, not %zu", size, sizeof(leaving));
	CU(cuMemcpyDtoH(&leaving, on_gpu, sizeof(leaving)));
	for (us = 0; us + 1 < countof(leaving.took); us++) {
		left += leaving.took[us];
		if (100 * left >= 99 * leaving.times)
			break;
	}
	/* The last word has all that took longer. */
	bool is_known = us + 1 < countof(leaving.took);
	double within = is_known ? us + 1 : (double)leaving.longest / 1e3;
	fprintf(stderr, "loop: left %llu times, within %.1f us 99 times of 100, %.1f us at most\n",
		leaving.times, within, (double)leaving.longest / 1e3);
	return leaving.times ? within : 0;
}

double host_seconds(uint64_t since)
{
	return (double)(now_ns() - since) / 1e9;
}
