/* A client that runs a benchmark on command, for experiments on scheduling. It prepares the
 * benchmark once, and then reads commands from standard input, a line each. Times are
 * CLOCK_MONOTONIC in ns, so that all workers of an experiment agree on them.
 *
 *   rounds BEGIN EVERY N PRIORITY      a round at each BEGIN + k * EVERY
 *   endless BEGIN END DEPTH PRIORITY   DEPTH rounds always queued, from BEGIN to END
 *   several BEGIN N DEPTH PRIORITY     the same, N rounds
 *   again BEGIN END WAIT PRIORITY      a round, and WAIT after its end the next, from BEGIN to END
 *   check BEGIN END 1 PRIORITY         the same at once, of one pass; each round's results are
 * compared with the CPU's passes N                           the number of passes of --kernel from
 * now on context                            what a block of --kernel takes of an SM
 *
 * PRIORITY is 0, or 1 for a stream of the greatest priority. The answer is a line of JSON: `rounds`
 * with [launch, end] of each round, `ends` of all other rounds, both in ns after BEGIN,
 * `passes`, or `context` with the bytes of registers and shared memory. A round is `missed` if the
 * one before ended after its time. At the end of the input the worker checks the results of a last
 * round.
 *
 * With --kernel NAME a round is one launch, the first one of that kernel in the benchmark, with N
 * passes over its data: the grid is N deep, which none of these kernels looks at. So a kernel lasts
 * as long as in the papers, whose GPUs had a seventeenth of the memory's speed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "plan.h"

#define DEPTH_MAX   64u
#define ROUNDS_MAX  10000000u
#define PASSES_MAX  60000u /* a grid is at most 65535 deep */
#define WAIT_MAX_NS 10000000000u
#define LEAD_NS     3000000u /* before a round, to renew what it changes */
#define REGISTERS   8u       /* of a thread, given out together */

struct choice {
	const char *only, *class, *kernel;
	double warm_up;
};

struct worker {
	struct plan plan;
	struct plan_launch *single; /* NULL: a round is the whole benchmark */
	CUstream streams[2];        /* by priority */
	CUevent events[DEPTH_MAX];
};

static void open_worker(struct worker *worker, const struct workload *w,
			const struct choice *choice, const struct benchmark *benchmark)
{
	enum input_class class = class_find(choice->class);
	int least, greatest;

	plan_init(&worker->plan, benchmark, w,
		  w->size ? (uint32_t)w->size : benchmark->sizes[w->gpu][class]);
	plan_prepare(&worker->plan);
	if (choice->kernel) {
		worker->single = plan_find_launch(&worker->plan, choice->kernel);
		if (!worker->single || worker->single->shape.grid[2] != 1)
			workload_fail("--kernel: no kernel of a flat grid: '%s'", choice->kernel);
	}
	CU(cuCtxGetStreamPriorityRange(&least, &greatest));
	worker->streams[0] = worker->plan.stream;
	CU(cuStreamCreateWithPriority(&worker->streams[1], CU_STREAM_NON_BLOCKING, greatest));
	for (unsigned i = 0; i < DEPTH_MAX; i++)
		CU(cuEventCreate(&worker->events[i], CU_EVENT_DISABLE_TIMING));
}

/* Restores data that the round before has changed. */
static void renew(struct worker *worker)
{
	if (!worker->single)
		plan_renew(&worker->plan);
}

static void queue(struct worker *worker)
{
	if (worker->single)
		plan_queue_launch(&worker->plan, worker->single);
	else
		plan_queue(&worker->plan);
}

/* All of the benchmark, from its first data on: results are those of all its kernels. */
static void queue_checked(struct worker *worker)
{
	if (worker->single)
		worker->single->shape.grid[2] = 1;
	plan_prepare(&worker->plan);
	plan_queue(&worker->plan);
}

static void close_worker(struct worker *worker)
{
	if (worker->single)
		queue_checked(worker);
	CU(cuStreamSynchronize(worker->plan.stream));
	plan_check(&worker->plan);
	for (unsigned i = 0; i < DEPTH_MAX; i++)
		CU(cuEventDestroy(worker->events[i]));
	CU(cuStreamDestroy(worker->streams[1]));
	worker->plan.stream = worker->streams[0];
	plan_deinit(&worker->plan);
}

/* Spins at the end, because a sleeper wakes up late. */
static void wait_until_ns(uint64_t when)
{
	sleep_until_ns(when - 500000);
	while (now_ns() < when)
		;
}

static void run_timed(struct worker *worker, uint64_t begin, uint64_t every, uint64_t n)
{
	struct plan *plan = &worker->plan;
	uint64_t missed = 0;

	printf("{\"rounds\":[");
	for (uint64_t i = 0, printed = 0; i < n; i++) {
		uint64_t when = begin + i * every;

		if (now_ns() > when) {
			missed++;
			continue;
		}
		if (every > 2 * LEAD_NS)
			sleep_until_ns(when - LEAD_NS);
		renew(worker);
		CU(cuStreamSynchronize(plan->stream));
		wait_until_ns(when);
		uint64_t launched = now_ns();
		queue(worker);
		CU(cuStreamSynchronize(plan->stream));
		printf("%s[%" PRIu64 ",%" PRIu64 "]", printed++ ? "," : "", launched - begin,
		       now_ns() - begin);
	}
	printf("],\"missed\":%" PRIu64 "}\n", missed);
}

static void print_ends(const uint64_t *ends, uint64_t n)
{
	printf("{\"ends\":[");
	for (uint64_t i = 0; i < n; i++)
		printf("%s%" PRIu64, i ? "," : "", ends[i]);
	printf("]}\n");
}

static uint64_t ends[ROUNDS_MAX];

static void run_again(struct worker *worker, uint64_t begin, uint64_t end, uint64_t wait)
{
	uint64_t done = 0;

	wait_until_ns(begin);
	while (now_ns() < end && done < ROUNDS_MAX) {
		renew(worker);
		queue(worker);
		CU(cuStreamSynchronize(worker->plan.stream));
		ends[done++] = now_ns() - begin;
		sleep_until_ns(now_ns() + wait);
	}
	print_ends(ends, done);
}

static void run_checked(struct worker *worker, uint64_t begin, uint64_t end, uint64_t unused)
{
	unsigned passes = worker->single ? worker->single->shape.grid[2] : 1;
	uint64_t done = 0;

	(void)unused;
	wait_until_ns(begin);
	while (now_ns() < end && done < ROUNDS_MAX) {
		queue_checked(worker);
		CU(cuStreamSynchronize(worker->plan.stream));
		plan_check(&worker->plan);
		ends[done++] = now_ns() - begin;
	}
	if (worker->single)
		worker->single->shape.grid[2] = passes;
	print_ends(ends, done);
}

/* Up to @most rounds, the last of them queued before @end. */
static void run_queued(struct worker *worker, uint64_t begin, uint64_t end, uint64_t depth,
		       uint64_t most)
{
	struct plan *plan = &worker->plan;
	uint64_t queued = 0, done = 0;

	wait_until_ns(begin);
	while (done < queued || (queued < most && now_ns() < end)) {
		if (queued < done + depth && queued < most && now_ns() < end) {
			renew(worker);
			queue(worker);
			CU(cuEventRecord(worker->events[queued++ % depth], plan->stream));
			continue;
		}
		if (done == queued)
			break;
		CU(cuEventSynchronize(worker->events[done % depth]));
		ends[done++] = now_ns() - begin;
	}
	print_ends(ends, done);
}

static void run_endless(struct worker *worker, uint64_t begin, uint64_t end, uint64_t depth)
{
	run_queued(worker, begin, end, depth, ROUNDS_MAX);
}

static void run_several(struct worker *worker, uint64_t begin, uint64_t n, uint64_t depth)
{
	run_queued(worker, begin, UINT64_MAX, depth, n < ROUNDS_MAX ? n : ROUNDS_MAX);
}

static void set_passes(struct worker *worker, unsigned passes)
{
	if (!worker->single || passes < 1 || passes > PASSES_MAX)
		workload_fail("passes: out of range, or no --kernel");
	worker->single->shape.grid[2] = passes;
	printf("{\"passes\":%u}\n", passes);
}

static void print_context(const struct worker *worker)
{
	if (!worker->single)
		workload_fail("context: no --kernel");
	const struct shape *shape = &worker->single->shape;
	CUfunction function = worker->single->kernel->function;
	unsigned threads = shape->block[0] * shape->block[1] * shape->block[2];
	int registers, shared;

	CU(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
	CU(cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
	unsigned given = ((unsigned)registers + REGISTERS - 1) / REGISTERS * REGISTERS;
	printf("{\"context\":%zu}\n",
	       (size_t)threads * given * sizeof(uint32_t) + (unsigned)shared + shape->shared);
}

typedef void run_fn(struct worker *worker, uint64_t begin, uint64_t second, uint64_t third);

static const struct verb {
	const char *name;
	run_fn *run;
	uint64_t third_max;
} verbs[] = {
	{"rounds", run_timed, ROUNDS_MAX},   {"endless", run_endless, DEPTH_MAX},
	{"several", run_several, DEPTH_MAX}, {"again", run_again, WAIT_MAX_NS},
	{"check", run_checked, 1},
};

static void run(struct worker *worker, const char *line)
{
	uint64_t begin, second, third;
	unsigned priority;
	char name[16];

	if (sscanf(line, "%15s %" SCNu64 " %" SCNu64 " %" SCNu64 " %u", name, &begin, &second,
		   &third, &priority) != 5)
		workload_fail("no such command: %s", line);
	for (size_t i = 0; i < countof(verbs); i++) {
		if (strcmp(name, verbs[i].name) != 0)
			continue;
		if (priority > 1 || third < 1 || third > verbs[i].third_max)
			workload_fail("out of range: %s", line);
		worker->plan.stream = worker->streams[priority];
		verbs[i].run(worker, begin, second, third);
		return;
	}
	workload_fail("no such command: %s", line);
}

static void execute(struct worker *worker, const char *line)
{
	unsigned passes;

	if (sscanf(line, "passes %u", &passes) == 1)
		set_passes(worker, passes);
	else if (strcmp(line, "context\n") == 0)
		print_context(worker);
	else
		run(worker, line);
	fflush(stdout);
}

/* Rounds in which the driver loads lazily, and libweir measures, compiles and chooses. */
static void warm_up(struct worker *worker, double seconds)
{
	uint64_t begin = now_ns();

	do {
		plan_renew(&worker->plan);
		plan_queue(&worker->plan);
		CU(cuStreamSynchronize(worker->plan.stream));
	} while ((double)(now_ns() - begin) < seconds * 1e9);
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	struct choice choice = {.class = "small"};
	const struct workload_option own[] = {
		{"only", OPTION_TEXT, &choice.only, "the benchmark with this name"},
		{"class", OPTION_TEXT, &choice.class, "of the input: large, small, trivial"},
		{"kernel", OPTION_TEXT, &choice.kernel, "rounds are a launch of this one kernel"},
		{"warm-up", OPTION_REAL, &choice.warm_up, "seconds of rounds before it is ready"},
		{0}};
	const struct benchmark *benchmark = NULL;
	struct worker worker = {0};
	char line[256];

	workload_parse(&w, argc, argv, "runs a benchmark on command", own);
	for (size_t i = 0; i < benchmark_count; i++)
		if (choice.only && strcmp(benchmarks[i].name, choice.only) == 0)
			benchmark = &benchmarks[i];
	if (!benchmark || benchmark->meanwhile)
		workload_fail("--only: no benchmark that ends by itself: '%s'",
			      choice.only ? choice.only : "");
	if (class_find(choice.class) == CLASS_COUNT)
		workload_fail("no class '%s'", choice.class);
	workload_open(&w, NULL);
	open_worker(&worker, &w, &choice, benchmark);
	warm_up(&worker, choice.warm_up);
	workload_ready(&w);
	while (fgets(line, sizeof(line), stdin))
		execute(&worker, line);
	close_worker(&worker);
	workload_close(&w);
	return 0;
}
