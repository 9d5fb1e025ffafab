/* C = A B in tiles. The elements are small integers, so that every sum is exact in a float whatever
 * its order, and C r = A (B r) must hold exactly for a random vector r (Freivalds): the check costs
 * n^2, and a wrong element escapes it with a chance of 1 in 2^20.
 */
#include <stdio.h>
#include <stdlib.h>

#include <weir/base.h>

#include "workload.h"

#define TILE          16
#define ELEMENT_LIMIT 16 /* n * 15^2 must stay below 2^24 */

extern const char matrix_multiply_ptx[];

static void fill(float *matrix, size_t elements, struct random *random)
{
	for (size_t i = 0; i < elements; i++)
		matrix[i] = (float)random_below(random, ELEMENT_LIMIT);
}

static void multiply(CUfunction kernel, const float *a, const float *b, float *c, uint32_t n)
{
	size_t bytes = (size_t)n * n * sizeof(float);
	uint32_t tiles = (n + TILE - 1) / TILE;
	CUdeviceptr device_a, device_b, device_c;
	void *parameters[] = {&device_a, &device_b, &device_c, &n};

	CU(cuMemAlloc(&device_a, bytes));
	CU(cuMemAlloc(&device_b, bytes));
	CU(cuMemAlloc(&device_c, bytes));
	workload_upload(device_a, a, bytes);
	workload_upload(device_b, b, bytes);
	CU(cuMemsetD8(device_c, 0xff, bytes));
	CU(cuLaunchKernel(kernel, tiles, tiles, 1, TILE, TILE, 1, 0, NULL, parameters, NULL));
	CU(cuMemcpyDtoH(c, device_c, bytes));
	CU(cuMemFree(device_c));
	CU(cuMemFree(device_b));
	CU(cuMemFree(device_a));
}

/* @out = @matrix @vector */
static void apply(int64_t *out, const float *matrix, const int64_t *vector, uint32_t n)
{
	for (uint32_t row = 0; row < n; row++) {
		int64_t sum = 0;

		for (uint32_t k = 0; k < n; k++)
			sum += (int64_t)matrix[(size_t)row * n + k] * vector[k];
		out[row] = sum;
	}
}

static void check(const float *a, const float *b, const float *c, uint32_t n, struct random *random)
{
	cleanup(freep) int64_t *memory = workload_alloc((size_t)n * 4 * sizeof(*memory));
	int64_t *r = memory, *br = r + n, *abr = br + n, *cr = abr + n;

	for (size_t i = 0; i < (size_t)n * n; i++)
		if (!(c[i] >= 0 && c[i] < 1 << 24))
			workload_fail("wrong result: c[%zu] is %g", i, (double)c[i]);
	for (uint32_t i = 0; i < n; i++)
		r[i] = random_below(random, 1u << 20);
	apply(br, b, r, n);
	apply(abr, a, br, n);
	apply(cr, c, r, n);
	for (uint32_t row = 0; row < n; row++)
		if (abr[row] != cr[row])
			workload_fail("wrong result in row %u of %u", row, n);
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	uint64_t rounds, done = 0;

	workload_parse(&w, argc, argv, "multiplies matrices in tiles and checks the product", NULL);
	rounds = w.seconds > 0 && !w.iterations ? UINT64_MAX
						: workload_pick(&w, w.iterations, 2, 10);
	uint32_t n = (uint32_t)workload_pick(&w, w.size, 40, 2048);
	if (n > (1u << 24) / (ELEMENT_LIMIT * ELEMENT_LIMIT))
		workload_fail("--size %u: too large for exact sums", n);
	workload_open(&w, matrix_multiply_ptx);

	size_t elements = (size_t)n * n;
	cleanup(freep) float *a = workload_alloc(elements * sizeof(float));
	cleanup(freep) float *b = workload_alloc(elements * sizeof(float));
	cleanup(freep) float *c = workload_alloc(elements * sizeof(float));
	struct random random = {w.seed};

	workload_ready(&w);
	for (; done < rounds && !workload_stopped(&w); done++) {
		fill(a, elements, &random);
		fill(b, elements, &random);
		multiply(workload_kernel(&w, "matrix_multiply"), a, b, c, n);
		check(a, b, c, n, &random);
	}
	workload_close(&w);
	printf("matrix-multiply: ok, %llu rounds of %u x %u\n", (unsigned long long)done, n, n);
	return 0;
}
