/* A program that is one long launch: 262 144 threads in a compare-and-swap loop on one word. The
 * launch is the first of its kernel, so nobody knows how long it takes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "workload.h"

#define SALT             1515870810u /* the number in cas.cu; SALT_DIGITS: as text */
#define SALT_DIGITS      "1515870810"
#define SALT_MAX         1000000000u
#define CALIBRATION_US   200000.0
#define ITERATIONS_LIMIT 4096u /* times the threads it is less than 2^32 */

extern const char cas_ptx[];

struct cas {
	uint64_t salt;
	double length_ms;
	bool calibrate;

	unsigned blocks, threads, iterations;
	CUdeviceptr word, sums;
};

/* The code with another number in it, for the driver and for libweir the code of another program.
 */
static char *salted(uint64_t salt)
{
	char *text = workload_alloc(strlen(cas_ptx) + 1), digits[sizeof(SALT_DIGITS)], *at;

	memcpy(text, cas_ptx, strlen(cas_ptx) + 1);
	snprintf(digits, sizeof(digits), "%010llu", (unsigned long long)(SALT + salt));
	if (salt > SALT_MAX || !strstr(text, SALT_DIGITS))
		workload_fail("--salt: more than %u, or no such number in the code", SALT_MAX);
	for (at = text; (at = strstr(at, SALT_DIGITS)); at += strlen(digits))
		memcpy(at, digits, strlen(digits));
	return text;
}

static void launch(const struct cas *cas, const struct workload *w)
{
	void *parameters[] = {(void *)&cas->word, (void *)&cas->sums, (void *)&cas->iterations};

	CU(cuMemsetD32(cas->word, 0, 1));
	CU(cuCtxSynchronize());
	CU(cuLaunchKernel(workload_kernel(w, "cas_count"), cas->blocks, 1, 1, cas->threads, 1, 1, 0,
			  NULL, parameters, NULL));
}

/* Each value up to the last was swapped away once. */
static void verify(const struct cas *cas)
{
	size_t threads = (size_t)cas->blocks * cas->threads;
	uint64_t total = (uint64_t)threads * cas->iterations, sum = 0;
	cleanup(freep) uint64_t *sums = workload_alloc(threads * sizeof(*sums));
	uint32_t word;

	CU(cuMemcpyDtoH(&word, cas->word, sizeof(word)));
	CU(cuMemcpyDtoH(sums, cas->sums, threads * sizeof(*sums)));
	for (size_t i = 0; i < threads; i++)
		sum += sums[i] - (SALT + cas->salt);
	if (word != total || sum != total * (total - 1) / 2)
		workload_fail("wrong result: the word is %u, not %llu, and the sum %llu", word,
			      (unsigned long long)total, (unsigned long long)sum);
}

/* The iterations that last --length-ms. */
static unsigned calibrate(struct cas *cas, const struct workload *w)
{
	double us = 0;

	for (cas->iterations = 1;; cas->iterations *= 2) {
		uint64_t begin = now_ns();

		launch(cas, w);
		CU(cuCtxSynchronize());
		us = (double)(now_ns() - begin) / 1e3;
		if (us >= CALIBRATION_US || cas->iterations >= ITERATIONS_LIMIT / 2)
			break;
	}
	double wanted = cas->iterations * cas->length_ms * 1e3 / us;

	return wanted < 1 ? 1 : wanted > ITERATIONS_LIMIT ? ITERATIONS_LIMIT : (unsigned)wanted;
}

static void run(struct cas *cas, const struct workload *w)
{
	uint64_t begin = now_ns();

	launch(cas, w);
	uint64_t returned = now_ns();
	CU(cuCtxSynchronize());
	uint64_t end = now_ns();

	verify(cas);
	printf("{\"program\": \"cas\", \"threads\": %u, \"iterations\": %u, \"launch_ms\": %.3f, "
	       "\"ms\": %.3f}\n",
	       cas->blocks * cas->threads, cas->iterations, (double)(returned - begin) / 1e6,
	       (double)(end - begin) / 1e6);
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	struct cas cas = {.length_ms = 2500};
	const struct workload_option own[] = {
		{"salt", OPTION_NUMBER, &cas.salt, "other code for each number"},
		{"length-ms", OPTION_REAL, &cas.length_ms, "of the launch, for --calibrate"},
		{"calibrate", OPTION_FLAG, &cas.calibrate, "print iterations for --length-ms"},
		{0},
	};

	workload_parse(&w, argc, argv, "one launch of seconds, checked", own);
	cleanup(freep) char *code = salted(cas.salt);

	workload_open(&w, code);
	cas.blocks = (unsigned)workload_pick(&w, w.size, 2 * (uint64_t)w.sm_count, 1024);
	cas.threads = (unsigned)workload_pick(&w, 0, 32, 256);
	cas.iterations = (unsigned)workload_pick(&w, w.iterations, 16, 16);
	if (cas.blocks > 1024 || cas.iterations > ITERATIONS_LIMIT)
		workload_fail("--size: up to 1024, --iterations: up to %u", ITERATIONS_LIMIT);
	CU(cuMemAlloc(&cas.word, sizeof(uint32_t)));
	CU(cuMemAlloc(&cas.sums, (size_t)cas.blocks * cas.threads * sizeof(uint64_t)));
	if (cas.calibrate)
		printf("%u\n", calibrate(&cas, &w));
	workload_ready(&w);
	if (!cas.calibrate)
		run(&cas, &w);
	CU(cuMemFree(cas.sums));
	CU(cuMemFree(cas.word));
	workload_close(&w);
	return 0;
}
