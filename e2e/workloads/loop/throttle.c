/* Throttle: nothing but scheduling points, each a callback (--way post), a look whether one is
 * needed
 * (--way look), or a launch (--way split). Counts them. With --seconds it goes on until then. With
 * --samples N it prints how many points block 0 had passed, N times a second. With --leaves it
 * prints how soon it left whenever higher-level clients got work. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "host.h"
#include "leaves.h"

extern const char throttle_ptx[];

#define SAMPLES_MAX 100000
#define SPLIT_DEPTH 64 /* launches between two looks at the time */

struct throttle {
	struct workload w;
	const char *way;
	uint64_t blocks, threads, rate;
	struct leaves leaves;
	struct { /* the kernels' parameter */
		uint64_t points;
		CUdeviceptr done, shown;
	} job;
	volatile uint64_t *shown;
	struct weir_loop *loop; /* NULL: the split way */
	bool is_over, is_cut;   /* cut: by --seconds or --stop-file */
	uint64_t times[SAMPLES_MAX], counts[SAMPLES_MAX];
	size_t samples;
};

/* Takes samples, and stops the loop when it is time. */
static void *watch(void *context)
{
	struct throttle *throttle = context;
	uint64_t every = NS_PER_S / (throttle->rate ? throttle->rate : 100), next = now_ns();

	while (!__atomic_load_n(&throttle->is_over, __ATOMIC_ACQUIRE)) {
		if (throttle->rate && throttle->samples < SAMPLES_MAX) {
			throttle->times[throttle->samples] = now_ns();
			throttle->counts[throttle->samples++] = *throttle->shown;
		}
		if (throttle->loop && workload_stopped(&throttle->w)) {
			weir_loop_stop(throttle->loop);
			return NULL;
		}
		sleep_until_ns(next += every);
	}
	return NULL;
}

static void run_loop(struct throttle *throttle, const char *kernel)
{
	const struct weir_loop_options options = {.blocks = (uint32_t)throttle->blocks,
						  .threads = (uint32_t)throttle->threads,
						  .name = "throttle"};
	void *parameters[] = {NULL, &throttle->job};
	int code, error;

	throttle->loop = host_loop(workload_kernel(&throttle->w, kernel), &options);
	leaves_begin(&throttle->leaves, throttle->loop);
	error = weir_loop_run(throttle->loop, parameters, &code);
	leaves_end(&throttle->leaves);
	throttle->is_cut = error == -ECANCELED;
	if (error && !throttle->is_cut)
		workload_fail("throttle: %s", weir_loop_error(throttle->loop));
}

static void run_split(struct throttle *throttle)
{
	CUfunction kernel = workload_kernel(&throttle->w, "throttle_split");
	void *parameters[] = {&throttle->job};

	for (uint64_t i = 0; i < throttle->job.points; i++) {
		if (throttle->w.seconds > 0 && i % SPLIT_DEPTH == 0) {
			CU(cuCtxSynchronize());
			throttle->is_cut = workload_stopped(&throttle->w);
			if (throttle->is_cut)
				return;
		}
		CU(cuLaunchKernel(kernel, (unsigned)throttle->blocks, 1, 1,
				  (unsigned)throttle->threads, 1, 1, 0, NULL, parameters, NULL));
	}
	CU(cuCtxSynchronize());
}

/* Points that each block has passed; fails unless they are all that were to be passed. */
static uint64_t passed(const struct throttle *throttle)
{
	cleanup(freep) uint64_t *done = workload_alloc(throttle->blocks * sizeof(*done));

	CU(cuMemcpyDtoH(done, throttle->job.done, throttle->blocks * sizeof(*done)));
	for (uint64_t i = 0; !throttle->is_cut && i < throttle->blocks; i++)
		if (done[i] != throttle->job.points)
			workload_fail("throttle: block %" PRIu64 " passed %" PRIu64
				      " points, not %" PRIu64,
				      i, done[i], throttle->job.points);
	return done[0];
}

static void print(const struct throttle *throttle, uint64_t points, double seconds)
{
	printf("{\"way\":\"%s\",\"points\":%" PRIu64 ",\"seconds\":%.6f,\"us_per_point\":%.4f,"
	       "\"samples\":[",
	       throttle->way, points, seconds, points ? seconds * 1e6 / (double)points : 0);
	for (size_t i = 0; i < throttle->samples; i++)
		printf("%s[%" PRIu64 ",%" PRIu64 "]", i ? "," : "", throttle->times[i],
		       throttle->counts[i]);
	printf("],");
	leaves_print(&throttle->leaves);
	puts("}");
}

static void parse(struct throttle *throttle, int argc, char **argv)
{
	const struct workload_option own[] = {
		{"way", OPTION_TEXT, &throttle->way, "post (default), look or split"},
		{"blocks", OPTION_NUMBER, &throttle->blocks, "default 1"},
		{"threads", OPTION_NUMBER, &throttle->threads, "of a block; default 1"},
		{"samples", OPTION_NUMBER, &throttle->rate, "a second; at most 1000"},
		{"leaves", OPTION_FLAG, &throttle->leaves.wanted, "says how soon it leaves"},
		{0}};
	struct workload *w = &throttle->w;

	workload_parse(w, argc, argv, "passes scheduling points; --iterations: how many", own);
	if (throttle->blocks < 1 || throttle->blocks > 65535 || throttle->threads < 1 ||
	    throttle->threads > 1024 || throttle->rate > 1000) {
		fprintf(stderr, "--blocks, --threads or --samples: out of range\n");
		exit(2);
	}
	throttle->job.points =
		w->seconds > 0 ? UINT64_MAX : workload_pick(w, w->iterations, 2000, 1000000);
}

int main(int argc, char **argv)
{
	static struct throttle throttle = {.way = "post", .blocks = 1, .threads = 1};
	pthread_t watcher;
	uint64_t began;
	double seconds;

	parse(&throttle, argc, argv);
	workload_open(&throttle.w, throttle_ptx);
	throttle.job.done = host_zeros(throttle.blocks * sizeof(uint64_t));
	throttle.shown = host_mapped(sizeof(uint64_t), &throttle.job.shown);
	workload_ready(&throttle.w);
	if (pthread_create(&watcher, NULL, watch, &throttle))
		workload_fail("no thread");
	began = now_ns();
	if (strcmp(throttle.way, "split") == 0)
		run_split(&throttle);
	else if (strcmp(throttle.way, "look") == 0)
		run_loop(&throttle, "throttle_look");
	else
		run_loop(&throttle, "throttle_post");
	seconds = host_seconds(began);
	__atomic_store_n(&throttle.is_over, true, __ATOMIC_RELEASE);
	pthread_join(watcher, NULL);
	print(&throttle, passed(&throttle), seconds);
	weir_loop_free(throttle.loop);
	return 0;
}
