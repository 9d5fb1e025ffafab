/* Shares of clients, on a model of a GPU whose kernels stand behind gates. One kernel runs at a
 * time. A held client's running kernel runs to its end, or leaves if it can. Clients report late
 * and in whole kernels, and the agent's timers are late. All in virtual time, and deterministic. */
#include "scheduler/scheduler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <utlist.h>

#include "scheduler/tenants.h"

#include "weir/base.h"

#define US     1000ull
#define MS     1000000ull
#define N      8
#define STEP   (10 * US)
#define TICK   (560 * US) /* between two looks of a client's worker */
#define BEFORE (400 * MS) /* the first window */
#define WINDOW (200 * MS)
#define ROUNDS 20        /* windows */
#define LEAVE  (40 * US) /* GPU time that is lost when a kernel leaves */

struct model_client {
	uint64_t length;          /* ns of a kernel */
	bool leaves;              /* its kernels can be evicted */
	uint64_t rest;            /* ns left of the evicted kernel */
	uint64_t done, next_tick; /* ns of kernels that ended */
	uint64_t ran;             /* ns in this window */
};

static struct {
	struct loop loop;
	struct scheduler scheduler;
	struct gpu gpu, *gpus;
	struct weir_control_page control[N];
	struct weir_status_page status[N];
	struct weir_demand_page demand[WEIR_DEMAND_LEVELS];
	struct tenant tenants[N];
	struct client clients[N];
	struct model_client model[N];
	unsigned n, total_share;
	unsigned queue[N], queued; /* clients with a kernel behind its gate; the first one runs */
	uint64_t left;             /* ns of it */
	uint64_t switching;        /* ns of a context switch */
	uint64_t switched;         /* ns left of the current one */
	unsigned context;          /* of the client that is on the GPU */
	uint64_t now, next_look, random;
} world;

static uint64_t random_below(uint64_t limit)
{
	world.random = world.random * 6364136223846793005u + 1442695040888963407u;
	return (world.random >> 33) % limit;
}

static void set_up(const char *policy, uint64_t quantum)
{
	struct policy_settings settings = policy_defaults;

	memset(&world, 0, sizeof(world));
	settings.quantum = quantum;
	world.gpu.open = true;
	memcpy(world.gpu.id, "GPU-x", sizeof("GPU-x"));
	for (unsigned level = 0; level < WEIR_DEMAND_LEVELS; level++)
		world.gpu.region.pages[level].demand = &world.demand[level];
	HASH_ADD(hh, world.gpus, uuid, sizeof(world.gpu.uuid), &world.gpu);
	assert_int_equal(loop_init(&world.loop), 0);
	assert_int_equal(scheduler_init(&world.scheduler, &world.loop, policy_find(policy),
					&settings, &world.gpus),
			 0);
}

static void tear_down(void)
{
	for (unsigned i = 0; i < N; i++)
		tenant_free_usages(&world.tenants[i]);
	scheduler_deinit(&world.scheduler);
	loop_deinit(&world.loop);
	HASH_CLEAR(hh, world.gpus);
}

/* A client that always has work, in kernels of @length. */
static void come(uint32_t share, uint64_t length)
{
	unsigned i = world.n++;
	struct client *client = &world.clients[i];

	world.tenants[i] = (struct tenant){.share = share, .clients = client};
	*client = (struct client){
		.gpu = &world.gpu,
		.number = i + 1,
		.tenant = &world.tenants[i],
		.pages = {.control = &world.control[i], .status = &world.status[i]}};
	DL_APPEND2(world.gpu.clients, client, gpu_prev, gpu_next);
	world.gpu.n_level[0]++;
	scheduler_add(&world.scheduler, client);
	world.status[i].executed = 1;
	world.model[i].length = length;
	world.total_share += share;
}

static bool is_queued(unsigned i)
{
	for (unsigned k = 0; k < world.queued; k++)
		if (world.queue[k] == i)
			return true;
	return false;
}

static void start_first(void)
{
	struct model_client *client = &world.model[world.queue[0]];

	world.switched = world.queue[0] == world.context ? 0 : world.switching;
	world.context = world.queue[0];
	world.left = client->rest ? client->rest : client->length;
	client->rest = 0;
}

/* The GPU itself looks at gates. */
static void pass_gates(void)
{
	for (unsigned i = 0; i < world.n; i++) {
		if (world.control[i].hold || is_queued(i))
			continue;
		world.queue[world.queued++] = i;
		if (world.queued == 1)
			start_first();
	}
}

static void take_first(void)
{
	memmove(world.queue, world.queue + 1, --world.queued * sizeof(*world.queue));
	pass_gates();
	if (world.queued)
		start_first();
}

static void end_kernel(void)
{
	struct model_client *client = &world.model[world.queue[0]];

	client->done += client->length;
	take_first();
}

/* Evicts the running kernel of a held client. */
static void evict(void)
{
	unsigned i = world.queued ? world.queue[0] : 0;

	if (!world.queued || !world.model[i].leaves || !world.control[i].hold)
		return;
	world.model[i].rest = world.left + LEAVE;
	take_first();
}

static void run_kernels(uint64_t ns)
{
	while (world.queued && ns) {
		uint64_t pause = world.switched < ns ? world.switched : ns;
		world.switched -= pause;
		ns -= pause;
		uint64_t step = world.left < ns ? world.left : ns;
		world.model[world.queue[0]].ran += step;
		world.left -= step;
		ns -= step;
		if (!world.left)
			end_kernel();
	}
}

static void report(unsigned i)
{
	struct model_client *client = &world.model[i];

	if (world.now < client->next_tick)
		return;
	client->next_tick = world.now + TICK + random_below(40 * US);
	world.status[i].executed = 1 + client->done;
	world.status[i].outstanding = 4;
	world.status[i].remaining = 4 * client->length;
}

static void look(void)
{
	if (world.now < world.next_look)
		return;
	uint64_t next = scheduler_look(&world.scheduler, &world.gpu, world.now);
	uint64_t late = 30 * US + random_below(random_below(50) ? 70 * US : 300 * US);
	world.next_look = next + late;
}

static void run_until(uint64_t end)
{
	for (; world.now < end; world.now += STEP) {
		pass_gates();
		evict();
		run_kernels(STEP);
		for (unsigned i = 0; i < world.n; i++)
			report(i);
		look();
	}
}

struct result {
	double worst; /* percentage points off its share, of any client in any window */
	double first; /* the first client's per cent, over all windows */
};

static double part_of(unsigned i, uint64_t sum)
{
	return 100.0 * (double)world.model[i].ran / (double)sum;
}

static struct result run(void)
{
	struct result result = {0};

	world.now = loop_now();
	run_until(world.now + BEFORE);
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t sum = 0;
		for (unsigned i = 0; i < world.n; i++)
			world.model[i].ran = 0;
		run_until(world.now + WINDOW);
		for (unsigned i = 0; i < world.n; i++)
			sum += world.model[i].ran;
		for (unsigned i = 0; i < world.n; i++) {
			double target = 100.0 * world.tenants[i].share / world.total_share;
			result.worst = fmax(result.worst, fabs(part_of(i, sum) - target));
		}
		result.first += part_of(0, sum) / ROUNDS;
	}
	tear_down();
	return result;
}

/* GLoop, figures 9 and 11: 2, 4, 8 instances, equal and one with two thirds. */
static void test_windows(void **state)
{
	const unsigned counts[] = {2, 4, 8};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		unsigned others = counts[i] - 1;
		for (unsigned equal = 0; equal < 2; equal++) {
			uint32_t each = equal ? 100 / counts[i] : (34 + others / 2) / others;
			set_up("wfq", MS);
			come(equal ? each : 66, 700 * US);
			for (unsigned k = 0; k < others; k++)
				come(each, 550 * US);
			double target = 100.0 * world.tenants[0].share / world.total_share;
			struct result result = run();
			assert_true(result.worst <= 1);
			assert_float_equal(result.first, target, 0.2);
		}
	}
}

/* As before, but some or all of the other clients can be evicted. */
static void test_some_leave(void **state)
{
	const unsigned leave[] = {1, 3, 7};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		set_up("wfq", MS);
		come(12, 440 * US);
		for (unsigned k = 1; k < N; k++) {
			come(12, 550 * US);
			world.model[k].leaves = k <= leave[i];
		}
		struct result result = run();
		assert_true(result.worst <= 1);
		assert_float_equal(result.first, 100.0 / N, 0.2);
	}
}

/* Kernels that cannot be evicted, longer than any run. */
static void test_long_kernels(void **state)
{
	(void)state;
	set_up("ffs", 10 * MS);
	come(66, 500 * US);
	come(34, 15 * MS);
	assert_float_equal(run().first, 66, 3);
	set_up("ffs", 10 * MS);
	come(66, 5 * MS);
	come(34, 500 * US);
	assert_float_equal(run().first, 66, 3);
	/* The second client leaves, and the first one's kernels run on in its runs. It gets that
	 * time back later, however much it is. */
	set_up("ffs", 10 * MS);
	come(66, 7220 * US);
	come(34, 3560 * US);
	world.model[1].leaves = true;
	assert_float_equal(run().first, 66, 3);
}

/* Time slices: a run begins with a context switch, which counts for no client. A client loses no
 * more by it than the switch's part of the shortest run. */
static void test_switches(void **state)
{
	static const struct {
		uint32_t share;
		uint64_t first, second;
	} cases[] = {{97, 5300 * US, 79 * US}, {97, 5300 * US, MS},      {97, 79 * US, 5300 * US},
		     {90, 5300 * US, 79 * US}, {90, 560 * US, 560 * US}, {50, 5300 * US, 79 * US}};

	(void)state;
	for (size_t i = 0; i < countof(cases); i++) {
		set_up("ffs", 10 * MS);
		world.switching = 190 * US;
		come(cases[i].share, cases[i].first);
		come(100 - cases[i].share, cases[i].second);
		world.model[0].leaves = world.model[1].leaves = true;
		uint32_t other = 100 - cases[i].share;
		uint64_t shortest = world.scheduler.settings.min_quantum;
		double lost = (double)other * (double)world.switching / (double)shortest;
		double first = run().first;
		assert_true(first >= cases[i].share - 0.2);
		assert_true(first <= cases[i].share + lost + 0.2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_switches),
		cmocka_unit_test(test_some_leave),
		cmocka_unit_test(test_long_kernels),
	};

	return cmocka_run_group_tests_name("accounts", tests, NULL, NULL);
}
