/* The measuring client. Requests of several kernels arrive at random; each is timed from its first
 * launch to the return of the synchronise. A request may begin with a hint to Weir, and with a copy
 * to the GPU; neither is timed. Prints one line of JSON, in us; with --timed also how long the
 * request's kernels took on the GPU (`gpu_median`), and for each request, in their order, its time
 * and that of its median kernel on the GPU (`each`). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "samples.h"
#include "spin-timed.h"
#include "weir/weir.h"

#define HINT_SLACK_US 50 /* a program knows roughly when its launch comes */

struct burst {
	uint64_t kernels, requests, warm_up, threads;
	uint64_t gap_min_us, gap_max_us;
	uint64_t copy_kib, hint_us;
	double length_us;
	bool priority, calibrate, graphs, replays, timed, spans;
	const char *log;

	void *input; /* copied at the start of each request, and its destination; NULL: none */
	CUdeviceptr input_gpu;
	CUgraphExec graph;   /* of a request's kernels; NULL: none */
	struct timed timing; /* if timed */
};

/* us of each request. Empty unless the burst is timed: @gpu: of its kernels; @kernel: of the median
 * one. */
struct measured {
	struct samples all, gpu, kernel;
};

static CUstream open_stream(bool priority)
{
	int least, greatest;
	CUstream stream;

	CU(cuCtxGetStreamPriorityRange(&least, &greatest));
	CU(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING,
				      priority ? greatest : least));
	return stream;
}

static void open_input(struct burst *burst)
{
	if (!burst->copy_kib)
		return;
	burst->input = workload_alloc(burst->copy_kib << 10);
	memset(burst->input, 1, burst->copy_kib << 10);
	CU(cuMemAlloc(&burst->input_gpu, burst->copy_kib << 10));
}

static void close_input(struct burst *burst)
{
	if (burst->input)
		CU(cuMemFree(burst->input_gpu));
	free(burst->input);
}

static void open_graph(struct burst *burst, struct spin *spin, CUstream stream)
{
	uint64_t before = spin->launches;
	CUgraph graph;

	if (!burst->graphs && !burst->replays)
		return;
	CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	for (uint64_t i = 0; i < burst->kernels; i++)
		spin_launch(spin, stream);
	CU(cuStreamEndCapture(stream, &graph));
	CU(cuGraphInstantiate(&burst->graph, graph, 0));
	CU(cuGraphDestroy(graph));
	spin->launches = before;
}

static void replay(const struct burst *burst, struct spin *spin, CUstream stream)
{
	CU(cuGraphLaunch(burst->graph, stream));
	spin->launches += burst->kernels;
}

static void hint(const struct burst *burst, CUstream stream)
{
	uint64_t until = now_ns() + burst->hint_us * 1000;

	if (!burst->hint_us)
		return;
	/* Without Weir it is an error. */
	weir_expect(stream, (unsigned)burst->hint_us + HINT_SLACK_US);
	while (now_ns() < until)
		;
}

/* Kernels of a request that are launched one by one. */
static uint64_t launched(const struct burst *burst)
{
	return burst->graph && burst->replays ? 0 : burst->kernels;
}

/* ns. @parts: filled in if the burst is timed. */
static uint64_t request(struct burst *burst, struct spin *spin, CUstream stream,
			struct timed_parts *parts)
{
	hint(burst, stream);
	if (burst->input)
		CU(cuMemcpyHtoD(burst->input_gpu, burst->input, burst->copy_kib << 10));
	if (burst->timed)
		timed_begin(&burst->timing);
	uint64_t begin = now_ns();
	if (burst->graph)
		replay(burst, spin, stream);
	for (uint64_t i = 0; i < launched(burst); i++) {
		if (burst->timed)
			timed_launch(&burst->timing, i, stream);
		else
			spin_launch(spin, stream);
	}
	CU(cuStreamSynchronize(stream));
	uint64_t end = now_ns();
	if (burst->timed)
		*parts = timed_end(&burst->timing, begin, end);
	return end - begin;
}

static void log_request(const struct burst *burst, FILE *log, uint64_t ns,
			const struct timed_parts *parts)
{
	struct timespec now;

	if (!log)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	fprintf(log, "%lld.%06ld %.1f", (long long)now.tv_sec, now.tv_nsec / 1000,
		(double)ns / 1e3);
	if (burst->timed)
		fprintf(log, " %.1f %.1f %.1f %.1f %.1f %.1f %.1f %.2f",
			(double)parts->served / 1e3, (double)parts->call / 1e3,
			(double)parts->starved / 1e3, (double)parts->noticed / 1e3,
			(double)parts->delayed / 1e3, (double)parts->slept / 1e3,
			(double)parts->released / 1e3, (double)parts->spanned / 1e3);
	fputc('\n', log);
	fflush(log);
}

static void run(struct burst *burst, const struct workload *w, struct spin *spin,
		struct measured *measured)
{
	FILE *log = burst->log ? fopen(burst->log, "we") : NULL;
	struct random random = {w->seed};
	CUstream stream = open_stream(burst->priority);
	struct timed_parts parts;
	uint64_t before = 0;

	if (burst->log && !log)
		workload_fail("%s: cannot write it", burst->log);
	request(burst, spin, stream, &parts); /* the first one pays for lazy loading */
	open_graph(burst, spin, stream);
	while (measured->all.n < burst->requests && !workload_stopped(w)) {
		uint32_t spread = (uint32_t)(burst->gap_max_us - burst->gap_min_us + 1);
		uint64_t gap_us = burst->gap_min_us + random_below(&random, spread);

		sleep_until_ns(now_ns() + gap_us * 1000);
		uint64_t ns = request(burst, spin, stream, &parts);
		if (before++ < burst->warm_up)
			continue;
		samples_add(&measured->all, (double)ns / 1e3);
		if (burst->timed) {
			samples_add(&measured->gpu, (double)parts.kernels / 1e3);
			samples_add(&measured->kernel, (double)parts.kernel / 1e3);
		}
		log_request(burst, log, ns, &parts);
	}
	if (burst->graph)
		CU(cuGraphExecDestroy(burst->graph));
	CU(cuStreamDestroy(stream));
	if (log)
		fclose(log);
}

/* Before they are sorted. */
static void print_each(const struct measured *measured)
{
	printf("\"each\": [");
	for (size_t i = 0; i < measured->all.n; i++)
		printf("%s[%.1f, %.2f]", i ? ", " : "", measured->all.values[i],
		       measured->kernel.values[i]);
	printf("], ");
}

static void print(const struct burst *burst, const struct spin *spin, struct measured *measured,
		  double seconds)
{
	struct samples *samples = &measured->all;

	printf("{");
	if (burst->timed)
		print_each(measured);
	samples_sort(samples);
	printf("\"program\": \"burst\", \"requests\": %zu, \"kernels\": %llu, \"blocks\": %u, "
	       "\"iterations\": %u, \"min\": %.1f, \"median\": %.1f, \"p90\": %.1f, \"p99\": %.1f, "
	       "\"max\": %.1f, \"mean\": %.1f",
	       samples->n, (unsigned long long)burst->kernels, spin->blocks, spin->iterations,
	       samples_quantile(samples, 0), samples_quantile(samples, 0.5),
	       samples_quantile(samples, 0.9), samples_quantile(samples, 0.99),
	       samples_quantile(samples, 1), samples_mean(samples));
	samples_sort(&measured->gpu);
	if (burst->timed)
		printf(", \"gpu_median\": %.1f", samples_quantile(&measured->gpu, 0.5));
	printf(", \"seconds\": %.3f}\n", seconds);
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	struct burst burst = {.gap_min_us = 5000, .gap_max_us = 10000};
	const struct workload_option own[] = {
		{"kernels", OPTION_NUMBER, &burst.kernels, "in a request"},
		{"requests", OPTION_NUMBER, &burst.requests, "at most"},
		{"warm-up", OPTION_NUMBER, &burst.warm_up, "requests that are not measured"},
		{"threads", OPTION_NUMBER, &burst.threads, "in a block"},
		{"gap-min-us", OPTION_NUMBER, &burst.gap_min_us, "least time between requests"},
		{"gap-max-us", OPTION_NUMBER, &burst.gap_max_us, "most time between requests"},
		{"length-us", OPTION_REAL, &burst.length_us, "of a kernel, not --iterations"},
		{"priority", OPTION_FLAG, &burst.priority, "in a stream of greatest priority"},
		{"copy-kib", OPTION_NUMBER, &burst.copy_kib, "copied to the GPU before a request"},
		{"hint-us", OPTION_NUMBER, &burst.hint_us, "of waiting, after a hint to Weir"},
		{"log", OPTION_TEXT, &burst.log, "a line for each request: time of its end, us"},
		{"graphs", OPTION_FLAG, &burst.graphs, "replay a graph of the kernels before them"},
		{"replays", OPTION_FLAG, &burst.replays,
		 "replay a graph of the kernels in place of them"},
		{"timed", OPTION_FLAG, &burst.timed, "print and log where the time went"},
		{"spans", OPTION_FLAG, &burst.spans,
		 "with --timed: log how long the GPU needed from its first launch on"},
		{"calibrate", OPTION_FLAG, &burst.calibrate, "print iterations for --length-us"},
		{0},
	};
	struct measured measured = {0};
	struct spin spin;

	workload_parse(&w, argc, argv, "bursts of kernels at random times, measured", own);
	if (burst.gap_max_us < burst.gap_min_us || burst.gap_max_us > 60000000)
		workload_fail("--gap-min-us and --gap-max-us: not a range up to a minute");
	if (burst.copy_kib > 1u << 20)
		workload_fail("--copy-kib: more than a gigabyte");
	if (burst.timed && (burst.graphs || burst.replays))
		workload_fail("--timed, --graphs, --replays: a replay tells no times");
	if (burst.spans && !burst.timed)
		workload_fail("--spans: only with --timed");
	if (burst.hint_us > 1000000)
		workload_fail("--hint-us: more than a second");
	if (!burst.requests)
		burst.requests = w.seconds > 0 || w.stop_file ? UINT64_MAX : 50;
	burst.kernels = workload_pick(&w, burst.kernels, 5, 20);
	workload_open(&w, spin_ptx);
	spin_init(
		&spin, &w,
		(uint32_t)workload_pick(&w, w.size, (uint64_t)w.sm_count, 8 * (uint64_t)w.sm_count),
		(uint32_t)workload_pick(&w, burst.threads, 32, 256),
		(uint32_t)workload_pick(&w, w.iterations, 32, 5000));
	if (burst.length_us > 0)
		spin.iterations = spin_calibrate(&spin, burst.length_us);
	if (burst.calibrate) {
		printf("%u\n", spin.iterations);
		return 0;
	}

	open_input(&burst);
	if (burst.timed)
		timed_init(&burst.timing, &spin, burst.kernels, burst.spans);
	workload_ready(&w);
	run(&burst, &w, &spin, &measured);
	print(&burst, &spin, &measured, (double)(now_ns() - w.started) / 1e9);
	fflush(stdout);
	spin_verify(&spin);
	if (burst.timed)
		timed_deinit(&burst.timing);
	close_input(&burst);
	spin_deinit(&spin);
	samples_deinit(&measured.all);
	samples_deinit(&measured.gpu);
	samples_deinit(&measured.kernel);
	workload_close(&w);
	return 0;
}
