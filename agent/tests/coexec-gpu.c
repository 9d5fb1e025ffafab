#include "coexec-gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coexec-begin.h"

#include "weir/base.h"

#define STEP   100000ull
#define REPORT (5 * STEP) /* between two reports of libweir */
#define LOOK   (8 * STEP) /* between two looks of the agent */
#define LAUNCH (2 * MS)
#define APART  (3 * MS) /* between two arrivals */

struct queue_world world;

static uint64_t state;

void world_seed(void)
{
	const char *seed = getenv("SEED");

	state = seed ? strtoull(seed, NULL, 10) : 20261126;
}

int world_set_up(void **unused)
{
	(void)unused;
	memset(&world.found, 0, sizeof(world.found));
	return 0;
}

const struct coexec_plan *plan(void)
{
	return &world.queues.levels[0].plan;
}

static unsigned below(unsigned n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)((state >> 33) % n);
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

void come(uint64_t work)
{
	world.begin = world.now;
	for (unsigned i = 0; i < N; i++) {
		world.until[i] = world.reported[i] + work;
		world.comes[i] = world.now + below(N) * APART;
	}
}

void begin(uint64_t work)
{
	world.now += MS;
	coexec_begin(&world.queues, &world.found, world.entries, N);
	for (unsigned i = 0; i < N; i++) {
		struct coexec_kernel *kernel = &world.entries[i].coexec.kernel;
		kernel->number = i + 1;
		memcpy(kernel->parts, curve_parts[i], sizeof(curve_parts[i]));
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

unsigned step(void)
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

void pass(uint64_t ns)
{
	for (uint64_t end = world.now + ns; world.now < end;)
		step();
}

double finish(uint64_t work)
{
	while (step())
		assert_true(world.now - world.begin < 2 * N * work);
	return (double)(N * work) / (double)(world.now - world.begin);
}

double run_queue(uint64_t work)
{
	begin(work);
	return finish(work);
}

static double work_of(const unsigned kernels[2])
{
	return world.done[kernels[0]] + world.done[kernels[1]];
}

double speed_up_of(const struct measured_pair *pair, unsigned i)
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

void begin_pair(const struct measured_pair *pair)
{
	begin(1);
	for (unsigned i = 0; i < N; i++)
		world.comes[i] = UINT64_MAX;
	for (unsigned k = 0; k < 2; k++) {
		world.comes[pair->kernels[k]] = world.now;
		world.stays[pair->kernels[k]] = true;
	}
}

struct searched run_pair(const struct measured_pair *pair)
{
	double before = 0, work = 0, passed = 0;

	begin_pair(pair);
	while (world.now - world.begin < PAIR_NS) {
		before = work_of(pair->kernels);
		bool searched = plan()->searching;
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

void run_all_pairs(void)
{
	for (size_t i = 0; i < countof(measured_pairs); i++)
		run_pair(&measured_pairs[i]);
}
