/* Each row of benchmarks[] names a plan (plan.h): of the papers on preemptible kernels in the
 * program `kernels`, for tensor cores in `tensor`. This program runs the selected plans, checks
 * every result against the CPU's, and measures on request. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <weir/base.h>

#include "plan.h"

#define PAUSE_US 20000

struct choice {
	const char *only, *class, *folder, *turn;
	uint64_t repeat, times;
	double warm_up;
	bool list, time;
	enum input_class input; /* from @class */
};

static void parse(struct choice *choice, struct workload *w, int argc, char **argv)
{
	const struct workload_option own[] = {
		{"only", OPTION_TEXT, &choice->only,
		 "just the benchmarks with these names: A,B,.."},
		{"class", OPTION_TEXT, &choice->class,
		 "of the input: large, small (default), trivial"},
		{"list", OPTION_FLAG, &choice->list, "prints the names and ends"},
		{"repeat", OPTION_NUMBER, &choice->repeat,
		 "the launches of a round so often behind each other; the last results are "
		 "checked"},
		{"time", OPTION_FLAG, &choice->time, "measures; a line of JSON for each benchmark"},
		{"warm-up", OPTION_REAL, &choice->warm_up,
		 "seconds of rounds before those that are measured"},
		{"times", OPTION_NUMBER, &choice->times,
		 "with --time: measures so often, each time in a turn of its own"},
		{"turn", OPTION_TEXT, &choice->turn,
		 "with --time: only one of those that were given this file uses the GPU at a time"},
		{"write-ptx", OPTION_TEXT, &choice->folder,
		 "writes the device code into this folder and ends"},
		{0}};

	workload_parse(w, argc, argv, benchmark_summary, own);
	if (w->size > UINT32_MAX) {
		fprintf(stderr, "kernels: --size: too large\n");
		exit(2);
	}
	choice->input = class_find(choice->class);
	if (choice->input == CLASS_COUNT) {
		fprintf(stderr, "kernels: no class '%s'\n", choice->class);
		exit(2);
	}
}

/* Whether @name is one of @names, separated by commas. */
static bool listed(const char *names, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = names; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, name, length) == 0 && (at[length] == '\0' || at[length] == ','))
			return true;
	}
	return false;
}

static bool chosen(const struct choice *choice, const struct benchmark *benchmark)
{
	return !choice->only || listed(choice->only, benchmark->name);
}

/* A misspelled name must not pass as success. */
static void check_names(const struct choice *choice)
{
	for (const char *at = choice->only; at; at = strchr(at, ',')) {
		bool known = false;

		at += *at == ',';
		for (size_t i = 0; i < benchmark_count; i++)
			known |= strncmp(at, benchmarks[i].name, strcspn(at, ",")) == 0 &&
				 strlen(benchmarks[i].name) == strcspn(at, ",");
		if (!known) {
			fprintf(stderr, "kernels: no benchmark '%.*s'\n", (int)strcspn(at, ","),
				at);
			exit(2);
		}
	}
}

static void print_list(void)
{
	for (size_t i = 0; i < benchmark_count; i++)
		printf("%-20s %-28s sizes in %s\n", benchmarks[i].name, benchmarks[i].source,
		       benchmarks[i].unit);
}

static void write_ptx(const char *folder, const struct benchmark *benchmark)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s.ptx", folder, benchmark->name);
	file = fopen(path, "we");
	if (!file || fputs(benchmark->ptx, file) < 0 || fclose(file))
		workload_fail("%s: %s", path, strerror(errno));
}

/* Each text once, under the name of the first benchmark that has it. */
static void write_all_ptx(const char *folder)
{
	for (size_t i = 0; i < benchmark_count; i++) {
		size_t first = 0;

		while (benchmarks[first].ptx != benchmarks[i].ptx)
			first++;
		if (first == i)
			write_ptx(folder, &benchmarks[i]);
	}
}

static double median(struct samples *samples)
{
	samples_sort(samples);
	return samples_quantile(samples, 0.5);
}

static void print_times(struct plan *plan, const char *class, uint64_t rounds)
{
	printf("{\"workload\":\"%s\",\"class\":\"%s\",\"size\":%u,\"rounds\":%llu,"
	       "\"hash\":\"%016llx\",\"wall_us\":%.1f,\"kernels\":[",
	       plan->benchmark->name, class, plan->size, (unsigned long long)rounds,
	       (unsigned long long)plan->hash, median(&plan->wall));
	for (unsigned i = 0; i < plan->kernel_count; i++) {
		struct plan_kernel *kernel = &plan->kernels[i];

		printf("%s{\"name\":\"%s\",\"launches\":%u,\"median_us\":%.2f,\"round_us\":%.2f}",
		       i ? "," : "", kernel->name, kernel->launches, median(&kernel->single),
		       median(&kernel->rounds));
	}
	puts("]}");
}

/* A lock that keeps other holders of the file waiting until it is closed, or -1. */
static int take_turn(const char *file)
{
	int fd = file ? open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;

	if (file && (fd < 0 || flock(fd, LOCK_EX) < 0))
		workload_fail("%s: %s", file, strerror(errno));
	return fd;
}

/* The first round, in which the driver does lazy loading, and more rounds for @seconds. */
static void warm_up(struct plan *plan, double seconds)
{
	uint64_t begin;

	plan_round(plan, 1);
	begin = now_ns();
	while ((double)(now_ns() - begin) < seconds * 1e9)
		plan_measure(plan);
	plan_forget(plan);
}

/* Measures rounds and perhaps checks the last. Returns their number. */
static uint64_t measure(struct workload *w, const struct choice *choice, struct plan *plan,
			uint64_t rounds, bool check)
{
	cleanup(closep) int turn __attribute__((unused)) = take_turn(choice->turn);
	uint64_t done = 0;

	warm_up(plan, choice->warm_up);
	for (workload_ready(w); done < rounds && (!done || !workload_stopped(w)); done++)
		plan_measure(plan);
	if (check)
		plan_check(plan);
	return done;
}

/* Others may take the lock between two measurements. */
static void measure_often(struct workload *w, const struct choice *choice, struct plan *plan,
			  uint64_t rounds)
{
	for (uint64_t left = choice->times; left--;) {
		uint64_t done = measure(w, choice, plan, rounds, !left);

		print_times(plan, class_names[choice->input], done);
		if (left)
			usleep(PAUSE_US);
	}
}

static uint64_t repeat(struct workload *w, const struct choice *choice, struct plan *plan,
		       uint64_t rounds)
{
	uint64_t done = 0;

	for (workload_ready(w); done < rounds && (!done || !workload_stopped(w)); done++)
		plan_round(plan, choice->repeat);
	return done;
}

/* Rounds of one benchmark: --iterations, else as many as --seconds allow, else one, or a few with
 * --time. */
static void run(struct workload *w, const struct choice *choice, const struct benchmark *benchmark)
{
	uint64_t few = !choice->time ? 1 : w->gpu ? 20 : 3;
	uint64_t rounds = w->iterations ? w->iterations : w->seconds > 0 ? UINT64_MAX : few;
	struct plan plan;

	plan_init(&plan, benchmark, w,
		  w->size ? (uint32_t)w->size : benchmark->sizes[w->gpu][choice->input]);
	if (choice->time) {
		measure_often(w, choice, &plan, rounds);
	} else {
		rounds = repeat(w, choice, &plan, rounds);
		printf("%s: ok, %llu rounds of %u %s, %016llx\n", benchmark->name,
		       (unsigned long long)rounds, plan.size, benchmark->unit,
		       (unsigned long long)plan.hash);
	}
	plan_deinit(&plan);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	struct choice choice = {.class = "small", .repeat = 1, .times = 1};

	parse(&choice, &w, argc, argv);
	check_names(&choice);
	if (choice.list) {
		print_list();
		return 0;
	}
	if (choice.folder) {
		write_all_ptx(choice.folder);
		return 0;
	}
	/* Keeps freed memory for the next benchmark: new pages take longer than their use. */
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, -1);
	workload_open(&w, NULL);
	for (size_t i = 0; i < benchmark_count; i++)
		if (chosen(&choice, &benchmarks[i]))
			run(&w, &choice, &benchmarks[i]);
	workload_close(&w);
	return 0;
}
