/* How well times of kernels are predicted: the papers' kernels at several sizes, every second one
 * of which libweir's regression learns from; it then predicts the others. Run it without libweir,
 * which has the same regression. Prints a line of JSON for each kernel, and one for all.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <measure/predict-ridge.h>
#include <weir/base.h>

#include "plan.h"

#define SIZES  13 /* odd: the largest and the smallest one are learned from */
#define ROUNDS 3  /* that are measured; the fastest counts, as for libweir */

struct observation {
	const char *kernel;
	unsigned index; /* of the size */
	double x[RIDGE_FEATURES], ns;
};

struct observations {
	struct observation *all;
	size_t n, capacity;
};

struct choice {
	const char *only, *class;
	bool points;
};

static struct observation *add(struct observations *to)
{
	if (!to->all || to->n == to->capacity) {
		to->capacity = to->capacity ? 2 * to->capacity : 256;
		to->all = realloc(to->all, to->capacity * sizeof(*to->all));
		if (!to->all)
			workload_fail("out of memory");
	}
	return &to->all[to->n++];
}

/* Arguments as libweir finds them. */
static void describe(double x[RIDGE_FEATURES], const struct plan_launch *launch)
{
	uint64_t scalars[RIDGE_SCALARS] = {0};
	size_t offset, size, n = 0;

	for (size_t i = 0; n < RIDGE_SCALARS && i < launch->argument_count; i++) {
		CU(cuFuncGetParamInfo(launch->kernel->function, i, &offset, &size));
		if (size <= sizeof(scalars[0]))
			memcpy(&scalars[n++], &launch->arguments[i], size);
	}
	ridge_describe(x, launch->shape.grid, launch->shape.block, launch->shape.shared, scalars);
}

static void note_time(struct observation *o, const struct plan_launch *launch)
{
	float ms;

	CU(cuEventElapsedTime(&ms, launch->before, launch->after));
	double ns = (double)ms * 1e6;
	if (o->ns == 0 || ns < o->ns)
		o->ns = ns;
}

static void observe(struct observations *to, struct plan *plan, unsigned index)
{
	size_t first = to->n;

	for (size_t i = 0; i < plan->launch_count; i++) {
		struct observation *o = add(to);

		*o = (struct observation){plan->launches[i].kernel->name, index};
		describe(o->x, &plan->launches[i]);
	}
	plan_measure(plan); /* the first launches take longer */
	for (unsigned round = 0; round < ROUNDS; round++) {
		plan_measure(plan);
		for (size_t i = first; to->all && i < to->n; i++)
			note_time(&to->all[i], &plan->launches[i - first]);
	}
}

/* From half the class's size to twice of it. */
static uint32_t size_at(uint32_t class, unsigned index)
{
	double size = class * exp2(2.0 * index / (SIZES - 1) - 1);

	return size > 1000 ? (uint32_t)(size / 32) * 32 : (uint32_t)(size + 0.5);
}

static bool learned_from(const struct observation *o)
{
	return o->index % 2 == 0;
}

struct error {
	double sum;
	unsigned launches, unknown;
};

static struct error evaluate(const struct observations *from, const char *kernel,
			     struct ridge_model *model)
{
	static struct ridge ridge;
	struct error error = {0};

	ridge.n = 0;
	for (size_t i = 0; i < from->n; i++) {
		const struct observation *o = &from->all[i];
		if (strcmp(o->kernel, kernel) == 0 && learned_from(o))
			ridge_learn(&ridge, o->x, o->ns);
	}
	ridge_fit(&ridge, model);
	for (size_t i = 0; i < from->n; i++) {
		const struct observation *o = &from->all[i];
		if (strcmp(o->kernel, kernel) != 0 || learned_from(o))
			continue;
		double ns = ridge_predict(model, o->x);
		error.launches++;
		error.unknown += ns == 0;
		error.sum += fabs(ns / o->ns - 1);
	}
	return error;
}

static void print_points(const struct observations *from, const char *workload)
{
	for (size_t i = 0; i < from->n; i++) {
		const struct observation *o = &from->all[i];
		printf("{\"workload\":\"%s\",\"kernel\":\"%s\",\"index\":%u,\"ns\":%.0f,\"x\":[",
		       workload, o->kernel, o->index, o->ns);
		for (unsigned j = 0; j < RIDGE_FEATURES; j++)
			printf("%s%.0f", j ? "," : "", o->x[j]);
		puts("]}");
	}
}

/* The mean error of a benchmark's kernels. */
static double report(const struct observations *from, const struct plan *plan)
{
	static const char *const shapes[] = {"none", "linear", "power"};
	double sum = 0;

	for (unsigned i = 0; i < plan->kernel_count; i++) {
		struct ridge_model model;
		struct error error = evaluate(from, plan->kernels[i].name, &model);
		double mean = error.launches ? error.sum / error.launches : 0;
		sum += mean;
		printf("{\"workload\":\"%s\",\"kernel\":\"%s\",\"model\":\"%s\",\"launches\":%u,"
		       "\"unknown\":%u,\"expected\":%.4f,\"error\":%.4f}\n",
		       plan->benchmark->name, plan->kernels[i].name, shapes[model.shape],
		       error.launches, error.unknown, model.error, mean);
	}
	return sum / plan->kernel_count;
}

static double run(const struct workload *w, const struct choice *choice,
		  const struct benchmark *benchmark)
{
	uint32_t class =
		w->size ? (uint32_t)w->size : benchmark->sizes[w->gpu][class_find(choice->class)];
	struct observations seen = {0};
	double mean = 0;

	for (unsigned index = 0; index < SIZES; index++) {
		struct plan plan;
		plan_init(&plan, benchmark, w, size_at(class, index));
		observe(&seen, &plan, index);
		if (index == SIZES - 1) {
			if (choice->points)
				print_points(&seen, benchmark->name);
			mean = report(&seen, &plan);
		}
		plan_deinit(&plan);
	}
	free(seen.all);
	fflush(stdout);
	return mean;
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	struct choice choice = {.class = "small"};
	const struct workload_option own[] = {
		{"only", OPTION_TEXT, &choice.only, "just the benchmark with this name"},
		{"class", OPTION_TEXT, &choice.class,
		 "of the sizes in the middle: large, small, trivial"},
		{"points", OPTION_FLAG, &choice.points, "prints all that was measured, too"},
		{0},
	};
	double sum = 0;
	unsigned n = 0;

	workload_parse(&w, argc, argv, "how well times of the papers' kernels are predicted", own);
	if (class_find(choice.class) == CLASS_COUNT)
		workload_fail("no class '%s'", choice.class);
	workload_open(&w, NULL);
	for (size_t i = 0; i < benchmark_count; i++) {
		/* Kernels that run until they are told to end have no time. */
		if (benchmarks[i].meanwhile ||
		    (choice.only && strcmp(choice.only, benchmarks[i].name) != 0))
			continue;
		sum += run(&w, &choice, &benchmarks[i]);
		n++;
	}
	printf("{\"workloads\":%u,\"mean_error\":%.4f}\n", n, n ? sum / n : 0);
	workload_close(&w);
	return 0;
}
