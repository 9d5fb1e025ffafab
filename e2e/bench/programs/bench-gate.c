/* What an open gate costs the GPU: kernels in one stream, each behind a batch of 0 to 4 satisfied
 * waits on 64-bit words in host pages registered read-only, as libweir's gates are. That is
 * why a level has one demand word for all higher levels, and not one for each. Run it without
 * libweir. Prints one line of JSON, ns a kernel by number of waits: the shortest of a few runs.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weir/base.h>

#include "spin.h"

#define WAITS_MAX 4u
#define RUNS      5u
#define PAGE      4096u

static CUdeviceptr register_pages(void)
{
	int fd = memfd_create("gates", MFD_CLOEXEC);
	CUdeviceptr pages;

	if (fd < 0 || ftruncate(fd, WAITS_MAX * PAGE) < 0)
		workload_fail("no shared memory");
	void *memory = mmap(NULL, WAITS_MAX * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		workload_fail("shared memory cannot be mapped");
	close(fd);
	CU(cuMemHostRegister(memory, WAITS_MAX * PAGE,
			     CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
				     CU_MEMHOSTREGISTER_READ_ONLY));
	CU(cuMemHostGetDevicePointer(&pages, memory, 0));
	return pages;
}

/* ns for each of @kernels, all behind @n waits. */
static double run(struct spin *spin, CUstream stream, CUdeviceptr pages, unsigned n,
		  uint64_t kernels)
{
	CUstreamBatchMemOpParams waits[WAITS_MAX] = {0};

	for (unsigned i = 0; i < n; i++) {
		waits[i].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
		waits[i].waitValue.address = pages + i * PAGE;
		waits[i].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	}
	uint64_t begin = now_ns();
	for (uint64_t i = 0; i < kernels; i++) {
		if (n)
			CU(cuStreamBatchMemOp(stream, n, waits, 0));
		spin_launch(spin, stream);
	}
	CU(cuStreamSynchronize(stream));
	return (double)(now_ns() - begin) / (double)kernels;
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	double best[WAITS_MAX + 1] = {0};
	struct spin spin;
	CUstream stream;

	workload_parse(&w, argc, argv, "ns of an open gate", NULL);
	workload_open(&w, spin_ptx);
	/* Long enough that the GPU takes the time, not the launching thread. */
	spin_init(&spin, &w, 1, 32, (uint32_t)workload_pick(&w, w.iterations, 32, 256));
	uint64_t kernels = workload_pick(&w, w.size, 20, 500);
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CUdeviceptr pages = register_pages();

	workload_ready(&w);
	for (unsigned r = 0; r < RUNS; r++) {
		for (unsigned n = 0; n <= WAITS_MAX; n++) {
			double ns = run(&spin, stream, pages, n, kernels);
			if (r == 0 || ns < best[n])
				best[n] = ns;
		}
	}
	printf("{\"program\": \"bench-gate\", \"waits\": [");
	for (unsigned n = 0; n <= WAITS_MAX; n++)
		printf("%s%.0f", n ? ", " : "", best[n]);
	printf("]}\n");
	spin_verify(&spin);
	spin_deinit(&spin);
	CU(cuStreamDestroy(stream));
	workload_close(&w);
	return 0;
}
