/* Kernels run in the forms leave the memory that they leave natively. */
#include "generate.h"
#include "run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Kernels that a generator makes, from WEIR_SEED on. */
#define GENERATED_COUNT 150
#define SCHEDULES       3

static uint32_t input[GENERATED_INPUTS];

static unsigned number(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static void must_agree(const struct problem *problem, uint64_t seed, unsigned schedules,
		       unsigned *evictions)
{
	struct run run;
	bool good =
		run_init(&run, problem, seed) && run.has[WEIR_SLICED] && run.has[WEIR_PERSISTENT];

	for (unsigned k = 0; good && k < schedules; k++)
		good = run_form(&run, WEIR_SLICED) && run_form(&run, WEIR_PERSISTENT);
	*evictions += run.evictions;
	run_deinit(&run);
	if (!good)
		fail_msg("%s, seed %llu: %s", problem->kernel, (unsigned long long)seed,
			 run.message);
}

static void generated_kernels(void **state)
{
	unsigned first = number("WEIR_SEED", 1), count = number("WEIR_COUNT", GENERATED_COUNT);
	unsigned evictions = 0;

	(void)state;
	for (unsigned seed = first; seed < first + count; seed++) {
		struct generated g;
		uint32_t threads;

		generate(&g, seed);
		threads = g.grid[0] * g.grid[1] * g.grid[2] * g.block[0] * g.block[1] * g.block[2];
		must_agree(&(struct problem){.ptx = g.ptx,
					     .kernel = GENERATED_KERNEL,
					     .grid = {g.grid[0], g.grid[1], g.grid[2]},
					     .block = {g.block[0], g.block[1], g.block[2]},
					     .dynamic_shared = g.dynamic_shared,
					     .out_words = threads + GENERATED_COUNTERS,
					     .in = input,
					     .n = seed},
			   seed, SCHEDULES, &evictions);
		free(g.ptx);
	}
	assert_true(evictions > 0 || count < 10);
}

/* test-forms print SEED: the text of one kernel. */
static int print(const char *seed)
{
	struct generated g;

	generate(&g, strtoul(seed, NULL, 10));
	fputs(g.ptx, stdout);
	free(g.ptx);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(generated_kernels),
	};
	uint64_t random = 1;

	if (argc == 3 && !strcmp(argv[1], "print"))
		return print(argv[2]);
	for (unsigned k = 0; k < GENERATED_INPUTS; k++)
		input[k] = random_next(&random);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
