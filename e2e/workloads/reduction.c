/* Sum, maximum and count of odd values of a vector: warp shuffles, shared memory and atomics of 32
 * and 64 bits. */
#include <stdio.h>
#include <stdlib.h>

#include <weir/base.h>

#include "workload.h"

#define THREADS 128

extern const char reduction_ptx[];

/* As in reduction.cu. */
struct result {
	uint64_t sum;
	uint32_t maximum;
	uint32_t odd;
};

static struct result expected(const uint32_t *values, uint32_t n)
{
	struct result result = {0};

	for (uint32_t i = 0; i < n; i++) {
		result.sum += values[i];
		result.odd += values[i] & 1;
		if (values[i] > result.maximum)
			result.maximum = values[i];
	}
	return result;
}

static struct result reduce(CUfunction kernel, CUdeviceptr values, uint32_t n, uint32_t blocks,
			    CUdeviceptr out)
{
	void *parameters[] = {&values, &n, &out};
	struct result result;

	CU(cuMemsetD8(out, 0, sizeof(result)));
	CU(cuLaunchKernel(kernel, blocks, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL));
	CU(cuMemcpyDtoH(&result, out, sizeof(result)));
	return result;
}

static void check(struct result got, struct result want, uint64_t seed)
{
	if (got.sum != want.sum || got.maximum != want.maximum || got.odd != want.odd)
		workload_fail("wrong result: sum %llu maximum %u odd %u, not %llu %u %u; seed %llu",
			      (unsigned long long)got.sum, got.maximum, got.odd,
			      (unsigned long long)want.sum, want.maximum, want.odd,
			      (unsigned long long)seed);
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	uint64_t rounds, done = 0;
	CUdeviceptr values, out;

	workload_parse(&w, argc, argv, "reduces vectors and checks the results", NULL);
	rounds = w.seconds > 0 && !w.iterations ? UINT64_MAX
						: workload_pick(&w, w.iterations, 4, 100);
	uint32_t n = (uint32_t)workload_pick(&w, w.size, 10000, 1u << 24);
	cleanup(freep) uint32_t *host = workload_alloc(n * sizeof(*host));
	workload_open(&w, reduction_ptx);
	CU(cuMemAlloc(&values, n * sizeof(*host)));
	CU(cuMemAlloc(&out, sizeof(struct result)));
	struct random random = {w.seed};
	for (uint32_t i = 0; i < n; i++)
		host[i] = (uint32_t)random_next(&random);

	workload_ready(&w);
	for (; done < rounds && !workload_stopped(&w); done++) {
		/* Different numbers in each round at the cost of one. */
		host[random_below(&random, n)] = (uint32_t)random_next(&random);
		workload_upload(values, host, n * sizeof(*host));
		uint32_t blocks = 1 + random_below(&random, 4 * (uint32_t)w.sm_count);
		check(reduce(workload_kernel(&w, "reduction"), values, n, blocks, out),
		      expected(host, n), w.seed);
	}
	CU(cuMemFree(out));
	CU(cuMemFree(values));
	workload_close(&w);
	printf("reduction: ok, %llu rounds of %u elements\n", (unsigned long long)done, n);
	return 0;
}
