/* May a kernel wait where it is while another one runs (PEP's in-place saving)? Blocks of a LOW
 * that fit on each SM beside those of HIGH wait there, with their registers and their shared
 * memory, or they save these and leave. Measured is how soon HIGH can begin, how long its kernel
 * takes, and how soon all blocks of LOW are back at work. Run it without libweir. Prints one line
 * of JSON, times in us.
 */
#include <stdio.h>
#include <stdlib.h>

#include <weir/base.h>

#include "samples.h"
#include "spin.h"

#define THREADS    512u
#define LIMIT_NS   (2 * NS_PER_S) /* for what should take some us */
#define SETTLE_NS  (2 * NS_PER_MS)
#define PATTERN    2654435761u
#define PAGE_WORDS 4096u /* host memory: the order, and what each block has seen of it */

extern const char in_place_ptx[];

/* As in in-place.cu. */
enum { WORKS, WAITS, LEAVES, ORDERS = 4 };

struct low {
	CUmodule module;
	CUfunction kernel;
	CUstream stream;
	uint32_t blocks, threads, words; /* of shared memory of a block */
	volatile uint32_t *page;         /* [0]: the order */
	CUdeviceptr device, save, state;
	uint32_t number;
	uint64_t told; /* when the last order was given, ns */
};

static double us_since(uint64_t begin)
{
	return (double)(now_ns() - begin) / 1e3;
}

static void tell(struct low *low, uint32_t order)
{
	low->told = now_ns();
	low->page[0] = ++low->number * ORDERS + order;
}

/* us from the order until all blocks have seen it. */
static double all_have_seen(const struct low *low)
{
	for (uint32_t b = 0; b < low->blocks; b++)
		while (low->page[1 + b] != low->page[0])
			if (now_ns() - low->told > LIMIT_NS)
				workload_fail("block %u does not follow an order", b);
	return us_since(low->told);
}

static void launch(struct low *low)
{
	CUdeviceptr seen = low->device + sizeof(uint32_t);
	void *parameters[] = {&low->device, &seen, &low->save, &low->state, &low->words};

	CU(cuLaunchKernel(low->kernel, low->blocks, 1, 1, low->threads, 1, 1,
			  low->words * (unsigned)sizeof(uint32_t), low->stream, parameters, NULL));
}

/* us until all blocks are at work. */
static double begin(struct low *low)
{
	tell(low, WORKS);
	launch(low);
	return all_have_seen(low);
}

/* us until all have left. */
static double leave(struct low *low)
{
	tell(low, LEAVES);
	CU(cuStreamSynchronize(low->stream));
	return us_since(low->told);
}

/* us of HIGH's launch and kernel; negative: it does not begin while LOW waits. */
static double high_us(struct spin *high, CUstream stream)
{
	uint64_t launched = now_ns();

	spin_launch(high, stream);
	while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
		if (now_ns() - launched > LIMIT_NS)
			return -1;
	return us_since(launched);
}

static uint32_t *words_of(const struct low *low, size_t *n)
{
	*n = (size_t)low->blocks * low->words;
	uint32_t *words = workload_alloc(*n * sizeof(uint32_t));

	for (size_t i = 0; i < *n; i++)
		words[i] = (uint32_t)i * PATTERN;
	return words;
}

static void low_init(struct low *low, const struct workload *w)
{
	size_t n, threads = (size_t)low->blocks * low->threads * sizeof(uint32_t);
	uint32_t *words = words_of(low, &n);
	void *page;

	if (low->blocks >= PAGE_WORDS)
		workload_fail("more than %u blocks", PAGE_WORDS - 1);
	CU(cuModuleLoadData(&low->module, in_place_ptx));
	CU(cuModuleGetFunction(&low->kernel, low->module, "in_place"));
	if (w->gpu)
		CU(cuFuncSetAttribute(low->kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
				      (int)(low->words * sizeof(uint32_t))));
	CU(cuMemHostAlloc(&page, PAGE_WORDS * sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP));
	CU(cuMemHostGetDevicePointer(&low->device, page, 0));
	low->page = page;
	CU(cuMemAlloc(&low->save, n * sizeof(uint32_t)));
	workload_upload(low->save, words, n * sizeof(uint32_t));
	free(words);
	CU(cuMemAlloc(&low->state, threads));
	CU(cuMemsetD8(low->state, 0, threads));
	CU(cuStreamCreate(&low->stream, CU_STREAM_NON_BLOCKING));
}

/* What the blocks held is as it was. */
static void low_verify(const struct low *low)
{
	size_t n;
	uint32_t *want = words_of(low, &n), *have = workload_alloc(n * sizeof(uint32_t));

	CU(cuMemcpyDtoH(have, low->save, n * sizeof(uint32_t)));
	for (size_t i = 0; i < n; i++)
		if (have[i] != want[i])
			workload_fail("wrong result: word %zu", i);
	free(want);
	free(have);
}

static void low_deinit(struct low *low)
{
	CU(cuMemFree(low->save));
	CU(cuMemFree(low->state));
	CU(cuMemFreeHost((void *)low->page));
	CU(cuStreamDestroy(low->stream));
	CU(cuModuleUnload(low->module));
}

enum { ALONE, WAIT, BESIDE, RESUME, LEAVE, AFTER, RELAUNCH, TIMES };
static const char *const names[TIMES] = {
	[ALONE] = "alone", [WAIT] = "wait",   [BESIDE] = "beside",     [RESUME] = "resume",
	[LEAVE] = "leave", [AFTER] = "after", [RELAUNCH] = "relaunch",
};

/* Whether HIGH began while LOW waited. */
static bool trial(struct low *low, struct spin *high, CUstream stream, struct samples *times)
{
	samples_add(&times[ALONE], high_us(high, stream));
	begin(low);
	sleep_until_ns(now_ns() + SETTLE_NS);
	tell(low, WAITS);
	samples_add(&times[WAIT], all_have_seen(low));
	double beside = high_us(high, stream);
	if (beside < 0) {
		leave(low);
		return false;
	}
	samples_add(&times[BESIDE], beside);
	tell(low, WORKS);
	samples_add(&times[RESUME], all_have_seen(low));
	sleep_until_ns(now_ns() + SETTLE_NS);
	samples_add(&times[LEAVE], leave(low));
	samples_add(&times[AFTER], high_us(high, stream));
	samples_add(&times[RELAUNCH], begin(low));
	leave(low);
	return true;
}

static void print(const struct low *low, const struct spin *high, struct samples *times, bool fits)
{
	printf("{\"program\": \"bench-in-place\", \"blocks\": %u, \"threads\": %u, \"shared\": "
	       "%zu, "
	       "\"high_blocks\": %u, \"fits\": %s",
	       low->blocks, low->threads, low->words * sizeof(uint32_t), high->blocks,
	       fits ? "true" : "false");
	for (unsigned i = 0; i < TIMES; i++) {
		samples_sort(&times[i]);
		if (times[i].n)
			printf(", \"%s\": {\"p50\": %.1f, \"p99\": %.1f}", names[i],
			       samples_quantile(&times[i], 0.5), samples_quantile(&times[i], 0.99));
		samples_deinit(&times[i]);
	}
	puts("}");
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	uint64_t per_sm = 1, shared_kib = 0;
	const struct workload_option own[] = {
		{"per-sm", OPTION_NUMBER, &per_sm, "blocks of LOW on each SM of a real GPU"},
		{"shared-kib", OPTION_NUMBER, &shared_kib, "shared memory that each of them holds"},
		{0}};
	struct samples times[TIMES] = {{0}};
	struct spin high;
	CUstream stream;
	int least, greatest;
	bool fits = true;

	workload_parse(&w, argc, argv, "kernels that wait where they are", own);
	workload_open(&w, spin_ptx);
	/* An SM of the simulated GPU has one block: LOW takes half of the SMs. */
	struct low low = {.blocks = w.gpu ? (uint32_t)per_sm * (uint32_t)w.sm_count
					  : (uint32_t)w.sm_count / 2,
			  .threads = w.gpu ? THREADS : 64,
			  .words = (uint32_t)workload_pick(&w, shared_kib, 1, 48) * 256};
	low_init(&low, &w);
	spin_init(&high, &w, w.gpu ? (uint32_t)w.sm_count : 1, low.threads, 100);
	high.iterations = spin_calibrate(&high, (double)workload_pick(&w, w.size, 100, 200));
	CU(cuCtxGetStreamPriorityRange(&least, &greatest));
	CU(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest));
	workload_ready(&w);
	for (uint64_t i = workload_pick(&w, w.iterations, 3, 200); i && fits; i--)
		fits = trial(&low, &high, stream, times);
	CU(cuStreamSynchronize(stream));
	print(&low, &high, times, fits);
	low_verify(&low);
	spin_verify(&high);
	spin_deinit(&high);
	low_deinit(&low);
	CU(cuStreamDestroy(stream));
	workload_close(&w);
	return 0;
}
