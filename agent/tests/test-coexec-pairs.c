/* Pairs and triples of kernels that always have work, under the policy coexec: what the search
 * finds, and what is measured. SEED=N repeats a run. */
#include "coexec-gpu.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "weir/base.h"

/* FlexSched's figures: it loses 1 % on average, 6 % at worst, and the search takes 0.92 of the
 * sequential time. */
static void test_pairs(void **unused)
{
	double lost = 0, worst = 0, took = 0;
	unsigned n = 0, searches = 0;

	(void)unused;
	for (; n < 4 * countof(measured_pairs); n++) {
		memset(&world.found, 0, sizeof(world.found));
		struct searched found = run_pair(&measured_pairs[n % countof(measured_pairs)]);
		lost += found.loss;
		worst = fmax(worst, found.loss);
		took += found.took;
		searches += found.took > 0;
	}
	print_message("pairs: lost %.4f on average, %.4f at worst; time of the search over "
		      "sequential %.3f\n",
		      lost / n, worst, took / searches);
	assert_true(lost / n < 0.01);
	assert_true(worst < 0.06);
	assert_true(took / searches < 0.92);
}

/* Queued launches that have other workers than the client may have now. */
static unsigned former_launches(unsigned kernel)
{
	unsigned n = 0;

	for (unsigned k = 0; k < QUEUED; k++)
		n += world.launched[kernel][k] != world.entries[kernel].coexec.workers;
	return n;
}

/* Returns how many tries began. */
static unsigned check_tries(const struct measured_pair *pair)
{
	unsigned tries = 0;

	begin_pair(pair);
	while (world.now - world.begin < PAIR_NS) {
		bool settling = plan()->phase == COEXEC_SETTLING;
		uint64_t since = plan()->since;
		step();
		/* Not those that the wait was too long for. */
		if (!plan()->searching || !settling || plan()->phase != COEXEC_MEASURING ||
		    world.now - since >= COEXEC_LONGEST)
			continue;
		tries++;
		/* One may have begun since the last report; its end is where the measurement
		 * begins. */
		for (unsigned k = 0; k < 2; k++)
			assert_in_range(former_launches(pair->kernels[k]), 0, 1);
	}
	return tries;
}

/* Launches with the former workers say nothing of the configuration that is tried. */
static void test_former_launches_are_not_measured(void **unused)
{
	unsigned tries = 0;

	(void)unused;
	for (size_t i = 0; i < countof(measured_pairs); i++) {
		memset(&world.found, 0, sizeof(world.found));
		tries += check_tries(&measured_pairs[i]);
	}
	assert_in_range(tries, 3 * countof(measured_pairs), UINT_MAX);
}

/* From now on these have work all the time, and no others. */
static void let_stay(const unsigned *kernels, unsigned n)
{
	for (unsigned i = 0; i < N; i++) {
		world.until[i] = world.reported[i];
		world.stays[i] = false;
	}
	for (unsigned k = 0; k < n; k++)
		world.stays[kernels[k]] = true;
}

static double work_of_all(void)
{
	double sum = 0;

	for (unsigned i = 0; i < N; i++)
		sum += world.done[i];
	return sum;
}

/* What a client got beside others that are gone is not held against it. Two compute-bound kernels
 * do not run beside each other while the memory-bound one waits that goes well with both. */
static void test_three_after_pairs(void **unused)
{
	static const unsigned three[] = {CURVE_VA, CURVE_MRI, CURVE_GCEDD};
	double before;

	(void)unused;
	begin(1);
	for (size_t i = 0; i < countof(measured_pairs); i++) {
		let_stay(measured_pairs[i].kernels, 2);
		pass(PAIR_NS);
	}
	let_stay(three, countof(three));
	step();
	for (unsigned i = 0; i < countof(three); i++) {
		uint64_t served = world.entries[three[i]].coexec.served;
		assert_in_range(served, plan()->service, plan()->service + 100 * MS);
	}
	before = work_of_all();
	pass(3000 * MS);
	double found = (work_of_all() - before) / (3000 * MS);
	print_message("three kernels: %.3f of sequential\n", found);
	assert_true(found > 1.22);
}

/* The search was lucky: while the pair runs, what it really gains replaces what is remembered. */
static void test_chance_is_corrected(void **unused)
{
	const struct measured_pair *pair = &measured_pairs[0];
	uint64_t numbers[] = {pair->kernels[0] + 1, pair->kernels[1] + 1};
	double gains = speed_up_of(pair, 0);

	(void)unused;
	assert_true(gains > 1.1 && gains < 1.3);
	memset(&world.found, 0, sizeof(world.found));
	coexec_memory_put(
		&world.found, numbers, 2,
		(uint8_t[]){(uint8_t)pair->of[0].workers[0], (uint8_t)pair->of[0].workers[1]},
		gains + 0.3);
	run_pair(pair);
	double found = coexec_memory_find(&world.found, numbers, 2, NULL);
	print_message("a pair that gains %.2f: %.2f is remembered\n", gains, found);
	assert_true(fabs(found - gains) < 0.1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WORLD_TEST(test_pairs),
		WORLD_TEST(test_former_launches_are_not_measured),
		WORLD_TEST(test_three_after_pairs),
		WORLD_TEST(test_chance_is_corrected),
	};

	return run_world_tests(tests);
}
