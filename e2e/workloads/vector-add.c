/* c = a + b, then c = c + b several times, so that a lost or repeated launch shows; each round has
 * other numbers. Every element is checked. */
#include <stdio.h>
#include <stdlib.h>

#include <weir/base.h>

#include "workload.h"

#define THREADS 128

extern const char vector_add_ptx[];

struct vectors {
	uint32_t n;
	uint64_t launches; /* in a round */
	float *a, *b, *c;
	CUdeviceptr device_a, device_b, device_c;
};

static void vectors_init(struct vectors *v, uint32_t n, uint64_t launches)
{
	size_t bytes = n * sizeof(float);

	*v = (struct vectors){.n = n,
			      .launches = launches,
			      .a = workload_alloc(bytes),
			      .b = workload_alloc(bytes),
			      .c = workload_alloc(bytes)};
	CU(cuMemAlloc(&v->device_a, bytes));
	CU(cuMemAlloc(&v->device_b, bytes));
	CU(cuMemAlloc(&v->device_c, bytes));
}

static void vectors_deinit(struct vectors *v)
{
	CU(cuMemFree(v->device_a));
	CU(cuMemFree(v->device_b));
	CU(cuMemFree(v->device_c));
	free(v->a);
	free(v->b);
	free(v->c);
}

static void fill(struct vectors *v, struct random *random)
{
	for (uint32_t i = 0; i < v->n; i++) {
		v->a[i] = (float)random_below(random, 1u << 24) / 256;
		v->b[i] = (float)random_below(random, 1u << 24) / 1024;
	}
}

static void add(struct vectors *v, CUfunction kernel)
{
	size_t bytes = v->n * sizeof(float);
	void *parameters[] = {&v->device_a, &v->device_b, &v->device_c, &v->n};

	workload_upload(v->device_a, v->a, bytes);
	workload_upload(v->device_b, v->b, bytes);
	CU(cuMemsetD8(v->device_c, 0xff, bytes));
	for (uint64_t i = 0; i < v->launches; i++) {
		CU(cuLaunchKernel(kernel, (v->n + THREADS - 1) / THREADS, 1, 1, THREADS, 1, 1, 0,
				  NULL, parameters, NULL));
		parameters[0] = &v->device_c;
	}
	CU(cuMemcpyDtoH(v->c, v->device_c, bytes));
}

static void check(const struct vectors *v, uint64_t seed)
{
	for (uint32_t i = 0; i < v->n; i++) {
		float expected = v->a[i];

		for (uint64_t j = 0; j < v->launches; j++)
			expected += v->b[i];
		if (v->c[i] != expected)
			workload_fail("wrong result: c[%u] is %.9g, not %.9g; seed %llu", i,
				      (double)v->c[i], (double)expected, (unsigned long long)seed);
	}
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	struct vectors vectors;
	uint64_t rounds, done = 0;

	workload_parse(&w, argc, argv, "adds vectors and checks every element", NULL);
	rounds = w.seconds > 0 && !w.iterations ? UINT64_MAX
						: workload_pick(&w, w.iterations, 4, 100);
	workload_open(&w, vector_add_ptx);
	vectors_init(&vectors, (uint32_t)workload_pick(&w, w.size, 5000, 1u << 22),
		     workload_pick(&w, 0, 2, 16));
	struct random random = {w.seed};

	workload_ready(&w);
	for (; done < rounds && !workload_stopped(&w); done++) {
		fill(&vectors, &random);
		add(&vectors, workload_kernel(&w, "vector_add"));
		check(&vectors, w.seed);
	}
	vectors_deinit(&vectors);
	workload_close(&w);
	printf("vector-add: ok, %llu rounds of %u elements\n", (unsigned long long)done, vectors.n);
	return 0;
}
