#include "agree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void must_agree_so(const struct problem *problem, uint64_t seed, unsigned schedules,
			  struct seen *seen)
{
	struct run run;
	bool good =
		run_init(&run, problem, seed) && run.has[WEIR_SLICED] && run.has[WEIR_PERSISTENT];

	for (unsigned k = 0; good && k < schedules; k++)
		good = run_form(&run, WEIR_SLICED) && run_form(&run, WEIR_PERSISTENT) &&
		       (!run.has[WEIR_RESUMABLE] || run_form(&run, WEIR_RESUMABLE));
	seen->kernels++;
	seen->resumable += run.has[WEIR_RESUMABLE];
	seen->evictions += run.evictions;
	seen->saves += run.saves;
	seen->partial += run.partial;
	seen->returns += run.returns;
	run_deinit(&run);
	if (!good)
		fail_msg("%s%s, seed %llu: %s", problem->kernel,
			 problem->detached ? ", detached" : "", (unsigned long long)seed,
			 run.message);
}

void must_agree(const struct problem *problem, uint64_t seed, unsigned schedules, struct seen *seen)
{
	struct problem detached = *problem;

	must_agree_so(problem, seed, schedules, seen);
	detached.detached = true;
	must_agree_so(&detached, seed, schedules, seen);
}

void all_must_agree(const struct problem *problems, size_t n, unsigned schedules, struct seen *seen)
{
	for (size_t k = 0; k < n; k++)
		must_agree(&problems[k], k, schedules, seen);
}
