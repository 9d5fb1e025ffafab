/* A queue of ten kernels under the policy coexec, on a made-up GPU on which pairs get on as on an
 * H100. Kernels of one kind share it in proportion. SEED=N repeats a run. */
#include "policy/coexec/memory.h"
#include "policy/run-queue.h"

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "weir/base.h"

#include "coexec-curves.h"

#define MS     1000000ull
#define STEP   100000ull
#define REPORT (5 * STEP) /* libweir reports so often */
#define LOOK   (8 * STEP) /* the agent looks so often */
#define LAUNCH (2 * MS)
#define QUEUED 4u
#define APART  (3 * MS) /* between two arrivals */
#define N      CURVE_KERNELS

static uint64_t state;

static unsigned below(unsigned n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)((state >> 33) % n);
}

static struct queue_world {
	struct run_queues queues;
	struct coexec_memory found;
	struct run_queue_entry entries[N];
	double done[N];
	uint64_t reported[N], until[N];          /* its work is done when it has reported so much */
	uint64_t now, begin, comes[N], ended[N]; /* ended: the last launch */
	unsigned launched[N][QUEUED]; /* workers of the launches that are queued, from `first` on */
	unsigned first[N];
	bool stays[N]; /* has work for as long as anybody looks */
} world;

static void hold(struct run_queues *queues, struct run_queue_entry *entry, bool held)
{
	(void)queues;
	(void)entry;
	(void)held;
}

static unsigned fit(unsigned kernel)
{
	uint32_t most = 0;

	for (unsigned r = 0; r < WEIR_SM_RESOURCES; r++)
		most = (uint32_t)larger(most, curve_parts[kernel][r]);
	return WEIR_SM_PARTS / most;
}

/* How fast @kernel gets on with @workers beside @other; -1: both are of one kind. */
static double beside(unsigned kernel, unsigned workers, unsigned other)
{
	double found = -1, least = INFINITY;

	for (size_t i = 0; i < countof(measured_pairs); i++) {
		const struct measured_pair *pair = &measured_pairs[i];
		bool second = pair->kernels[1] == kernel;
		if (pair->kernels[second] != kernel || pair->kernels[!second] != other)
			continue;
		for (unsigned k = 0; k < pair->n; k++) {
			double off = fabs((double)pair->of[k].workers[second] - workers);
			if (off < least) {
				least = off;
				found = pair->of[k].rates[second];
			}
		}
	}
	return found;
}

/* The best that so many workers can do. */
static double alone(unsigned kernel, unsigned workers)
{
	double best = (double)workers / fit(kernel);

	for (unsigned other = 0; other < N; other++)
		best = fmax(best, beside(kernel, workers, other));
	return fmin(best, 1);
}

static bool has_work(unsigned i)
{
	return world.now >= world.comes[i] &&
	       (world.stays[i] || world.reported[i] < world.until[i]);
}

static bool runs(unsigned i)
{
	return has_work(i) && world.entries[i].active && !world.entries[i].held;
}

static unsigned workers_of(unsigned i)
{
	return (unsigned)smaller(world.launched[i][world.first[i]], fit(i));
}

/* Each other kernel slows it down as it does in a pair. */
static double rate_of(unsigned i)
{
	double rate = alone(i, workers_of(i)), first = rate, all = 0;
	unsigned n = 0;

	for (unsigned k = 0; k < N; k++) {
		all += runs(k) ? (double)workers_of(k) / fit(k) : 0;
		n += runs(k);
	}
	if (n == 1)
		return workers_of(i) < fit(i) ? rate : 1;
	if (all > 1.3) /* they do not fit: the hardware lets them take turns */
		return 1.0 / n;
	for (unsigned k = 0; k < N; k++) {
		double pair = k != i && runs(k) ? beside(i, workers_of(i), k) : first;
		rate *= (pair < 0 ? fmin(first, (double)workers_of(i) / fit(i)) : pair) / first;
	}
	return rate;
}

/* All have work again, one behind the other. */
static void come(uint64_t work)
{
	world.begin = world.now;
	for (unsigned i = 0; i < N; i++) {
		world.until[i] = world.reported[i] + work;
		world.comes[i] = world.now + below(N) * APART;
	}
}

/* New clients, and a run queue that knows nothing of earlier ones. */
static void begin(uint64_t work)
{
	world.now += MS;
	run_queues_init(&world.queues, &policy_coexec, &policy_defaults, hold);
	world.queues.memory = &world.found;
	world.queues.levels[0].all_concurrent = world.queues.levels[0].bounds = true;
	for (unsigned i = 0; i < N; i++) {
		struct run_queue_entry *entry = &world.entries[i];
		*entry = (struct run_queue_entry){.weight = 100};
		run_queues_add(&world.queues, entry);
		entry->coexec.kernel.number = i + 1;
		memcpy(entry->coexec.kernel.parts, curve_parts[i], sizeof(curve_parts[i]));
		world.done[i] = 0;
		world.reported[i] = 0;
		world.ended[i] = world.now;
		world.stays[i] = false;
		for (unsigned k = 0; k < QUEUED; k++)
			world.launched[i][k] = COEXEC_UNBOUNDED;
	}
	come(work);
}

/* The clock charges those that run. */
static void charge(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N; i++)
		n += runs(i);
	for (unsigned i = 0; i < N; i++)
		if (runs(i))
			run_queues_ran(&world.entries[i], STEP / n);
}

static void finish_launches(unsigned i)
{
	struct coexec_client *client = &world.entries[i].coexec;

	while ((double)(world.reported[i] + LAUNCH) <= world.done[i]) {
		world.reported[i] += LAUNCH;
		world.ended[i] = world.now;
		world.launched[i][world.first[i]] =
			client->workers ? client->workers : COEXEC_UNBOUNDED;
		world.first[i] = (world.first[i] + 1) % QUEUED;
	}
	if ((world.now + i * STEP) % REPORT)
		return;
	client->executed = world.reported[i];
	client->launched = world.reported[i] + QUEUED * LAUNCH;
}

/* Kernels vary. */
static double jitter(void)
{
	return 0.97 + 0.06 * below(1000) / 1000;
}

/* As libweir tells it: less the time that the first launch has run, as if it ran alone. */
static uint64_t remaining(unsigned i)
{
	uint64_t ran = world.now - world.ended[i];

	return ran < QUEUED * LAUNCH ? QUEUED * LAUNCH - ran : 1;
}

/* Returns how many have work left. */
static unsigned step(void)
{
	double rates[N];
	unsigned left = 0;

	if ((world.now - world.begin) % LOOK == 0) {
		for (unsigned i = 0; i < N; i++)
			run_queues_work(&world.queues, &world.entries[i], has_work(i) ? QUEUED : 0,
					has_work(i) ? remaining(i) : 0, world.now);
		run_queues_decide(&world.queues, world.now);
	}
	for (unsigned i = 0; i < N; i++)
		rates[i] = runs(i) ? rate_of(i) : 0;
	for (unsigned i = 0; i < N; i++) {
		world.done[i] += rates[i] * jitter() * (double)STEP;
		finish_launches(i);
		left += world.reported[i] < world.until[i];
	}
	charge();
	world.now += STEP;
	return left;
}

/* Until @work of each is done. Returns how many times faster it was than in sequence. */
static double finish(uint64_t work)
{
	while (step())
		assert_true(world.now - world.begin < 2 * N * work);
	return (double)(N * work) / (double)(world.now - world.begin);
}

static double run_queue(uint64_t work)
{
	begin(work);
	return finish(work);
}

static double mean_of(unsigned runs, uint64_t work)
{
	double sum = 0;

	for (unsigned i = 0; i < runs; i++)
		sum += run_queue(work);
	return sum / runs;
}

/* Nothing is known at first. */
static void test_queues(void **unused)
{
	double first, later, new_clients;

	(void)unused;
	memset(&world.found, 0, sizeof(world.found));
	first = run_queue(1000 * MS);
	mean_of(4, 3000 * MS);
	later = mean_of(4, 1000 * MS);
	new_clients = mean_of(10, 150 * MS);
	print_message(
		"a queue of kernels of 1 s: %.3f of sequential at first, %.3f later; of 150 ms, "
		"from new clients, later: %.3f\n",
		first, later, new_clients);
	assert_true(first > 0.95);
	assert_true(later > 1.1);
	assert_true(new_clients > 1.1);
}

/* Short queues lose nothing by what is tried. */
static void test_short_queues(void **unused)
{
	(void)unused;
	for (unsigned i = 0; i < 10; i++) {
		memset(&world.found, 0, sizeof(world.found));
		assert_true(run_queue(150 * MS) > 0.9);
	}
}

static double work_of(const unsigned kernels[2])
{
	return world.done[kernels[0]] + world.done[kernels[1]];
}

static double speed_up_of(const struct measured_pair *pair, unsigned i)
{
	return pair->of[i].rates[0] + pair->of[i].rates[1];
}

/* Against the best configuration of the pair. */
static double loss_of(const struct measured_pair *pair)
{
	double best = 1, found = 1;

	for (unsigned i = 0; i < pair->n; i++) {
		bool chosen = true;
		for (unsigned k = 0; k < 2; k++)
			chosen &= world.entries[pair->kernels[k]].coexec.workers ==
				  pair->of[i].workers[k];
		best = fmax(best, speed_up_of(pair, i));
		found = chosen ? speed_up_of(pair, i) : found;
	}
	return 1 - found / best;
}

/* A pair that nothing is known of has work all the time. */
struct searched {
	double loss, took; /* took: of the search, over sequential; 0: it was short */
};

static void begin_pair(const struct measured_pair *pair)
{
	begin(1);
	for (unsigned i = 0; i < N; i++)
		world.comes[i] = UINT64_MAX;
	for (unsigned k = 0; k < 2; k++) {
		world.comes[pair->kernels[k]] = world.now;
		world.stays[pair->kernels[k]] = true;
	}
}

static struct searched run_pair(const struct measured_pair *pair)
{
	const struct coexec_plan *plan = &world.queues.levels[0].plan;
	double before = 0, work = 0, passed = 0;

	begin_pair(pair);
	while (world.now - world.begin < 1600 * MS) {
		before = work_of(pair->kernels);
		bool searched = plan->searching;
		step();
		work += searched ? work_of(pair->kernels) - before : 0;
		passed += searched ? (double)STEP : 0;
	}
	if (getenv("VERBOSE"))
		print_message("%u %u: %u+%u, lost %.3f, search %.0f ms, %.3f\n", pair->kernels[0],
			      pair->kernels[1], world.entries[pair->kernels[0]].coexec.workers,
			      world.entries[pair->kernels[1]].coexec.workers, loss_of(pair),
			      passed / (double)MS, passed / work);
	return (struct searched){loss_of(pair), passed > 50 * (double)MS ? passed / work : 0};
}

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

/* That are queued, with other workers than the client may have now. */
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
	const struct coexec_plan *plan = &world.queues.levels[0].plan;
	unsigned tries = 0;

	begin_pair(pair);
	while (world.now - world.begin < 1600 * MS) {
		bool settling = plan->phase == COEXEC_SETTLING;
		uint64_t since = plan->since;
		step();
		/* Not those that the wait was too long for. */
		if (!plan->searching || !settling || plan->phase != COEXEC_MEASURING ||
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

/* Only pairs of unlike kernels are known, as after the experiment's earlier parts. */
static void test_queues_after_pairs(void **unused)
{
	static struct coexec_memory known;
	double sum = 0, least = INFINITY;
	unsigned n = 0;

	(void)unused;
	memset(&world.found, 0, sizeof(world.found));
	for (size_t i = 0; i < countof(measured_pairs); i++)
		run_pair(&measured_pairs[i]);
	known = world.found;
	for (; n < 20; n++) {
		world.found = known;
		double now = run_queue(150 * MS);
		sum += now;
		least = fmin(least, now);
	}
	print_message("a queue of kernels of 150 ms, when pairs are known: %.3f of sequential on "
		      "average, %.3f at least\n",
		      sum / n, least);
	assert_true(sum / n > 1.22);
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
	const struct coexec_plan *plan = &world.queues.levels[0].plan;
	double before;

	(void)unused;
	memset(&world.found, 0, sizeof(world.found));
	begin(1);
	for (size_t i = 0; i < countof(measured_pairs); i++) {
		let_stay(measured_pairs[i].kernels, 2);
		for (uint64_t end = world.now + 1600 * MS; world.now < end;)
			step();
	}
	let_stay(three, countof(three));
	step();
	for (unsigned i = 0; i < countof(three); i++) {
		uint64_t served = world.entries[three[i]].coexec.served;
		assert_in_range(served, plan->service, plan->service + 100 * MS);
	}
	before = work_of_all();
	for (uint64_t end = world.now + 3000 * MS; world.now < end;)
		step();
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

/* Launches that were queued have the workers of the former turn. So a turn is many times as long as
 * these take. */
static void test_turns_repay_the_change(void **unused)
{
	const struct coexec_plan *plan = &world.queues.levels[0].plan;
	unsigned turns = 0;

	(void)unused;
	memset(&world.found, 0, sizeof(world.found));
	for (size_t i = 0; i < countof(measured_pairs); i++)
		run_pair(&measured_pairs[i]);
	begin(1);
	for (unsigned i = 0; i < N; i++)
		world.stays[i] = true;
	for (uint64_t end = world.now + 6000 * MS; world.now < end;) {
		uint64_t since = plan->turn_since, changed_in = plan->changed_in;
		bool pair = plan->n == 2;
		step();
		if (!pair || plan->turn_since == since)
			continue;
		turns++;
		assert_in_range(world.now - since, smaller(15 * changed_in, 1900 * MS), UINT64_MAX);
	}
	assert_in_range(turns, 5, 60);
}

/* Short work that comes after a pause tries no sets that seldom gain: it would not last until that
 * is repaid. */
static void test_short_queue_after_a_pause(void **unused)
{
	const struct coexec_plan *plan = &world.queues.levels[0].plan;

	(void)unused;
	memset(&world.found, 0, sizeof(world.found));
	for (size_t i = 0; i < countof(measured_pairs); i++)
		run_pair(&measured_pairs[i]);
	run_queue(150 * MS);

	for (unsigned i = 0; i < 5; i++) {
		for (uint64_t end = world.now + 5000 * MS; world.now < end;)
			step();
		come(150 * MS);
		assert_true(finish(150 * MS) > 1.2);
		assert_int_equal(plan->searches, 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_former_launches_are_not_measured),
		cmocka_unit_test(test_queues_after_pairs),
		cmocka_unit_test(test_queues),
		cmocka_unit_test(test_short_queues),
		cmocka_unit_test(test_short_queue_after_a_pause),
		cmocka_unit_test(test_turns_repay_the_change),
		cmocka_unit_test(test_three_after_pairs),
		cmocka_unit_test(test_chance_is_corrected),
	};
	const char *seed = getenv("SEED");

	state = seed ? strtoull(seed, NULL, 10) : 20261126;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
