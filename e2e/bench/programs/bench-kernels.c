/* Kernels in every form, alone on the GPU: the time of each against native, in the same
 * rounds, and how long each takes to leave. Run it without libweir. Prints one line of JSON for
 * each kernel. bench-kernels has the papers' kernels, bench-tensor those for tensor cores.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/base.h>

#include "forms/form-launcher.h"
#include "forms/variants.h"
#include "mixed-lengths.h"

#define VARIANTS_MAX countof(usual)

static const struct variant *variants = usual;
static size_t n_variants = countof(usual);

/* A variant is cheap if it costs at most this, or so many times the least. */
#define OVERHEAD_MAX 1.03
#define CHEAP        1.01
/* The variant that leaves soonest may cost this. */
#define OVERHEAD_SOON 1.10
#define SMALL_PARTS   8

/* A kernel in a variant: us of its launches in a round, the ratio to native, us to leave. */
struct cell {
	struct samples us, ratio, delay, leave, first_leave, back;
	struct form_evictions evictions;
};

struct choice {
	const char *only, *class, *form;
	uint64_t trials, more, drain, parts;
	uint64_t period, look, lead;
	uint64_t groups; /* SMs to leave */
	bool check, chained, leaving, each;
};

struct table {
	const struct choice *choice;
	struct form form;
	struct plan plan;
	struct cell cells[PLAN_KERNELS_MAX][VARIANTS_MAX];
	struct samples block_us[PLAN_KERNELS_MAX]; /* see longest_block() */
};

static bool runs(const struct table *table, size_t v)
{
	enum weir_form form = variants[v].form;
	const char *wanted = table->choice->form;

	uint64_t parts = table->choice->parts;

	return form_has(&table->form, &table->plan, form) &&
	       (v == 0 || ((!wanted || strcmp(wanted, weir_form_name(form)) == 0) &&
			   (!parts || variants[v].parts == parts)));
}

static double block_us(const struct table *table, const struct plan_launch *launch)
{
	const unsigned *grid = launch->shape.grid;
	double blocks = (double)grid[0] * grid[1] * grid[2];
	double resident = form_resident(&table->form, &table->plan, launch, WEIR_NATIVE);

	return launch->us / blocks * (resident < blocks ? resident : blocks);
}

/* The time of a block in the launch with the longest blocks, natively: a client may have to wait so
 * long. */
static double longest_block(const struct table *table, const struct plan_kernel *kernel)
{
	double longest = 0;

	for (size_t i = 0; i < table->plan.launch_count; i++) {
		const struct plan_launch *launch = &table->plan.launches[i];

		if (launch->kernel == kernel && block_us(table, launch) > longest)
			longest = block_us(table, launch);
	}
	return longest;
}

static void one_round(struct table *table, bool check)
{
	struct plan *plan = &table->plan;
	double native[PLAN_KERNELS_MAX] = {0};

	for (size_t v = 0; v < n_variants; v++) {
		if (!runs(table, v))
			continue;
		table->form.variant = variants[v];
		plan_measure(plan);
		if (v == 0)
			form_note_native(&table->form, plan);
		for (unsigned i = 0; i < plan->kernel_count; i++) {
			double us = plan->kernels[i].round_us;

			if (v == 0) {
				native[i] = us;
				samples_add(&table->block_us[i],
					    longest_block(table, &plan->kernels[i]));
			}
			samples_add(&table->cells[i][v].us, us);
			samples_add(&table->cells[i][v].ratio, us / native[i]);
		}
		if (check)
			plan_check(plan);
	}
}

static double quantile(struct samples *samples, double q)
{
	samples_sort(samples);
	return samples_quantile(samples, q);
}

static double ratio(struct table *table, unsigned kernel, size_t v)
{
	return quantile(&table->cells[kernel][v].ratio, 0.5);
}

/* The least cost of the kernel's variants in this form. */
static double cheapest(struct table *table, unsigned kernel, enum weir_form form)
{
	double least = 1e9;

	for (size_t v = 1; v < n_variants; v++)
		if (variants[v].form == form && runs(table, v) && ratio(table, kernel, v) < least)
			least = ratio(table, kernel, v);
	return least;
}

static bool is_cheap(struct table *table, unsigned kernel, size_t v)
{
	double most = CHEAP * cheapest(table, kernel, variants[v].form);

	return ratio(table, kernel, v) <= (most > OVERHEAD_MAX ? most : OVERHEAD_MAX);
}

/* Blocks that a worker may have to run before it leaves. */
static uint32_t rest_of(size_t v)
{
	return variants[v].parts + variants[v].ahead;
}

/* No other affordable variant leaves sooner. */
static bool is_soonest(struct table *table, unsigned kernel, size_t v)
{
	if (ratio(table, kernel, v) > OVERHEAD_SOON)
		return false;
	for (size_t k = 1; k < n_variants; k++)
		if (variants[k].form == variants[v].form && runs(table, k) &&
		    ratio(table, kernel, k) <= OVERHEAD_SOON && rest_of(k) < rest_of(v))
			return false;
	return true;
}

/* With few blocks a ticket, the cost of leaving soon shows. */
static bool has_small_parts(size_t v)
{
	return variants[v].form == WEIR_PERSISTENT && variants[v].parts <= SMALL_PARTS &&
	       !variants[v].spare && variants[v].order != WEIR_TICKETS_APART;
}

/* Only variants that libweir would use are evicted. */
static bool is_of_use(struct table *table, size_t v)
{
	if (has_small_parts(v) || table->choice->leaving)
		return true;
	for (unsigned i = 0; i < table->plan.kernel_count; i++)
		if (is_cheap(table, i, v) || is_soonest(table, i, v))
			return true;
	return false;
}

/* Every kernel has left so often. */
static bool is_enough(const struct table *table, const struct samples of[PLAN_KERNELS_MAX])
{
	for (unsigned i = 0; i < table->plan.kernel_count; i++)
		if (of[i].n < table->choice->trials)
			return false;
	return true;
}

/* Evictions of a kernel that are to be made up for: as many, at most, as are wanted. */
static uint64_t most_unseen(const struct form *form, const struct plan *plan, uint64_t trials)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < plan->kernel_count; i++)
		most = form->evictions[i].unseen > most ? form->evictions[i].unseen : most;
	return most < trials ? most : trials;
}

static bool is_evicted(struct table *table, size_t v)
{
	return variants[v].form != WEIR_SLICED && v != 0 && runs(table, v) && is_of_use(table, v);
}

/* Exchanges what is known of the variant's evictions with what @form has noted. */
static void swap_evictions(struct table *table, size_t v)
{
	struct form *form = &table->form;

	for (unsigned i = 0; i < table->plan.kernel_count; i++) {
		struct cell *cell = &table->cells[i][v];
		struct samples delay = cell->delay;
		struct form_evictions evictions = cell->evictions;

		cell->delay = form->delays[i];
		cell->evictions = form->evictions[i];
		form->delays[i] = delay;
		form->evictions[i] = evictions;
	}
}

/* Whether there is a round after @done ones. */
static bool goes_on(const struct table *table, uint64_t done)
{
	uint64_t trials = table->choice->trials;
	const struct form *form = &table->form;

	return done < trials + most_unseen(form, &table->plan, trials) &&
	       !is_enough(table, form->delays);
}

/* A round of a variant in which every launch is evicted once. False: there were enough. */
static bool evict_once(struct table *table, size_t v, uint64_t done)
{
	bool runs_on;

	swap_evictions(table, v);
	runs_on = goes_on(table, done);
	if (runs_on) {
		table->form.variant = variants[v];
		plan_measure(&table->plan);
		if (table->choice->check && !goes_on(table, done + 1))
			plan_check(&table->plan);
	}
	swap_evictions(table, v);
	return runs_on;
}

/* The variants are evicted in turn, so that what else changes with time is the same for all. */
static void evict(struct table *table)
{
	bool more = table->choice->trials;

	table->form.evict = true;
	for (uint64_t done = 0; more; done++) {
		more = false;
		for (size_t v = 0; v < n_variants; v++)
			if (is_evicted(table, v) && evict_once(table, v, done))
				more = true;
	}
	table->form.evict = false;
}

/* Rounds in which each kernel is launched @trials times, and as often again if few were seen. */
static uint64_t rounds_of(const struct plan *plan, uint64_t trials)
{
	uint64_t fewest = trials;

	for (unsigned i = 0; i < plan->kernel_count; i++)
		if (plan->kernels[i].launches < fewest)
			fewest = plan->kernels[i].launches;
	return 2 * trials / (fewest ? fewest : 1);
}

/* Each launch leaves a part of the SMs once. */
static void leave_a_part(struct table *table)
{
	struct plan *plan = &table->plan;
	struct form *form = &table->form;

	form->each = table->choice->each;
	form->sms_left = (uint32_t)table->choice->groups;
	uint64_t rounds = rounds_of(plan, table->choice->trials);
	for (size_t v = 0; v < n_variants; v++) {
		form->variant = variants[v];
		for (uint64_t t = 0; variants[v].groups && t < rounds; t++)
			if (runs(table, v) && !is_enough(table, form->returns))
				plan_measure(plan);
		if (table->choice->check && variants[v].groups && runs(table, v))
			plan_check(plan);
		for (unsigned i = 0; i < plan->kernel_count; i++) {
			table->cells[i][v].leave = form->leaves[i];
			table->cells[i][v].first_leave = form->first_leaves[i];
			table->cells[i][v].back = form->returns[i];
			form->leaves[i] = form->first_leaves[i] = (struct samples){0};
			form->returns[i] = (struct samples){0};
		}
	}
	form->sms_left = 0;
}

static void print_times(const char *name, struct samples *us)
{
	if (us->n)
		printf(",\"%s\":{\"n\":%zu,\"p50\":%.1f,\"p99\":%.1f,\"max\":%.1f}", name, us->n,
		       quantile(us, 0.5), quantile(us, 0.99), quantile(us, 1));
}

static void print_each(const struct samples *us)
{
	printf(",\"delays_us\":[");
	for (size_t i = 0; i < us->n; i++)
		printf("%s%.1f", i ? "," : "", us->values[i]);
	putchar(']');
}

/* @each: all delays, too. */
static void print_cell(struct cell *cell, const struct variant *variant, bool each)
{
	const struct form_evictions *evictions = &cell->evictions;

	printf("{\"form\":\"%s\",\"parts\":%u,\"ahead\":%d,\"even\":%d,\"spare\":%d,\"apart\":%d,"
	       "\"saves\":%d,\"finishes\":%d,\"together\":%d,\"groups\":%d,\"us\":%.2f,"
	       "\"ratio\":%.4f",
	       weir_form_name(variant->form), variant->parts, variant->ahead, variant->even,
	       variant->spare, variant->order == WEIR_TICKETS_APART, variant->saves,
	       variant->finishes, variant->together, variant->groups, quantile(&cell->us, 0.5),
	       quantile(&cell->ratio, 0.5));
	if (evictions->saved || evictions->drained)
		printf(",\"blocks_saved\":%llu,\"blocks_drained\":%llu,\"block_bytes\":%llu",
		       (unsigned long long)evictions->saved, (unsigned long long)evictions->drained,
		       (unsigned long long)evictions->block_bytes);
	if (cell->delay.n)
		printf(",\"evictions\":%zu,\"unseen\":%u,\"delay_us\":{\"p50\":%.1f,\"p99\":%.1f,"
		       "\"max\":%.1f}",
		       cell->delay.n, evictions->unseen, quantile(&cell->delay, 0.5),
		       quantile(&cell->delay, 0.99), quantile(&cell->delay, 1));
	if (each)
		print_each(&cell->delay);
	print_times("leave_us", &cell->leave);
	print_times("first_leave_us", &cell->first_leave);
	print_times("return_us", &cell->back);
	putchar('}');
}

/* The launch with the most blocks. */
static const struct plan_launch *largest(const struct plan *plan, const struct plan_kernel *kernel)
{
	const struct plan_launch *best = plan->launches;
	uint64_t most = 0;

	for (size_t i = 0; i < plan->launch_count; i++) {
		const struct plan_launch *launch = &plan->launches[i];
		const unsigned *grid = launch->shape.grid;
		uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];

		if (launch->kernel != kernel)
			continue;
		if (blocks > most) {
			best = launch;
			most = blocks;
		}
	}
	return best;
}

static void print_kernel(struct table *table, unsigned index)
{
	const struct plan *plan = &table->plan;
	const struct plan_kernel *kernel = &plan->kernels[index];
	const struct plan_launch *launch = largest(plan, kernel);
	const unsigned *grid = launch->shape.grid, *block = launch->shape.block;

	printf("{\"workload\":\"%s\",\"class\":\"%s\",\"kernel\":\"%s\",\"launches\":%u,"
	       "\"grid\":[%u,%u,%u],\"threads\":%u,\"resident\":%u,\"workers\":%u,"
	       "\"more\":%u,\"native_us\":%.2f,\"block_us\":%.2f,\"forms\":[",
	       plan->benchmark->name, table->choice->class, kernel->name, kernel->launches, grid[0],
	       grid[1], grid[2], block[0] * block[1] * block[2],
	       form_resident(&table->form, plan, launch, WEIR_NATIVE),
	       form_has(&table->form, plan, WEIR_PERSISTENT)
		       ? form_resident(&table->form, plan, launch, WEIR_PERSISTENT)
		       : 0,
	       table->form.more, quantile(&table->cells[index][0].us, 0.5),
	       quantile(&table->block_us[index], 0.5));
	for (size_t v = 1, printed = 0; v < n_variants; v++) {
		if (!runs(table, v))
			continue;
		if (printed++)
			putchar(',');
		print_cell(&table->cells[index][v], &variants[v], table->choice->leaving);
	}
	puts("]}");
}

static void run_benchmark(struct workload *w, const struct choice *choice,
			  const struct benchmark *benchmark)
{
	enum input_class class = class_find(choice->class);
	uint64_t rounds = w->iterations ? w->iterations : w->gpu ? 15 : 2;
	static struct table table;
	struct benchmark copy;

	table = (struct table){.choice = choice};
	form_init(&table.form, &copy, benchmark, (unsigned)choice->more);
	plan_init(&table.plan, &copy, w, w->size ? (uint32_t)w->size : copy.sizes[w->gpu][class]);
	form_attach(&table.form, &table.plan);
	table.form.chained = choice->chained;
	table.form.drain_percent = choice->drain;
	table.form.period_ns = choice->period;
	table.form.look = choice->look;
	table.form.lead = choice->lead;
	one_round(&table, choice->check);
	for (unsigned i = 0; i < table.plan.kernel_count; i++) {
		table.block_us[i].n = 0;
		for (size_t v = 0; v < n_variants; v++)
			table.cells[i][v].us.n = table.cells[i][v].ratio.n = 0;
	}
	while (rounds--)
		one_round(&table, false);
	if (choice->groups)
		leave_a_part(&table);
	else
		evict(&table);
	for (unsigned i = 0; i < table.plan.kernel_count; i++)
		print_kernel(&table, i);
	fflush(stdout);
	for (unsigned i = 0; i < table.plan.kernel_count; i++) {
		samples_deinit(&table.block_us[i]);
		for (size_t v = 0; v < n_variants; v++) {
			samples_deinit(&table.cells[i][v].us);
			samples_deinit(&table.cells[i][v].ratio);
			samples_deinit(&table.cells[i][v].delay);
			samples_deinit(&table.cells[i][v].leave);
			samples_deinit(&table.cells[i][v].first_leave);
			samples_deinit(&table.cells[i][v].back);
		}
	}
	plan_deinit(&table.plan);
	form_deinit(&table.form);
}

static void run(struct workload *w, const struct choice *choice, const struct benchmark *benchmark)
{
	/* Kernels that run until they are told to end have no time. */
	if (!benchmark->meanwhile && (!choice->only || strcmp(choice->only, benchmark->name) == 0))
		run_benchmark(w, choice, benchmark);
}

int main(int argc, char **argv)
{
	struct workload w = {.seed = 1};
	struct choice choice = {.class = "small",
				.drain = 100,
				.period = 8000,
				.look = WEIR_LOOK,
				.lead = WEIR_LEAD};
	const struct workload_option own[] = {
		{"only", OPTION_TEXT, &choice.only, "just the benchmark with this name"},
		{"class", OPTION_TEXT, &choice.class, "of the input: large, small, trivial"},
		{"form", OPTION_TEXT, &choice.form, "just this one, and native"},
		{"parts", OPTION_NUMBER, &choice.parts,
		 "just variants with so many blocks a ticket, or slices, and native"},
		{"check", OPTION_FLAG, &choice.check,
		 "the results of the first round and of the last eviction"},
		{"more", OPTION_NUMBER, &choice.more,
		 "registers of persistent kernels, besides those that keep as many blocks on the "
		 "GPU; "
		 "255: no limit"},
		{"chained", OPTION_FLAG, &choice.chained,
		 "a continuation behind each launch, as libweir has one or more"},
		{"leaving", OPTION_FLAG, &choice.leaving,
		 "compares ways of leaving: draining, saving, and both; also mixed-lengths"},
		{"groups", OPTION_NUMBER, &choice.groups,
		 "launches leave so many SMs and come back, --trials times each"},
		{"each", OPTION_FLAG, &choice.each,
		 "with --groups: tells of each launch, on stderr"},
		{"drain", OPTION_NUMBER, &choice.drain,
		 "per cent of the time that libweir gives blocks to finish instead of being saved"},
		{"period-ns", OPTION_NUMBER, &choice.period, "between two looks at the demand"},
		{"look", OPTION_NUMBER, &choice.look,
		 "cycles between a warp's looks in resumable: a power of two"},
		{"lead", OPTION_NUMBER, &choice.lead,
		 "cycles by which a block's first warp looks before the others"},
		{"trials", OPTION_NUMBER, &choice.trials,
		 "evictions of each kernel in each variant that is of use"},
		{0},
	};

	workload_parse(&w, argc, argv, "kernels in every form against native", own);
	if (class_find(choice.class) == CLASS_COUNT)
		workload_fail("no class '%s'", choice.class);
	if (choice.leaving) {
		variants = leaving;
		n_variants = countof(leaving);
	}
	if (choice.groups) {
		variants = grouped;
		n_variants = countof(grouped);
	}
	workload_open(&w, NULL);
	if (choice.leaving)
		run(&w, &choice, &mixed_lengths);
	for (size_t i = 0; i < benchmark_count; i++)
		run(&w, &choice, &benchmarks[i]);
	workload_close(&w);
	return 0;
}
