/* Compute kernels of the papers (LavaMD, TPACF, hybrid sort, suffix matching), each in one of three
 * ways: as they are (--way native), split into launches of --chunk parts (--way split), or in an
 * event loop (--way loop). Every way is checked against the CPU's result. Prints a line of JSON.
 *
 * A round is one pass; with --repeat N, which hybrid-sort does not have, N passes: launches behind
 * each other, or one loop over the parts of all.
 *
 * cpu_us is what inputs and the CPU's result took, on all processors; setup_us what it takes to
 * make the loops of a round and to free them, which is no part of `us`.
 *
 * With --wait it begins when it reads a line: several programs can then begin together. With
 * --leaves it prints how soon its loops left whenever higher-level clients got work. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "../plan.h"
#include "host.h"
#include "leaves.h"
#include "parts.h"

extern const char parts_boxes_ptx[], parts_angles_ptx[], parts_keys_ptx[], parts_suffixes_ptx[];
extern const char parts_boxes_leaving_ptx[], parts_angles_leaving_ptx[], parts_keys_leaving_ptx[],
	parts_suffixes_leaving_ptx[];

#define LAUNCHES_MAX 16
#define REPEAT_MAX   1000

/* A kernel of the papers that has ports. */
static const struct port {
	const char *kernel;
	unsigned segments;   /* parts of a block of the original */
	unsigned pieces;     /* of a part, in the loop */
	unsigned chunk;      /* pieces that a block of the loop draws at a time */
	unsigned sm_threads; /* of the loop on each SM; 0: as many as fit */
} ports[] = {
	{"box_forces", 1, BOX_PIECES, BOX_PIECES, BOX_SM_THREADS},
	{"angle_pairs", 1, ANGLE_PIECES, 1, ANGLE_SM_THREADS},
	{"bucket_count", 1, 1, KEYS_CHUNK, 0},
	{"bucket_scatter", 1, 1, KEYS_CHUNK, 0},
	{"bucket_merge", 1, 1, 1, 0},
	{"suffix_match", SUFFIX_CHUNK, 1, SUFFIX_CHUNK, SUFFIX_SM_THREADS},
};

struct program {
	struct workload w;
	const char *way, *only, *class;
	uint64_t chunk; /* parts of a split launch; 0: as many blocks as fit on the GPU */
	uint64_t repeat;
	uint64_t spin;   /* us, of loops */
	uint64_t blocks; /* of a loop on each SM, at most; 0: as many as fit */
	bool waits, leaving;
	struct leaves leaves; /* of the loops */
	CUmodule module;
	CUdeviceptr tickets; /* of the loops */
	CUdeviceptr carried; /* of the loop that runs; 0 at first */
	size_t carried_bytes;
	struct weir_loop *loops[LAUNCHES_MAX]; /* of the round, by launch */
	struct plan plan;
	struct samples us, setup_us;
};

static const struct port *port_of(const struct plan_launch *launch)
{
	for (size_t i = 0; i < countof(ports); i++)
		if (strcmp(ports[i].kernel, launch->kernel->name) == 0)
			return &ports[i];
	return NULL;
}

static struct parts parts_of(const struct program *program, const struct plan_launch *launch)
{
	const unsigned *grid = launch->shape.grid;
	uint32_t segments = port_of(launch)->segments;

	return (struct parts){.total = grid[0] * grid[1] * grid[2] * segments,
			      .segments = segments,
			      .pieces = port_of(launch)->pieces,
			      .repeat = (uint32_t)program->repeat,
			      .grid = {grid[0], grid[1], grid[2]},
			      .ticket = (uint32_t *)program->tickets +
					(launch - program->plan.launches),
			      .carried = (void *)program->carried};
}

static CUfunction port_kernel(const struct program *program, const struct plan_launch *launch,
			      const char *suffix)
{
	CUfunction kernel;
	char name[64];

	snprintf(name, sizeof(name), "%s_%s", launch->kernel->name, suffix);
	CU(cuModuleGetFunction(&kernel, program->module, name));
	return kernel;
}

/* Blocks of @kernel that the GPU runs at a time, in the shape of @launch; at most @wanted threads
 * on each SM, if that is not 0. */
static unsigned resident(const struct program *program, CUfunction kernel,
			 const struct plan_launch *launch, unsigned wanted)
{
	unsigned threads = launch->shape.block[0];
	int blocks;

	CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, (int)threads,
						       launch->shape.shared));
	if (wanted && (unsigned)blocks * threads > wanted)
		blocks = (int)(wanted / threads);
	return (unsigned)(blocks * program->w.sm_count);
}

static void launch_split(const struct program *program, const struct plan_launch *launch,
			 void **parameters)
{
	CUfunction kernel = port_kernel(program, launch, "split");
	struct parts parts = parts_of(program, launch);
	unsigned chunk = program->chunk ? (unsigned)program->chunk
					: resident(program, launch->kernel->function, launch, 0);
	void *all[PLAN_ARGUMENTS_MAX + 1];

	memcpy(all, parameters, launch->argument_count * sizeof(*all));
	all[launch->argument_count] = &parts;
	for (; parts.first < parts.total; parts.first += chunk)
		CU(cuLaunchKernel(kernel, (unsigned)smaller(chunk, parts.total - parts.first), 1, 1,
				  launch->shape.block[0], 1, 1, launch->shape.shared,
				  program->plan.stream, all, NULL));
}

static void launch_loop(struct program *program, const struct plan_launch *launch,
			void **parameters)
{
	struct weir_loop *loop = program->loops[launch - program->plan.launches];
	struct parts parts = parts_of(program, launch);
	void *all[PLAN_ARGUMENTS_MAX + 2] = {NULL};

	memcpy(all + 1, parameters, launch->argument_count * sizeof(*all));
	all[1 + launch->argument_count] = &parts;
	CU(cuStreamSynchronize(program->plan.stream));
	leaves_begin(&program->leaves, loop);
	(void)host_loop_run(loop, all);
	leaves_end(&program->leaves);
}

static void launch_native(const struct plan *plan, const struct plan_launch *launch,
			  void **parameters)
{
	const struct shape *shape = &launch->shape;

	CU(cuLaunchKernel(launch->kernel->function, shape->grid[0], shape->grid[1], shape->grid[2],
			  shape->block[0], shape->block[1], shape->block[2], shape->shared,
			  plan->stream, parameters, NULL));
}

static void launch(void *data, struct plan *plan, const struct plan_launch *launched,
		   void **parameters)
{
	struct program *program = data;

	if (!port_of(launched) || strcmp(program->way, "native") == 0)
		launch_native(plan, launched, parameters);
	else if (strcmp(program->way, "split") == 0)
		launch_split(program, launched, parameters);
	else
		launch_loop(program, launched, parameters);
}

/* Loops run once, so each round has its own. A block beyond those that draw something would only
 * cost time at the start. */
static void make_loops(struct program *program)
{
	CU(cuMemsetD32(program->tickets, 0, LAUNCHES_MAX));
	CU(cuMemsetD8(program->carried, 0, program->carried_bytes));
	CU(cuCtxSynchronize());
	for (size_t i = 0; i < program->plan.launch_count && i < LAUNCHES_MAX; i++) {
		const struct plan_launch *launched = &program->plan.launches[i];
		const struct port *port = port_of(launched);

		if (!port)
			continue;
		struct weir_loop_options options = {.threads = launched->shape.block[0],
						    .shared = launched->shape.shared,
						    .callbacks =
							    2, /* that of a part, and the next */
						    .staging = 1,
						    .spin_us = (uint32_t)program->spin,
						    .name = program->only};
		CUfunction kernel = port_kernel(program, launched, "loop");
		struct parts parts = parts_of(program, launched);
		uint64_t draws =
			((uint64_t)parts.total * parts.repeat * port->pieces + port->chunk - 1) /
			port->chunk;
		uint64_t most = resident(program, kernel, launched, port->sm_threads);

		if (program->blocks)
			most = smaller(most, program->blocks * (uint64_t)program->w.sm_count);
		options.blocks = (uint32_t)smaller(most, draws);
		program->loops[i] = host_loop(kernel, &options);
	}
}

static void free_loops(struct program *program)
{
	for (size_t i = 0; i < LAUNCHES_MAX; i++) {
		if (program->loops[i])
			host_loop_end(program->loops[i]);
		program->loops[i] = NULL;
	}
}

static void run_round(struct program *program)
{
	struct plan *plan = &program->plan;
	bool is_loop = strcmp(program->way, "loop") == 0;
	uint64_t began = now_ns();
	double setup;

	if (is_loop)
		make_loops(program);
	setup = host_seconds(began);
	plan_prepare(plan);
	began = now_ns();
	for (uint64_t i = 0; i < (is_loop ? 1 : program->repeat); i++)
		plan_queue(plan);
	CU(cuStreamSynchronize(plan->stream));
	samples_add(&program->us, (double)(now_ns() - began) / 1e3);
	began = now_ns();
	free_loops(program);
	samples_add(&program->setup_us, (setup + host_seconds(began)) * 1e6);
}

/* Programs of the papers that have ports. */
static const struct known {
	const char *name, *ptx, *leaving_ptx;
	bool repeats; /* a pass finds its inputs as they were, behind others */
} known[] = {{"lava-md", parts_boxes_ptx, parts_boxes_leaving_ptx, true},
	     {"angular-correlation", parts_angles_ptx, parts_angles_leaving_ptx, true},
	     {"hybrid-sort", parts_keys_ptx, parts_keys_leaving_ptx, false},
	     {"suffix-match", parts_suffixes_ptx, parts_suffixes_leaving_ptx, true}};

static const struct known *known_of(const char *name)
{
	for (size_t i = 0; name && i < countof(known); i++)
		if (strcmp(name, known[i].name) == 0)
			return &known[i];
	return NULL;
}

static const struct benchmark *find(const char *name)
{
	for (size_t k = 0; known_of(name) && k < benchmark_count; k++)
		if (strcmp(benchmarks[k].name, name) == 0)
			return &benchmarks[k];
	return NULL;
}

/* As much as all threads of a full GPU carry. */
static void make_carried(struct program *program)
{
	int threads;

	CU(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
				program->w.device));
	program->carried_bytes = (size_t)program->w.sm_count * (size_t)threads * CARRIED_MOST;
	program->carried = host_zeros(program->carried_bytes);
}

/* Rounds in which loops leave again and again. Returns us. */
static double leaves_within(struct program *program)
{
	double us;

	if (!program->leaving)
		return 0;
	CU(cuModuleLoadData(&program->module, known_of(program->only)->leaving_ptx));
	for (uint64_t i = 0; i < program->w.iterations || i == 0; i++)
		run_round(program);
	us = host_leaving_us(program->module);
	plan_check(&program->plan);
	CU(cuModuleUnload(program->module));
	return us;
}

static bool is_way(const char *name)
{
	return strcmp(name, "native") == 0 || strcmp(name, "split") == 0 ||
	       strcmp(name, "loop") == 0;
}

static const struct benchmark *parse(struct program *program, int argc, char **argv)
{
	const struct workload_option own[] = {
		{"only", OPTION_TEXT, &program->only,
		 "lava-md, angular-correlation, hybrid-sort or suffix-match"},
		{"way", OPTION_TEXT, &program->way, "native, split or loop"},
		{"class", OPTION_TEXT, &program->class, "of the input: large, small, trivial"},
		{"chunk", OPTION_NUMBER, &program->chunk, "parts of a split launch"},
		{"repeat", OPTION_NUMBER, &program->repeat, "passes of a round"},
		{"blocks", OPTION_NUMBER, &program->blocks, "of a loop on each SM, at most"},
		{"spin", OPTION_NUMBER, &program->spin, HOST_SPIN_HELP},
		{"leaves", OPTION_FLAG, &program->leaves.wanted, "says how soon loops leave"},
		{"wait", OPTION_FLAG, &program->waits, "begins when it reads a line"},
		{"leaving", OPTION_FLAG, &program->leaving, HOST_LEAVING_HELP},
		{0}};
	const struct benchmark *benchmark;

	workload_parse(&program->w, argc, argv, "runs a kernel in one of three ways", own);
	benchmark = find(program->only);
	if (!benchmark || class_find(program->class) == CLASS_COUNT || !is_way(program->way) ||
	    program->spin > HOST_SPIN_US ||
	    (program->leaving && strcmp(program->way, "loop") != 0)) {
		fprintf(stderr,
			"loop-ports: --only, --way, --class, --spin or --leaving: see --help\n");
		exit(2);
	}
	if (program->repeat < 1 || program->repeat > REPEAT_MAX ||
	    (program->repeat > 1 && !known_of(benchmark->name)->repeats)) {
		fprintf(stderr, "loop-ports: --repeat: 1 to %d, and not of this kernel\n",
			REPEAT_MAX);
		exit(2);
	}
	return benchmark;
}

int main(int argc, char **argv)
{
	static struct program program = {.w = {.seed = 1},
					 .way = "loop",
					 .only = "lava-md",
					 .class = "small",
					 .repeat = 1,
					 .spin = HOST_SPIN_US};
	struct workload *w = &program.w;
	const struct benchmark *benchmark = parse(&program, argc, argv);
	uint64_t rounds = w->iterations ? w->iterations : w->seconds > 0 ? UINT64_MAX : 3, began;
	char line[8];

	workload_open(w, NULL);
	program.tickets = host_zeros(LAUNCHES_MAX * sizeof(uint32_t));
	make_carried(&program);
	began = now_ns();
	plan_init(&program.plan, benchmark, w,
		  w->size ? (uint32_t)w->size
			  : benchmark->sizes[w->gpu][class_find(program.class)]);
	plan_expect(&program.plan, program.repeat);
	double cpu_seconds = host_seconds(began);

	program.plan.launcher = launch;
	program.plan.launcher_data = &program;
	double leaving_us = leaves_within(&program);

	CU(cuModuleLoadData(&program.module, known_of(program.only)->ptx));
	run_round(&program); /* lazy loading */
	program.us.n = program.setup_us.n = 0;
	workload_ready(w);
	if (program.waits && !fgets(line, sizeof(line), stdin))
		return 0;
	began = now_ns();
	for (uint64_t i = 0; i < rounds && (!i || !workload_stopped(w)); i++)
		run_round(&program);
	double seconds = host_seconds(began);

	plan_check(&program.plan);
	samples_sort(&program.us);
	samples_sort(&program.setup_us);
	printf("{\"workload\":\"%s\",\"way\":\"%s\",\"size\":%u,\"rounds\":%zu,\"seconds\":%.6f,"
	       "\"us\":%.1f,\"setup_us\":%.1f,\"cpu_us\":%.1f,\"leaving_us\":%.1f,"
	       "\"hash\":\"%016" PRIx64 "\",",
	       benchmark->name, program.way, program.plan.size, program.us.n, seconds,
	       samples_quantile(&program.us, 0.5), samples_quantile(&program.setup_us, 0.5),
	       cpu_seconds * 1e6, leaving_us, program.plan.hash);
	leaves_print(&program.leaves);
	puts("}");
	plan_deinit(&program.plan);
	CU(cuModuleUnload(program.module));
	workload_close(w);
	return 0;
}
