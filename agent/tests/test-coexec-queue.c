/* A queue of ten kernels under the policy coexec, on a made-up GPU on which pairs get on as on an
 * H100. Kernels of one kind share it in proportion. SEED=N repeats a run. */
#include "policy/coexec-memory.h"
#include "policy/run-queue.h"

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
#define STEP   500000ull
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
	uint64_t reported[N], work, now, begin, comes[N];
	unsigned launched[N]; /* workers of the launch that runs */
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
	return world.now >= world.comes[i] && world.reported[i] < world.work;
}

static bool runs(unsigned i)
{
	return has_work(i) && world.entries[i].active && !world.entries[i].held;
}

static unsigned workers_of(unsigned i)
{
	return (unsigned)smaller(world.launched[i], fit(i));
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
		return 1;
	if (all > 1.3) /* they do not fit: the hardware lets them take turns */
		return 1.0 / n;
	for (unsigned k = 0; k < N; k++) {
		double pair = k != i && runs(k) ? beside(i, workers_of(i), k) : first;
		rate *= (pair < 0 ? fmin(first, (double)workers_of(i) / fit(i)) : pair) / first;
	}
	return rate;
}

static void begin(uint64_t work)
{
	world.now += MS;
	world.begin = world.now;
	world.work = work;
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
		world.launched[i] = COEXEC_UNBOUNDED;
		world.comes[i] = world.now + below(N) * APART;
	}
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
		world.launched[i] = client->workers ? client->workers : COEXEC_UNBOUNDED;
	}
	client->executed = world.reported[i];
}

/* All kernels with @work ns each, one behind the other. Returns how many times faster it was. */
static double run_queue(uint64_t work)
{
	bool left = true;

	begin(work);
	while (left) {
		double rates[N];
		for (unsigned i = 0; i < N; i++)
			run_queues_work(&world.queues, &world.entries[i], has_work(i) ? QUEUED : 0,
					has_work(i) ? QUEUED * LAUNCH : 0, world.now);
		run_queues_decide(&world.queues, world.now);
		for (unsigned i = 0; i < N; i++)
			rates[i] = runs(i) ? rate_of(i) : 0;
		left = false;
		for (unsigned i = 0; i < N; i++) {
			world.done[i] += rates[i] * (double)STEP;
			finish_launches(i);
			left |= world.reported[i] < world.work;
		}
		charge();
		world.now += STEP;
		assert_true(world.now - world.begin < 2 * N * work);
	}
	return (double)(N * work) / (double)(world.now - world.begin);
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
	assert_true(first > 1);
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queues),
		cmocka_unit_test(test_short_queues),
	};
	const char *seed = getenv("SEED");

	state = seed ? strtoull(seed, NULL, 10) : 20261126;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
